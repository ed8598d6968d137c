"""Placements that fill the tree with ranks in one sequence, and the usual ones.

A node of a node-contiguous launch holds consecutive ranks, so groups of them can only
be shifted along. Where nodes have several sizes, a domain that ends within a group cuts
it; leaving a few of its GPUs idle avoids that as long as some are spare. Shapes: N
nodes, D domains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from placer.base.arrays import IntArray
from placer.job.axes import REPLICA_MAJOR_ORDER
from placer.placement.baselines import BASELINES, baseline
from placer.solve.construct.nesting import nestings
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.problem.launch import pack
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Candidate, Incumbent
from placer.solve.tree.domains import base_tier, linked_tier
from placer.solve.tree.fill import fill, fullest_first
from placer.topology.machine import Machine
from placer.topology.submachine import Submachine


def nested(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Axes inside axes, filled into the tree in whole units."""
    incumbent.offer_all(islice(nested_fills(problem), problem.fills_priced))
    if (problem.machine.gpus_of_node != problem.colocation.block).any():
        uneven(problem, incumbent, budget)


def uneven(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Nodes that hold as many consecutive ranks as they can."""
    if problem.job.launcher != "free":
        incumbent.offer_all(run_fills(problem))


def fullest_fills(problem: Problem) -> Iterator[Candidate]:
    """Ranks in order on whole nodes, those of the fullest domains first.

    A group then spans few domains, and the leavings of a scheduler come last, or are
    left out. Ranks are in the job's order, and replica by replica.
    """
    machine, axes = problem.machine, problem.job.parallelism
    capacity = machine.gpus_of_node // axes.tp * axes.tp
    if capacity.sum() < axes.world_size:
        capacity = machine.gpus_of_node
    tier, world = base_tier(machine), axes.world_size
    few = _without_smallest(machine, capacity, tier, world)
    orders = list(dict.fromkeys((axes.order, REPLICA_MAJOR_ORDER)))
    for note, room in (("", capacity), (", the smallest left out", few)):
        if note and (room == capacity).all():
            continue
        nodes = fullest_first(machine, room)
        slots = np.repeat(nodes, room[nodes])
        for order in orders:
            gpu_of_rank = machine.gpus_on(slots[axes.numbers_in(order)])
            yield f"fullest domains first{note}", gpu_of_rank


def _without_smallest(
    machine: Machine, capacity: IntArray, tier: int, world: int
) -> IntArray:
    """The capacity without as many domains of ``tier`` as can be spared; shape (N,)."""
    domain_of_node = machine.domain_of_node[tier]
    room = np.bincount(domain_of_node, capacity)
    smallest = np.argsort(room, kind="stable")
    is_spare = np.cumsum(room[smallest]) <= capacity.sum() - world
    left_out = np.isin(domain_of_node, smallest[is_spare])
    return np.where(left_out, 0, capacity)


def nested_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) of each nesting that fits, best estimate first.

    Where a nesting's units do not fit, they are given up from the outermost tier in,
    down to what the requirements tie together. Sets that are not all alike are packed
    exactly.
    """
    topology, job = problem.machine, problem.job
    colocation, capacity_of_node = problem.colocation, problem.capacity
    sizes = colocation.uniform_sizes()
    if sizes is None:
        node_of_rank = pack(topology, colocation, capacity_of_node)
        if node_of_rank is not None:
            yield "packing", topology.gpus_on(node_of_rank)
        # Some nesting may keep the requirements without being made for them.
        colocation = colocation_of(topology, replace(job, require={}), colocation.block)
        sizes = tuple(int(colocation.sizes(t)[0]) for t in range(len(colocation.label)))
    seen = set()
    found = False
    for nesting in nestings(problem, colocation):
        for units in _relaxations(nesting.units, sizes):
            node_of_rank = fill(topology, capacity_of_node, nesting.sequence, units)
            if node_of_rank is None or not _keeps(topology, colocation, node_of_rank):
                continue
            found = True
            key = node_of_rank.tobytes()
            if key not in seen:
                seen.add(key)
                yield f"nesting {nesting.name}", topology.gpus_on(node_of_rank)
            break
    if found:
        return
    # Sets side by side in the order of their ranks, whatever the axes look like.
    sequence = np.lexsort(colocation.label)
    node_of_rank = fill(topology, capacity_of_node, sequence, _units(sizes))
    if node_of_rank is not None:
        yield "part order", topology.gpus_on(node_of_rank)


def _relaxations(
    units: tuple[int, ...], sizes: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """The units, then with those of the outer tiers given up one by one."""
    current = list(units)
    yield tuple(current)
    for t in range(len(units) - 1, -1, -1):
        inner = current[t - 1] if t else 1
        smallest = int(np.lcm(inner, sizes[t])) if t < len(units) - 1 else inner
        if smallest != current[t]:
            current[t] = smallest
            current[t + 1 :] = [int(np.lcm(smallest, size)) for size in sizes[t + 1 :]]
            current[-1] = current[-2] if len(current) > 1 else current[-1]
            yield tuple(current)


def _keeps(topology: Machine, colocation: Colocation, node_of_rank: IntArray) -> bool:
    """Whether every set lies in one domain: units given up may have cut some."""
    rows = enumerate(topology.domain_of_node)
    return all(colocation.share(tier, row[node_of_rank]) for tier, row in rows)


def _units(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Set sizes as units of a fill; the last tier takes those of the one below."""
    return (*sizes[:-1], sizes[-2] if len(sizes) > 1 else sizes[-1])


def fastest_first(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Hosts from the fastest to the slowest, for each speed to stop at.

    Where slow ones are needed they then share stages and pipelines: a stage is as slow
    as its slowest GPU, and a step as its slowest replica.
    """
    machine = problem.machine
    if problem.goal.name != "time" or machine.compute_factor is None:
        return
    speed = machine.speed_of_node
    fastest = np.lexsort((np.arange(len(speed)), -speed))
    for slowest in np.unique(speed)[::-1].tolist():
        nodes = fastest[speed[fastest] >= slowest]
        is_small = machine.gpus_of_node[nodes].sum() < problem.job.world_size
        if is_small or incumbent.ends():
            continue
        part = Submachine(machine, machine.select(nodes), nodes)
        own = problem.on(part.topology, problem.job)
        fills = islice(nested_fills(own), problem.fills_priced)
        incumbent.offer_all(
            (f"{name}, fastest hosts first", part.gpu_in_whole(gpu_of_rank))
            for name, gpu_of_rank in chain(starts(own), fullest_fills(own), fills)
        )


def run_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) in order on nodes that take all they can.

    Whole tp groups or single ranks: as they come, and with groups of each size kept
    whole. For node-contiguous launches on machines where no one number of ranks a node
    fits.
    """
    machine, axes = problem.machine, problem.job.parallelism
    tier = (linked_tier if problem.goal.name == "time" else base_tier)(machine)
    world, domain_of_node = axes.world_size, machine.domain_of_node[tier]
    for chunk in dict.fromkeys((axes.tp, 1)):
        capacity = machine.gpus_of_node // chunk * chunk
        if capacity.sum() < world:
            continue
        sizes = colocation_of(machine, problem.job, chunk).uniform_sizes()
        if sizes is not None:
            node_of_rank = fill(machine, capacity, np.arange(world), _units(sizes))
            if node_of_rank is not None:
                gpu_of_rank = machine.gpus_on(node_of_rank)
                yield f"ranks in order, {chunk} at a time", gpu_of_rank
        if tier == len(machine.tiers) - 1:
            continue
        room = np.bincount(domain_of_node, capacity).astype(np.int64)
        outer = machine.domain_around[tier]
        for size in dict.fromkeys((axes.etp * axes.ep, axes.tp * axes.cp)):
            slots = []
            for domain, take in along(room, outer, size, world):
                nodes = np.flatnonzero(domain_of_node == domain)
                slots.append(np.repeat(nodes, capacity[nodes])[:take])
            gpu_of_rank = machine.gpus_on(np.concatenate(slots)[:world])
            yield f"ranks in order, groups of {size} whole", gpu_of_rank


def along(
    room: IntArray, outer: IntArray, size: int, world: int
) -> list[tuple[int, int]]:
    """Domains in turn, and the ranks that each takes, of at least ``world``.

    The next domain is one that ends with a group if any does, at the price of few idle
    GPUs, else the one with the most of a group that it cuts; in the same outer domain
    while there is one.

    Parameters
    ----------
    room : ndarray, shape (D,), ranks
    outer : ndarray, shape (D,)
        Outer domain of each.
    size, world : int
        Ranks of a group, and all ranks.
    """
    unused = room > 0
    spare = int(room.sum()) - world
    begun, taken, here = 0, 0, -1
    found = []
    while taken < world:
        near = unused & (outer == here)
        choice = np.flatnonzero(near if near.any() else unused)
        over = (begun + room[choice]) % size
        idle = np.where(over <= spare, over, size)
        best = int(np.lexsort((-over, idle))[0])
        domain, wasted = int(choice[best]), int(idle[best])
        wasted = 0 if wasted == size or wasted >= room[domain] else wasted
        take = int(room[domain]) - wasted
        found.append((domain, take))
        begun = (begun + take) % size
        spare, taken, here = spare - wasted, taken + take, int(outer[domain])
        unused[domain] = False
    return found


_BY_NAME = {
    "given-order": "hosts by name",
    "megatron-default": "megatron-default, hosts by name",
    "replica-major": "replica-major, hosts by name",
}


def starts(problem: Problem) -> Iterator[tuple[str, IntArray]]:
    """(name, GPU of every rank) of each baseline but the random one.

    Where the machine has its hosts by name and they are listed otherwise, baselines of
    the order listed are called what they are.
    """
    machine, job = problem.machine, problem.job
    for name in BASELINES:
        if name != "random":
            shown = _BY_NAME.get(name, name) if problem.by_name else name
            yield shown, baseline(name, machine, job, problem.seed).gpu_of_rank


def is_start(method: str) -> bool:
    """Whether a placement found by ``method`` is one of the starts."""
    return method in BASELINES or method in _BY_NAME.values()
