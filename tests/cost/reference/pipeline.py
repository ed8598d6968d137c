"""The pipeline played: every rank works through its list of chunks, one by one."""

from collections import deque, namedtuple

# Times of one replica's ranks: chunk forward and backward, and hop to the next.
# ``ends``: forward and backward of the very first and of the very last chunk.
Replica = namedtuple("Replica", "forward backward hop ends")


def played(replica, micro_batches, chunks, *, overlap):
    """Seconds from the first forward to the last backward.

    A chunk begins when its rank is free and its input has arrived; a message leaves
    when the one before it, the same way, has arrived. Without overlap its rank waits.
    """
    ranks = len(replica.hop)
    orders = [_order(rank, ranks, micro_batches, chunks) for rank in range(ranks)]
    arrived = {("F", 0, at, 0): 0.0 for at in range(micro_batches)}
    free, sent, latest = [0.0] * ranks, {}, 0.0
    while any(orders):
        waiting = sum(map(len, orders))
        for rank, order in enumerate(orders):
            while order and order[0] in arrived:
                chunk = order.popleft()
                end = max(free[rank], arrived[chunk]) + _work(replica, chunks, chunk)
                free[rank], latest = end, max(latest, end)
                receiver, hop = _receiver(ranks, chunks, chunk)
                if hop is not None:
                    way = chunk[0], rank
                    end = sent[way] = max(end, sent.get(way, 0.0)) + replica.hop[hop]
                    free[rank] = free[rank] if overlap else end
                arrived[receiver] = end
        if sum(map(len, orders)) == waiting:
            raise ValueError("the schedule waits for itself")
    return latest


def _work(replica, chunks, which):
    what, rank, _, chunk = which
    is_backward = what == "B"
    if rank == chunk == 0:
        return replica.ends[is_backward]
    if rank == len(replica.hop) - 1 and chunk == chunks - 1:
        return replica.ends[2 + is_backward]
    return (replica.backward if is_backward else replica.forward)[rank]


def _receiver(ranks, chunks, which):
    """Who needs a result, and the hop it takes (of the rank nearer the start)."""
    what, rank, micro_batch, chunk = which
    if what == "F":
        if rank + 1 < ranks:
            return ("F", rank + 1, micro_batch, chunk), rank
        if chunk + 1 < chunks:
            return ("F", 0, micro_batch, chunk + 1), rank
        return ("B", rank, micro_batch, chunk), None
    if rank:
        return ("B", rank - 1, micro_batch, chunk), rank - 1
    if chunk:
        return ("B", ranks - 1, micro_batch, chunk - 1), ranks - 1
    return None, None


def _order(rank, ranks, micro_batches, chunks):
    """Forwards and backwards of a rank in the order it runs them.

    A last group that is not full keeps its empty places while turns are counted.
    """
    places = [
        (at, chunk)
        for first in range(0, micro_batches, ranks)
        for chunk in range(chunks)
        for at in range(first, first + ranks)
    ]
    ahead = ranks - rank - 1
    if chunks > 1:
        ahead = 2 * ahead + (chunks - 1) * ranks
    order = [("F", rank, *place) for place in places[:ahead]]
    for i, (at, chunk) in enumerate(places):
        order += [("F", rank, *place) for place in places[ahead + i : ahead + i + 1]]
        order.append(("B", rank, at, chunks - 1 - chunk))
    return deque(which for which in order if which[2] < micro_batches)
