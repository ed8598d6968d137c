"""Where ranks sit, and what seats must satisfy.

One rank a GPU, groups inside domains, the launcher's order. Groups are worked out here
and nowhere else used, so that the checker does not repeat a mistake of the rank
numbering it checks. Shapes: R ranks, N nodes, M members over all groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, groupby

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.base.units import counted
from placer.job.even import axis_of, is_even
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.topology.model import Topology

_SHOWN_RANKS = 4
_LAUNCH_ORDER = (" consecutive ranks: ", " another order than ranks: ")
_DENSE = {"tp": "tp", "cp": "cp", "pp": "pp", "dp": "dp"}
_EXPERT = {"etp": "tp", "ep": "ep", "edp": "dp"}


def share(count: int, total: int, noun: str, one: str, many: str) -> str:
    """``3 of 1,024 ranks use``: a count of a total, and the verb that fits it."""
    return f"{count:,} of {counted(total, noun)} {one if count == 1 else many}"


def some_ranks(ranks: IntArray) -> str:
    """``(ranks 0, 8, 16, 24, ...)``: the first few of ``ranks``, shape (any,)."""
    shown = ", ".join(str(rank) for rank in ranks[:_SHOWN_RANKS])
    return f"(ranks {shown}{', ...' if len(ranks) > _SHOWN_RANKS else ''})"


@dataclass(frozen=True, eq=False)
class Seats:
    """Seat of every rank."""

    node: IntArray  # (R,): index of the node in the topology
    gpu: IntArray  # (R,): index of the GPU inside its node


def seats_of_plan(plan: Plan, topology: Topology) -> tuple[Seats, list[str]]:
    """Seats of a plan's ranks, and the faults; seats hold only when there is none."""
    if plan.node_of_rank.shape != plan.gpu_of_rank.shape:
        return Seats(plan.node_of_rank, plan.gpu_of_rank), [
            f"{plan.node_of_rank.size:,} ranks have a node, "
            f"{plan.gpu_of_rank.size:,} have a GPU"
        ]
    index = {name: i for i, name in enumerate(topology.node_names)}
    # One entry more than there are nodes: -1 stands for "no node" and indexes it.
    of_entry = np.array([index.get(n, -1) for n in plan.nodes] + [-1], dtype=np.int64)
    room_of_node = np.append(topology.gpus_of_node, 0)
    entry, gpu = plan.node_of_rank, plan.gpu_of_rank
    listed = (entry >= 0) & (entry < len(plan.nodes))
    node = of_entry[np.where(listed, entry, -1)]
    outside = (node >= 0) & ((gpu < 0) | (gpu >= room_of_node[node]))
    return Seats(node, gpu), [
        *_fault(~listed, entry, "points", "point", "outside the list of nodes"),
        *_fault(listed & (node < 0), entry, "has", "have", "no usable node"),
        *_fault(outside, gpu, "uses", "use", "a GPU that the node does not have"),
    ]


def seats_of_placement(
    placement: Placement, topology: Topology
) -> tuple[Seats, list[str]]:
    """Seats of a placement's ranks, and the faults, as for a plan."""
    gpu = placement.gpu_of_rank
    end = np.cumsum(topology.gpus_of_node)
    outside = (gpu < 0) | (gpu >= topology.gpus_of_node.sum())
    if outside.any():
        return Seats(gpu, gpu), _fault(
            outside, gpu, "uses", "use", "a GPU that the topology does not have"
        )
    node = np.searchsorted(end, gpu, side="right").astype(np.int64)
    shut = [i for i, n in enumerate(topology.node_names) if n in topology.unavailable]
    return Seats(node, topology.index_of_gpu[gpu]), _fault(
        np.isin(node, shut), node, "has", "have", "a node that must not be used"
    )


def _fault(
    bad: BoolArray, value: IntArray, one: str, many: str, what: str
) -> list[str]:
    """One sentence when ``bad`` marks any rank; both arrays have shape (R,)."""
    ranks = np.flatnonzero(bad)
    if not ranks.size:
        return []
    return [
        f"{share(ranks.size, bad.size, 'rank', one, many)} {what}: "
        f"the first is rank {ranks[0]} (index {value[ranks[0]]})"
    ]


def doubled_gpus(seats: Seats, topology: Topology) -> Iterator[str]:
    """A sentence when a GPU holds more than one rank."""
    width = int(topology.gpus_of_node.max(initial=0)) + 1
    key = seats.node * width + seats.gpu
    by_gpu = np.argsort(key, kind="stable")
    repeat = np.flatnonzero(np.diff(key[by_gpu]) == 0)
    if not repeat.size:
        return
    first, second = by_gpu[repeat[0]], by_gpu[repeat[0] + 1]
    count = np.unique(key[by_gpu[repeat]]).size
    yield (
        f"{count:,} {'GPU holds' if count == 1 else 'GPUs hold'} more than one rank: "
        f"the first is GPU {seats.gpu[first]} of "
        f"{topology.node_names[seats.node[first]]} (ranks {first} and {second})"
    )


def parts_without_link(seats: Seats, topology: Topology) -> Iterator[str]:
    """A sentence for each tier that nothing joins and whose domains share the job."""
    for t, tier in enumerate(topology.tiers):
        used = np.unique(topology.domain_of_node[t][seats.node])
        if tier.apart and len(used) > 1:
            names = [topology.domain_names[t][domain] for domain in used[:2].tolist()]
            yield (
                f"ranks lie in {len(used):,} domains of {tier.name}, which nothing "
                f"joins: {' and '.join(names)}"
            )


def split_groups(seats: Seats, topology: Topology, job: Job) -> Iterator[str]:
    """A sentence for each requirement whose groups leave their domain."""
    machine = topology.by_island
    gpus = topology.gpu_at(seats.node, seats.gpu)
    tiers = {tier.name: t for t, tier in enumerate(machine.tiers)}
    for key, tier in job.require.items():
        axis = axis_of(key)
        rule = (
            f"{axis} must {'lie evenly in' if is_even(key) else 'stay in one'} {tier}"
        )
        groups = _groups(axis, job)
        if tier not in tiers:
            yield f"{rule}, the topology has no such tier"
        elif groups is None:
            yield f"{rule}, the job has no such groups"
        else:
            domain = machine.domain_of_gpu[tiers[tier]][gpus]
            broken = _uneven if is_even(key) else _split
            yield from broken(axis, tier, domain, *groups)


def broken_launch_order(seats: Seats, topology: Topology) -> Iterator[str]:
    """Sentences on nodes whose ranks a node-by-node launcher cannot number so.

    torchrun counts ranks node by node, and on a node hands out GPUs in ascending order.
    """
    step = np.diff(seats.node)
    run_nodes = seats.node[np.append(0, np.flatnonzero(step) + 1)]
    nodes, first_run, runs = np.unique(run_nodes, return_index=True, return_counts=True)
    split = np.flatnonzero(runs > 1)
    if split.size:
        node = nodes[split[np.argmin(first_run[split])]]
        yield (
            f"{share(split.size, nodes.size, 'node', 'does', 'do')} not hold"
            f"{_LAUNCH_ORDER[0]}the first is {topology.node_names[node]} "
            f"{some_ranks(np.flatnonzero(seats.node == node))}"
        )
    # A launcher may also be told to count the GPUs of a node island by island.
    by_island = topology.gpu_at(seats.node, seats.gpu)
    turns = [(step == 0) & (np.diff(order) < 0) for order in (seats.gpu, by_island)]
    torn = np.intersect1d(*(seats.node[:-1][turn] for turn in turns))
    down = np.flatnonzero(turns[0] & np.isin(seats.node[:-1], torn))
    if down.size:
        rank, count = down[0], np.unique(seats.node[down]).size
        yield (
            f"{share(count, nodes.size, 'node', 'hands', 'hand')} out GPUs in"
            f"{_LAUNCH_ORDER[1]}the first is {topology.node_names[seats.node[rank]]} "
            f"(rank {rank} on GPU {seats.gpu[rank]}, "
            f"rank {rank + 1} on GPU {seats.gpu[rank + 1]})"
        )


def breaks_launch_order(sentence: str) -> bool:
    """Whether a sentence is one of `broken_launch_order`."""
    return any(words in sentence for words in _LAUNCH_ORDER)


def _split(
    axis: str, tier: str, domain: IntArray, members: IntArray, starts: IntArray
) -> Iterator[str]:
    """One sentence when a group has ranks in several domains; ``domain`` is (R,)."""
    inside = domain[members]
    low = np.minimum.reduceat(inside, starts)
    bad = np.flatnonzero(low != np.maximum.reduceat(inside, starts))
    if not bad.size:
        return
    end = np.append(starts, members.size)
    ranks = members[starts[bad[0]] : end[bad[0] + 1]]
    noun = f"{axis} group"
    yield (
        f"{share(bad.size, starts.size, noun, 'leaves its', 'leave their')} {tier}: "
        f"the first is {noun} {bad[0]} {some_ranks(ranks)}"
    )


def _uneven(
    axis: str, tier: str, domain: IntArray, members: IntArray, starts: IntArray
) -> Iterator[str]:
    """One sentence when a group is not in equal parts, one in each of its domains.

    Members follow each other in a part; all parts of a group have as many.
    """
    bad = []
    for number, first in enumerate(starts.tolist()):
        end = members.size if number + 1 == starts.size else int(starts[number + 1])
        runs = [
            (there, len([*run]))
            for there, run in groupby(domain[members[first:end]].tolist())
        ]
        if (
            len({there for there, _ in runs}) < len(runs)
            or len({length for _, length in runs}) > 1
        ):
            bad.append((number, " + ".join(str(length) for _, length in runs[:6])))
    if bad:
        noun, (number, parts) = f"{axis} group", bad[0]
        yield (
            f"{share(len(bad), starts.size, noun, 'does not lie', 'do not lie')} in "
            f"equal parts, one a {tier}: the first is {noun} {number} ({parts})"
        )


def _groups(axis: str, job: Job) -> tuple[IntArray, IntArray] | None:
    """Ranks of all groups in a row, shape (M,), and where each group starts."""
    if axis in _DENSE or axis in _EXPERT:
        lines = _lines(axis, job)
        return lines.ravel(), np.arange(0, lines.size, lines.shape[1])
    for group in job.groups:
        if group.name == axis:
            lengths = [len(ranks) for ranks in group.ranks]
            members = np.array([*chain.from_iterable(group.ranks)], dtype=np.int64)
            return members, np.cumsum([0, *lengths[:-1]])
    return _groups_of_roles(axis, job)


def _groups_of_roles(axis: str, job: Job) -> tuple[IntArray, IntArray] | None:
    """Groups of ``role.axis``: those of each instance, one after the other."""
    first = 0
    for role in job.roles:
        size = role.job.world_size
        found = _groups(axis.removeprefix(f"{role.name}."), role.job)
        if axis.startswith(f"{role.name}.") and found is not None:
            members, starts = found
            turns = np.arange(role.instances)[:, None]
            return (
                (members + first + turns * size).ravel(),
                (starts + turns * members.size).ravel(),
            )
        first += size * role.instances
    return None


def _lines(axis: str, job: Job) -> IntArray:
    """Ranks of each group of one axis, shape (groups, members), by first rank.

    The first axis of the order is fastest, so a C-ordered grid whose last dimension is
    that axis holds each rank at its coordinates, and a group is a line of the grid.
    Without experts of its own a job has one grid: ``etp`` is tp, ``edp`` is dp with cp.
    """
    p = job.parallelism
    dense = {"tp": p.tp, "cp": p.cp, "ep": 1, "pp": p.pp, "dp": p.dp}
    has_experts = p.ep > 1 or p.etp != p.tp
    if axis in _DENSE or not has_experts:
        sizes = dense
    else:
        edp = p.tp * p.cp * p.dp // (p.etp * p.ep)
        sizes = {"tp": p.etp, "cp": 1, "ep": p.ep, "pp": p.pp, "dp": edp}
    outermost_first = p.order[::-1]
    shape = [sizes[a] for a in outermost_first]
    along = [outermost_first.index((_DENSE | _EXPERT)[axis])]
    if axis == "edp" and not has_experts:
        along.append(outermost_first.index("cp"))
    ranks = np.arange(np.prod(shape)).reshape(shape)
    grid = np.moveaxis(ranks, along, range(-len(along), 0))
    lines = grid.reshape(-1, int(np.prod([shape[a] for a in along])))
    return lines[np.argsort(lines[:, 0])]
