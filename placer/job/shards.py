"""Who sends whom what: the flows of a transfer, from how both sides cut the data.

Every rank holds a box of the unit cube. Its sides are the layers (cut over ``pp``), the
width of a layer or its experts (``tp``, or ``ep`` and ``etp``), and, where replicas
share one copy (``zero3``, ``hsdp``), the part of each. A receiver gets every piece of
its box from one of the ranks that hold it, which take turns. The chunks of ``vp`` count
as one run of layers. Shapes: F flows, B boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.job.model import RankTraffic

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.job.roles import Role, Transfer

PATTERNS = ("reshard", "broadcast", "paired", "all_to_all")
# A smaller part of the cube is a rounding error.
_NOTHING = 1e-12


class Flows(NamedTuple):
    """Bytes between ranks; shapes (F,)."""

    senders: IntArray
    receivers: IntArray
    size_bytes: FloatArray


class _Turn(NamedTuple):
    """Which of the instances that a sender serves this is, and what it had before.

    Attributes
    ----------
    instance, instances : int
    before, total : int
        Pieces that others of this instance had from the same holders, and all have.
    """

    instance: int
    instances: int
    before: int
    total: int


# Flows of a piece from those who hold it to those who need it.
_Turns = Callable[[IntArray, IntArray, float, _Turn], Flows]


class _Boxes(NamedTuple):
    """The different boxes of a job: both ends of each side, and who holds them.

    Attributes
    ----------
    low, high : ndarray, shape (B, 3)
    holders : list of ndarray
    """

    low: FloatArray
    high: FloatArray
    holders: list[IntArray]


def transfer_flows(transfer: Transfer, sender: Role, receiver: Role) -> Flows:
    """What each rank of a role sends each rank of another in a cycle."""
    size = transfer.size_bytes
    if transfer.pattern == "all_to_all":
        return _everyone(sender, receiver, size)
    pairs = pairs_of(transfer.pattern, sender.instances, receiver.instances)
    if transfer.pattern == "broadcast":
        return _chains(pairs, sender, receiver, size)
    dense, expert = 1.0 - transfer.expert_share, transfer.expert_share
    turns = _every_replica if transfer.pattern == "reshard" else _any_replica
    parts = [
        _reshard(pairs, sender, receiver, share * size, turns, experts=experts)
        for share, experts in ((dense, False), (expert, True))
        if share
    ]
    return _together(parts)


def pairs_of(pattern: str, senders: int, receivers: int) -> list[tuple[int, int]]:
    """Instances that talk to each other: each receiver has a sender, in turn.

    In ``paired`` transfers each sender has a receiver too.
    """
    count = max(senders, receivers) if pattern == "paired" else receivers
    return [(index % senders, index % receivers) for index in range(count)]


def merged(flows: Iterable[Flows], overlap: bool) -> RankTraffic | None:
    """All flows as the traffic of a job; None where nothing is sent."""
    found = _together(list(flows))
    sent = found.size_bytes > 0
    if not sent.any():
        return None
    senders, receivers = found.senders[sent], found.receivers[sent]
    count = int(max(senders.max(), receivers.max())) + 1
    keys, which = np.unique(senders * count + receivers, return_inverse=True)
    total = np.bincount(which, found.size_bytes[sent], len(keys)).astype(np.float64)
    return RankTraffic(keys // count, keys % count, total, overlap)


def _together(parts: list[Flows]) -> Flows:
    none = np.zeros(0, dtype=np.int64)
    parts = [Flows(none, none, np.zeros(0)), *parts]
    return Flows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _everyone(sender: Role, receiver: Role, size: float) -> Flows:
    """An even share of the bytes from every rank to every rank."""
    first = np.arange(sender.world_size) + sender.first_rank
    second = np.arange(receiver.world_size) + receiver.first_rank
    count = len(first) * len(second)
    senders, receivers = np.repeat(first, len(second)), np.tile(second, len(first))
    return Flows(senders, receivers, np.full(count, size / count))


def _chains(
    pairs: list[tuple[int, int]], sender: Role, receiver: Role, size: float
) -> Flows:
    """One copy from the first rank of an instance through all that receive it.

    The copy goes on piece by piece, so every hop is busy at once.
    """
    ranks: dict[int, list[int]] = {}
    for source, target in pairs:
        start = receiver.offsets[target]
        chain = ranks.setdefault(source, [sender.offsets[source]])
        chain += range(start, start + receiver.job.world_size)
    hops = [hop for chain in ranks.values() for hop in pairwise(chain)]
    ends = np.array(hops, dtype=np.int64).reshape(-1, 2)
    return Flows(ends[:, 0], ends[:, 1], np.full(len(ends), size))


def _reshard(
    pairs: list[tuple[int, int]],
    sender: Role,
    receiver: Role,
    size: float,
    turns: _Turns,
    *,
    experts: bool,
) -> Flows:
    """What the boxes of each pair of instances have in common."""
    held, needed = _boxes(sender.job, experts), _boxes(receiver.job, experts)
    low = np.maximum(held.low[:, None], needed.low)
    high = np.minimum(held.high[:, None], needed.high)
    volume = np.prod(np.maximum(high - low, 0.0), axis=2)
    common = [
        (held.holders[box], needed.holders[need], size * volume[box, need])
        for box, need in zip(*np.nonzero(volume > _NOTHING), strict=True)
    ]
    served = -(-len(pairs) // sender.instances)
    total: dict[int, int] = {}
    for holders, targets, _ in common:
        total[int(holders[0])] = total.get(int(holders[0]), 0) + len(targets)
    found = []
    for number, (source, target) in enumerate(pairs):
        first, second = sender.offsets[source], receiver.offsets[target]
        sent: dict[int, int] = {}
        for holders, targets, piece in common:
            holder = int(holders[0])
            before = sent.get(holder, 0)
            sent[holder] = before + len(targets)
            turn = _Turn(number // sender.instances, served, before, total[holder])
            flows = turns(holders, targets, piece, turn)
            found.append(
                Flows(flows.senders + first, flows.receivers + second, flows.size_bytes)
            )
    return _together(found)


def _every_replica(
    holders: IntArray, targets: IntArray, size: float, turn: _Turn
) -> Flows:
    """The piece for each of the targets.

    Each instance has holders of its own where there are enough, so that it is near all
    that serve it; each of them serves the next few targets, so that pieces of other
    sides come from its neighbours.
    """
    each = max(len(holders) // turn.instances, 1)
    index = (np.arange(len(targets)) + turn.before) * each // turn.total
    own = holders[(turn.instance * each + index) % len(holders)]
    return Flows(own, targets, np.full(len(targets), size))


def _any_replica(
    holders: IntArray, targets: IntArray, size: float, _turn: _Turn
) -> Flows:
    """The piece once, shared out: each replica holds, or takes, a part of it."""
    count = max(len(holders), len(targets))
    turn = np.arange(count)
    return Flows(
        holders[turn % len(holders)],
        targets[turn % len(targets)],
        np.full(count, size / count),
    )


def _boxes(job: Job, experts: bool) -> _Boxes:
    """What each rank holds of the model, or needs."""
    axes, at = job.parallelism, job.parallelism.coordinates
    width, cut = (at["tp"], axes.tp)
    replica, replicas = at["dp"] * axes.cp + at["cp"], axes.dp * axes.cp
    if experts:
        width, cut = at["ep"] * axes.etp + at["etp"], axes.ep * axes.etp
        replica, replicas = at["edp"], axes.edp
    dense = axes.dp * axes.cp
    shared = job.data_parallel.sharding in ("zero3", "hsdp")
    parts = job.data_parallel.shard_members(replicas, dense) if shared else 1
    index = np.stack((at["pp"], width, replica % parts), axis=1)
    sides = np.array([axes.pp, cut, parts])
    boxes, which = np.unique(index, axis=0, return_inverse=True)
    which = which.reshape(-1)
    by_box = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[by_box], np.arange(1, len(boxes)))
    return _Boxes(boxes / sides, (boxes + 1) / sides, np.split(by_box, starts))
