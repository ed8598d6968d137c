"""Counts that show why requirements and rules cannot be kept, in the job's words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placer.base.arrays import IntArray
from placer.base.units import format_power, plural
from placer.job.even import is_even, told_part
from placer.job.model import Job
from placer.job.rules import ranks_text
from placer.solve.problem.colocation import Colocation, colocation_of, groups_of
from placer.solve.problem.launch import launch_blocks, ranks_within
from placer.solve.problem.rules import Count, Limits
from placer.solve.tree.domains import node_capacity, whole_sets
from placer.topology.machine import Machine


def missing_parts(topology: Machine, job: Job) -> list[str]:
    """How many sets of each tier are needed and how many fit; too few come first."""
    blocks = launch_blocks(topology, job)
    if not blocks:
        return [
            f"no number of ranks a node divides the {job.world_size:,} ranks and has "
            f"enough nodes of that size ({topology.num_nodes:,} nodes, "
            f"{topology.num_gpus:,} usable GPUs)"
        ]
    sets = colocation_of(topology, job, blocks[0])
    capacity = node_capacity(topology, sets.block)
    sizes = sets.uniform_sizes()
    if sizes is None:
        return _too_large(topology, job, sets, capacity) or [
            "the required groups cannot be packed into the domains they must lie in "
            f"({', '.join(f'{a}: {t}' for a, t in job.require.items())})"
        ]
    takes = whole_sets(topology, capacity, sizes)
    required = [
        t
        for t, tier in enumerate(topology.tiers[:-1])
        if tier.name in job.require.values()
    ]
    short = [t for t in required if int(takes[t].sum()) < job.world_size]
    if not short:
        return [
            f"the {job.world_size:,} ranks do not fit: "
            f"with {sets.block} consecutive "
            f"ranks on every node, {int(takes[-1].sum()):,} have a place"
        ]
    lines = {t: _line(topology, job, takes, sizes, t) for t in required}
    holds = [f"this holds: {lines[t]}" for t in required if t not in short]
    empty = next((t for t in short if not takes[t].any()), short[-1])
    short = short[: short.index(empty) + 1]  # what holds nothing fills nothing outside
    return [*(lines[t] for t in short), *holds]


def is_packed_never(topology: Machine, job: Job) -> bool:
    """Whether counts alone prove that required groups have no room, however launched.

    Sets of one size a tier are packed whole wherever they fit; of several sizes, one
    that no domain can take is proof.
    """
    sets = colocation_of(topology, job, 1)
    capacity = node_capacity(topology, 1)
    sizes = sets.uniform_sizes()
    if sizes is None:
        return bool(_too_large(topology, job, sets, capacity))
    return int(whole_sets(topology, capacity, sizes)[-1].sum()) < job.world_size


def _too_large(
    topology: Machine, job: Job, sets: Colocation, capacity: IntArray
) -> list[str]:
    """Lines that name the required groups whose ranks no one domain can take."""
    lines = []
    for axis, name in job.require.items():
        if is_even(axis):
            continue
        tier = topology.tier_index(name)
        sizes, label = sets.sizes(tier), sets.label[tier]
        room = int(np.bincount(topology.domain_of_node[tier], capacity).max())
        tied = max(int(sizes[label[rows]].max()) for rows in groups_of(job, axis))
        if tied > room:
            lines.append(
                f"{axis} ties {tied:,} ranks together in one {name}: "
                f"the roomiest {name} can take {room:,} ranks"
            )
    return lines


def _line(
    topology: Machine,
    job: Job,
    takes: list[IntArray],
    sizes: tuple[int, ...],
    tier: int,
) -> str:
    """How many sets of a tier are needed, how many fit, and its largest domain."""
    name = topology.tiers[tier].name
    room = int(topology.gpus_of_node.max())
    if tier:
        inside = np.bincount(topology.domain_around[tier - 1], takes[tier - 1])
        room = int(inside.max())
    return (
        f"{_tied(topology, job, tier)} groups tie {sizes[tier]:,} ranks together in "
        f"one {name}: "
        f"{job.world_size // sizes[tier]:,} such parts are needed, "
        f"{int(takes[tier].sum()) // sizes[tier]:,} fit "
        f"(the roomiest {name} can take {room:,} ranks)"
    )


def _tied(topology: Machine, job: Job, tier: int) -> str:
    """The axes whose groups must lie in one domain of a tier."""
    required = job.require.items()
    return " x ".join(
        told_part(axis)
        for axis, own in required
        if topology.tier_index(own) <= tier and not is_even(axis)
    )


def broken_counts(topology: Machine, job: Job) -> Iterator[str]:
    """A line for each count that no placement of ``job`` can meet; none proves nothing.

    Every line is a proof that the job does not fit on ``topology``.
    """
    limits = Limits(topology, job)
    yield from _pushed_together(limits, _brought_nodes(limits))
    yield from _pinned_over(limits)
    yield from _too_little_room(limits)


def _brought_nodes(limits: Limits) -> dict[int, frozenset[int]]:
    """Nodes for each rank that pins bring somewhere.

    Where nodes hold consecutive ranks, those between two ranks of one host too.
    """
    known, host_of_node = dict(limits.nodes_of_rank), limits.topology.host_of_node
    if limits.job.launcher == "free":
        return known
    ranks_on: dict[int, list[int]] = {}
    for rank, nodes in known.items():
        if len(hosts := {*host_of_node[[*nodes]].tolist()}) == 1:
            ranks_on.setdefault(hosts.pop(), []).append(rank)
    for host, ranks in ranks_on.items():
        own = frozenset(np.flatnonzero(host_of_node == host).tolist())
        for rank in range(min(ranks), max(ranks)):
            known[rank] = known.get(rank, own) & own or own
    return known


def _pushed_together(
    limits: Limits, nodes_of_rank: dict[int, frozenset[int]]
) -> Iterator[str]:
    """Ranks that pins, or pins and required groups, bring to where there is no room.

    By itself each rank may be on its nodes; a set may lie in the domains that all of
    its ranks allow.
    """
    topology = limits.topology
    label = colocation_of(topology, limits.job, 1).label
    for tier in range(-1, len(topology.tiers) - 1):
        part_of, row = np.arange(limits.job.world_size), np.arange(topology.num_nodes)
        if tier >= 0:
            part_of, row = label[tier], topology.domain_of_node[tier]
        first: dict[int, int] = {}
        homes: dict[int, frozenset[int]] = {}
        for rank, nodes in nodes_of_rank.items():
            part, there = int(part_of[rank]), frozenset(row[[*nodes]].tolist())
            homes[part] = homes.get(part, there) & there
            if tier >= 0 and not homes[part]:
                others = nodes_of_rank[first[part]], nodes
                yield _torn(limits, tier, (first[part], rank), others)
                return
            first.setdefault(part, rank)
        room, size = np.bincount(row, topology.gpus_of_node), np.bincount(part_of)
        parts: dict[frozenset[int], list[int]] = {}
        for part, own in homes.items():
            parts.setdefault(own, []).append(part)
        lines = []
        for own in parts:
            inside = [part for other in parts if other <= own for part in parts[other]]
            count, gpus = int(size[inside].sum()), int(room[[*own]].sum())
            if count > gpus:
                ranks = np.flatnonzero(np.isin(part_of, inside)).tolist()
                where = _brought(limits, tier, own, ranks)
                lines.append(f"{where}: {count} ranks, {gpus} GPUs")
        yield from lines
        if lines:
            return


def _torn(
    limits: Limits,
    tier: int,
    ranks: tuple[int, int],
    nodes: tuple[frozenset[int], frozenset[int]],
) -> str:
    """That two ranks of one set are pinned to different domains."""
    topology = limits.topology
    there, here = map(limits.host_names, nodes)
    return (
        f"{_tied(topology, limits.job, tier)} groups tie ranks {ranks[0]} and "
        f"{ranks[1]} together in one {topology.tiers[tier].name}, and they are pinned "
        f"to {there} and {here}"
    )


def _brought(limits: Limits, tier: int, own: frozenset[int], ranks: list[int]) -> str:
    """That pins bring ranks to some nodes, or with required groups to some domains."""
    topology, names, pins = limits.topology, ranks_text(ranks), limits.nodes_of_rank
    if tier < 0 and all(rank in pins and pins[rank] <= own for rank in ranks):
        hosts = limits.host_names(own) or "hosts that are not there"
        return f"ranks {names} are pinned to {hosts}"
    if tier < 0:
        hosts = limits.host_names(own)
        return f"pins bring consecutive ranks {names} to {hosts}"
    domains = ", ".join(topology.domain_names[tier][domain] for domain in sorted(own))
    tiers = plural(topology.tiers[tier].name, len(own))
    return f"pins and required groups bring ranks {names} to {tiers} {domains}"


def _pinned_over(limits: Limits) -> Iterator[str]:
    """Hosts to which more replicas, or ranks, are pinned than a rule lets them hold."""
    for count in limits.counts:
        pinned: dict[int, set[int]] = {}
        for rank, nodes in limits.nodes_of_rank.items():
            boxes = {*count.box[[*nodes]].tolist()}
            if count.by_rank and len(boxes) == 1:
                pinned.setdefault(boxes.pop(), set()).add(int(count.number[rank]))
        for box, own in pinned.items():
            if box >= 0 and len(own) > count.most[box]:
                noun = "replicas" if count.is_of_replicas else "ranks"
                hosts = limits.host_names(np.flatnonzero(count.box == box))
                yield (
                    f"{len(own)} {noun} are pinned to {hosts}, which may hold "
                    f"{count.most[box]}"
                )


def _too_little_room(limits: Limits) -> Iterator[str]:
    """Ranks without a place when no rule is broken, and the roomiest domains."""
    topology, world = limits.topology, limits.job.world_size
    sizes = colocation_of(topology, limits.job, 1).uniform_sizes()
    rooms, notes, placed = [], "", world
    for count in limits.counts:
        room, most = _room(limits, count)
        for tier in reversed(range(len(topology.tiers) - 1)):
            if np.array_equal(count.box, topology.domain_of_node[tier]):
                unit = sizes[tier] if sizes is not None else 1
                room = room // unit * unit
                notes += f"; a {topology.tiers[tier].name} may hold {room.max():,}"
                notes += f", in sets of {unit:,}" * (unit > 1)
                break
        rooms.append((count.box, room))
        placed = min(placed, most)
    if rooms:
        most, is_proved = ranks_within(rooms, topology.gpus_of_node)
        placed = min(placed, most) if is_proved else placed
    if placed < world:
        watts = [b.gpu_watts for b in limits.job.rules.budgets if b.watts is not None]
        drawn = f", {format_power((world - placed) * watts[0])}" if watts else ""
        yield (
            f"there is room for {placed:,} of the {world:,} ranks: {world - placed:,} "
            f"{plural('rank', world - placed)} too many{drawn}{notes}"
        )


def _room(limits: Limits, count: Count) -> tuple[IntArray, int]:
    """Ranks that each box may hold, and that all may, shape (boxes,) and a number.

    A replica that no box has room for counts in several.
    """
    topology, world = limits.topology, limits.job.world_size
    boxes, inside = len(count.most), count.box >= 0
    gpus = np.bincount(count.box[inside], topology.gpus_of_node[inside], boxes)
    if count.by_rank:
        size = world // limits.job.parallelism.dp if count.is_of_replicas else 1
        room = np.minimum(gpus, count.most * size).astype(np.int64)
        if not inside.all():  # there may be no host in any box
            return room, world
        parts = -(-size // int(gpus.max()))
        return room, int(count.most.sum()) // parts * size
    host_of_node = topology.host_of_node
    of_host = np.bincount(host_of_node, topology.gpus_of_node)
    box = count.box[np.unique(host_of_node, return_index=True)[1]]
    largest = (
        np.sort(of_host[box == one])[::-1][:most].sum()
        for one, most in enumerate(count.most.tolist())
    )
    return np.array([*largest], dtype=np.int64), world
