"""Counts that show why requirements and rules cannot be kept, in the job's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.base.units import format_power
from placer.job.even import is_even, told_part
from placer.job.rules import ranks_text
from placer.solve.problem.budget_room import gpus_within
from placer.solve.problem.colocation import colocation_of, groups_of
from placer.solve.problem.launch import launch_blocks
from placer.solve.problem.rules import Limits
from placer.solve.tree.capacity import node_capacity, parent_of_domain, whole_sets

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.colocation import Colocation
    from placer.topology.machine import Machine


def missing_parts(topology: Machine, job: Job) -> list[str]:
    """How many sets of each tier are needed and how many fit; too few come first."""
    blocks = launch_blocks(topology, job)
    if not blocks:
        return [_no_block(topology, job)]
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
        inside = np.bincount(parent_of_domain(topology, tier), takes[tier - 1])
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


def _no_block(topology: Machine, job: Job) -> str:
    return (
        f"no number of ranks a node divides the {job.world_size:,} ranks and has "
        f"enough nodes of that size ({topology.num_nodes:,} nodes, "
        f"{topology.num_gpus:,} usable GPUs)"
    )


def broken_counts(topology: Machine, job: Job) -> Iterator[str]:
    """A line for each count that no placement of ``job`` can meet; none proves nothing.

    Every line is a proof that the job does not fit on ``topology``.
    """
    limits = Limits.of(topology, job)
    yield from _pushed_together(limits)
    yield from _pinned_over(limits)
    yield from _long_runs(limits)
    yield from _too_few_domains(limits)
    yield from _too_many_spares(limits)
    yield from _too_little_budget(limits)


def _pushed_together(limits: Limits) -> Iterator[str]:
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
        for rank, nodes in limits.nodes_of_rank.items():
            part, there = int(part_of[rank]), frozenset(row[[*nodes]].tolist())
            homes[part] = homes.get(part, there) & there
            if tier >= 0 and not homes[part]:
                yield _torn(limits, tier, first.get(part, rank), rank)
                return
            first.setdefault(part, rank)
        room, size = np.bincount(row, topology.gpus_of_node), np.bincount(part_of)
        parts: dict[frozenset[int], list[int]] = {}
        for part, own in homes.items():
            parts.setdefault(own, []).append(part)
        lines = []
        for own in parts:
            inside = [part for other in parts if other <= own for part in parts[other]]
            ranks, gpus = int(size[inside].sum()), int(room[[*own]].sum())
            if ranks > gpus:
                names = ranks_text(np.flatnonzero(np.isin(part_of, inside)).tolist())
                where = _brought(limits, tier, own, names)
                lines.append(f"{where}: {ranks} ranks, {gpus} GPUs")
        yield from lines
        if lines:
            return


def _torn(limits: Limits, tier: int, first: int, rank: int) -> str:
    """That two ranks of one set are pinned to different domains."""
    topology = limits.topology
    there, here = (limits.host_names(limits.nodes_of_rank[r]) for r in (first, rank))
    return (
        f"{_tied(topology, limits.job, tier)} groups tie ranks {first} and {rank} "
        f"together in one {topology.tiers[tier].name}, and they are pinned to "
        f"{there} and {here}"
    )


def _brought(limits: Limits, tier: int, own: frozenset[int], ranks: str) -> str:
    """That pins bring ranks to some nodes, or with required groups to some domains."""
    topology = limits.topology
    if tier < 0:
        hosts = limits.host_names(own) or "hosts that are not there"
        return f"ranks {ranks} are pinned to {hosts}"
    names = ", ".join(topology.domain_names[tier][domain] for domain in sorted(own))
    tiers = topology.tiers[tier].name + "s" * (len(own) > 1)
    return f"pins and required groups bring ranks {ranks} to {tiers} {names}"


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


def _long_runs(limits: Limits) -> Iterator[str]:
    """Ranks too far apart to be on one node of a node-contiguous launch."""
    if limits.job.launcher == "free":
        return
    topology, host_of_node = limits.topology, limits.topology.host_of_node
    gpus_of_host = _gpus_of_host(topology)
    ranks_on: dict[int, list[int]] = {}
    for rank, hosts in limits.nodes_of_rank.items():
        if len(homes := {int(host_of_node[node]) for node in hosts}) == 1:
            ranks_on.setdefault(min(homes), []).append(rank)
    for host, ranks in sorted(ranks_on.items()):
        first, last = min(ranks), max(ranks)
        room = int(gpus_of_host[host])
        if last - first + 1 > room >= len(ranks):
            yield (
                f"ranks {first} and {last} are pinned to "
                f"{topology.host_names[host]}, which with {room} GPUs holds at "
                f"most {room} consecutive ranks"
            )


def _too_few_domains(limits: Limits) -> Iterator[str]:
    """Tiers without enough domains for so few replicas each."""
    topology, job = limits.topology, limits.job
    dp, size = job.parallelism.dp, limits.replica_size
    for tier, number in limits.at_most:
        name = topology.tiers[tier].name
        room = np.bincount(topology.domain_of_node[tier], topology.gpus_of_node)
        most = int(room.max())
        each = -(-size // most)
        needed, there = -(-dp * each // number), len(room)
        if needed > there:
            yield (
                f"{dp:,} replicas of {size:,} ranks, at most {number} a {name}, need "
                f"{needed:,} {name}s, {there:,} are there"
            )
            continue
        held = int(np.minimum(room, number * size).sum())
        if held < job.world_size:
            yield (
                f"with at most {number} replicas of {size:,} ranks a {name}, the "
                f"{there:,} {name}s can hold {held:,} of the {job.world_size:,} ranks"
            )


def _too_many_spares(limits: Limits) -> Iterator[str]:
    """What is left for ranks when spare nodes are kept."""
    topology, job = limits.topology, limits.job
    gpus_of_host = _gpus_of_host(topology)
    for tier, number in limits.spares:
        name = topology.tiers[tier].name
        row = topology.domain_of_host(tier)
        kept = _all_but_smallest(gpus_of_host, row, number)
        room = np.bincount(row, kept)
        roomiest = int(room.argmax())
        nodes = int((row == roomiest).sum())
        offers = (
            f"{name} {topology.domain_names[tier][roomiest]} offers "
            f"{int(room[roomiest])} of its {nodes} nodes with {number} kept free"
        )
        sizes = colocation_of(topology, job, 1).uniform_sizes()
        gpus = np.bincount(row, gpus_of_host * kept).astype(np.int64)
        unit = sizes[tier] if sizes is not None and tier < len(sizes) - 1 else 1
        held = int((gpus // unit * unit).sum())
        if unit > gpus.max():
            most = int(gpus_of_host.max())
            yield (
                f"{offers}; {unit:,} ranks that stay together need {-(-unit // most)}"
            )
        elif held < job.world_size:
            yield f"{offers}; {held:,} of the {job.world_size:,} ranks have a place"


def _too_little_budget(limits: Limits) -> Iterator[str]:
    """Ranks without a place when no budget is exceeded."""
    budgets, gpus = limits.job.rules.budgets, limits.topology.gpus_of_node
    if not budgets:
        return
    held, is_proved = gpus_within(limits.budgets, gpus, limits.replica_size)
    if not is_proved or held >= limits.job.world_size:
        return
    lacking = limits.job.world_size - held
    watts = [b.gpu_watts for b in budgets if b.watts is not None]
    drawn = f", {format_power(lacking * watts[0])}" if watts else ""
    yield (
        f"within the budget{'s' * (len(budgets) > 1)} there is room for "
        f"{held:,} of the {limits.job.world_size:,} ranks: "
        f"{lacking:,} GPUs too few{drawn}"
    )


def _gpus_of_host(topology: Machine) -> IntArray:
    """GPUs of each host, of all its islands; shape (hosts,)."""
    gpus = np.bincount(topology.host_of_node, topology.gpus_of_node)
    return gpus.astype(np.int64)


def _all_but_smallest(gpus: IntArray, row: IntArray, number: int) -> BoolArray:
    """All hosts but the ``number`` with the fewest GPUs of each domain."""
    order = np.lexsort((gpus, row))
    start = np.searchsorted(row[order], row[order])
    kept = np.empty(len(row), dtype=bool)
    kept[order] = np.arange(len(row)) - start >= number
    return kept
