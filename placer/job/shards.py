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
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.job.model import Job
from placer.job.roles import Role, Transfer
from placer.job.traffic import RankFlows, RankTraffic

# Between racks of GB200 with a NIC of 50 GB/s a GPU one GPU sent another 719 GB at 26.7
# GB/s, eight GPUs eight others at 22.6 each, and one a copy to eight at 98.4, with the
# NICs of its tray of four (marin-community/marin issue 7695; its bench/ at 13fb1559
# says that the numbers are of GPUs, and how they send).
PAIR_SHARE, FAN_OUT = 0.5, 4
# A smaller part of the cube is a rounding error.
_NOTHING = 1e-12


class _Boxes(NamedTuple):
    """The different boxes of a job: both ends of each side, and who holds them."""

    # low and high: (B, 3).
    low: FloatArray
    high: FloatArray
    ranks: IntArray  # (R,): all, box by box
    # first and number, (B,): where those of a box start, and how many they are.
    first: IntArray
    number: IntArray


def transfer_flows(transfer: Transfer, sender: Role, receiver: Role) -> RankFlows:
    """What each rank of a role sends each rank of another in a cycle."""
    size = transfer.size_bytes
    if transfer.pattern == "all_to_all":
        return _everyone(sender, receiver, size)
    pairs = pairs_of(transfer.pattern, sender.instances, receiver.instances)
    if transfer.pattern == "broadcast":
        return _chains(pairs, sender, receiver, size)
    dense, expert = 1.0 - transfer.expert_share, transfer.expert_share
    cut = _for_every_replica if transfer.pattern == "reshard" else _shared_out
    parts = [
        _reshard(pairs, sender, receiver, share * size, cut, experts=experts)
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


def merged(
    flows: Iterable[RankFlows], overlap: bool, fixed_s: float
) -> RankTraffic | None:
    """All flows as the traffic of a job; None where nothing is sent."""
    found = _together(list(flows)).merged()
    if not len(found.senders):
        return None
    return RankTraffic(*found, overlap, PAIR_SHARE, fixed_s)


def _together(parts: list[RankFlows]) -> RankFlows:
    parts = [RankFlows.of([], [], []), *parts]
    return RankFlows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _everyone(sender: Role, receiver: Role, size: float) -> RankFlows:
    """An even share of the bytes from every rank to every rank."""
    first = np.arange(sender.world_size) + sender.first_rank
    second = np.arange(receiver.world_size) + receiver.first_rank
    count = len(first) * len(second)
    senders, receivers = np.repeat(first, len(second)), np.tile(second, len(first))
    return RankFlows(senders, receivers, np.full(count, size / count))


def _chains(
    pairs: list[tuple[int, int]], sender: Role, receiver: Role, size: float
) -> RankFlows:
    """One copy from the first rank of an instance through all that receive it.

    The copy goes on piece by piece, so every hop is busy at once. It is cut for
    `FAN_OUT` chains, which leave the sender and every few receivers by other ranks.
    """
    ranks: dict[int, list[int]] = {}
    for source, target in pairs:
        start = receiver.offsets[target]
        of_source = ranks.setdefault(source, [])
        of_source += range(start, start + receiver.job.world_size)
    hops: list[tuple[int, int]] = []
    for source, receivers in ranks.items():
        first = sender.offsets[source]
        for turn in range(FAN_OUT):
            chain = [first, first + turn][: 1 + (0 < turn < sender.job.world_size)]
            for start in range(0, len(receivers), FAN_OUT):
                few = receivers[start : start + FAN_OUT]
                at = turn % len(few)
                chain += few[at:] + few[:at]
            hops += pairwise(chain)
    ends = np.array(hops, dtype=np.int64).reshape(-1, 2)
    return RankFlows(ends[:, 0], ends[:, 1], np.full(len(ends), size / FAN_OUT))


def _reshard(
    pairs: list[tuple[int, int]],
    sender: Role,
    receiver: Role,
    size: float,
    cut: Callable[[_Common, int], _Cut],
    *,
    experts: bool,
) -> RankFlows:
    """What the boxes of each pair of instances have in common."""
    held, needed = _boxes(sender.job, experts), _boxes(receiver.job, experts)
    low = np.maximum(held.low[:, None], needed.low)
    high = np.minimum(held.high[:, None], needed.high)
    volume = np.prod(np.maximum(high - low, 0.0), axis=2)
    box, need = np.nonzero(volume > _NOTHING)
    size_of_piece = size * volume[box, need]
    common = _Common(box, held.number[box], needed.number[need], size_of_piece)
    of, at, turn, step, size_bytes = cut(common, -(-len(pairs) // sender.instances))
    receivers = needed.ranks[needed.first[need][of] + at % common.targets[of]]
    first, count = held.first[box][of], common.holders[of]
    found = []
    for number, (source, target) in enumerate(pairs):
        own = (number // sender.instances * step + turn) % count
        found.append(
            RankFlows(
                held.ranks[first + own] + sender.offsets[source],
                receivers + receiver.offsets[target],
                size_bytes,
            )
        )
    return _together(found)


class _Common(NamedTuple):
    """What boxes of both sides have in common, piece by piece; shapes (P,)."""

    box: IntArray  # that the piece is taken from, in order
    # holders and targets: how many ranks hold the piece, and need it.
    holders: IntArray
    targets: IntArray
    size_bytes: FloatArray

    def repeated(self, times: IntArray) -> tuple[IntArray, IntArray]:
        """Each piece so many times: which it is, and how often it was before; (F,)."""
        of = np.repeat(np.arange(len(times)), times)
        return of, np.arange(len(of)) - (np.cumsum(times) - times)[of]


class _Cut(NamedTuple):
    """Flows of all pieces between two instances; shapes (F,)."""

    # of and at: the piece, and which of its flows this is.
    of: IntArray
    at: IntArray
    # Which of the holders sends to the first instance that a sender serves.
    turn: IntArray
    step: IntArray  # how many holders further on for each next instance
    size_bytes: FloatArray


def _for_every_replica(common: _Common, instances: int) -> _Cut:
    """A piece for each of its targets.

    Each instance has holders of its own where there are enough, so that it is near all
    that serve it; each of them serves the next few targets, so that pieces of other
    sides come from its neighbours.
    """
    of, at = common.repeated(common.targets)
    before = np.cumsum(common.targets) - common.targets
    first = np.searchsorted(common.box, common.box)
    total = np.bincount(common.box, common.targets).astype(np.int64)[common.box]
    each = np.maximum(common.holders // instances, 1)[of]
    turn = (at + (before - before[first])[of]) * each // total[of]
    return _Cut(of, at, turn, each, common.size_bytes[of])


def _shared_out(common: _Common, _instances: int) -> _Cut:
    """A piece once, shared out: each replica holds, or takes, a part of it."""
    parts = np.maximum(common.holders, common.targets)
    of, at = common.repeated(parts)
    return _Cut(of, at, at, np.zeros_like(at), (common.size_bytes / parts)[of])


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
    count = np.bincount(which)
    return _Boxes(
        boxes / sides,
        (boxes + 1) / sides,
        np.argsort(which, kind="stable"),
        np.cumsum(count) - count,
        count,
    )
