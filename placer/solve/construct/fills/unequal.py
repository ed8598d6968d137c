"""Placements for machines whose hosts, or whose domains' links, are not alike.

Slow hosts stay idle where the others hold the job. Where they do not, hosts are filled
from the fastest to the slowest, so that the slow ones share stages and pipelines: a
stage is as slow as its slowest GPU, and a step as its slowest replica. Domains that
links join change places, so that what talks most is not across the slowest link.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.construct.fills.fills import fullest_fills, nested_fills
from placer.solve.problem.starts import starts
from placer.solve.problem.submachine import Submachine
from placer.solve.tree.symmetry import on_other_nodes

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent
    from placer.topology.machine import Machine

# Exchanges of linked domains that are priced, at the most.
MOST_EXCHANGES = 200


def fastest_first(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Hosts from the fastest to the slowest, those that are not needed left out."""
    incumbent.offer_all(fastest_fills(problem))


def fastest_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) on the fastest hosts, for each speed to stop at."""
    machine = problem.machine
    if problem.goal.name != "time" or machine.compute_factor is None:
        return
    speed = machine.speed_of_node
    fastest = np.lexsort((np.arange(len(speed)), -speed))
    for slowest in np.unique(speed)[::-1].tolist():
        nodes = fastest[speed[fastest] >= slowest]
        if machine.gpus_of_node[nodes].sum() < problem.job.world_size:
            continue
        part = Submachine(machine, machine.select(nodes), nodes)
        own = problem.on(part.topology, problem.job)
        fills = islice(nested_fills(own), problem.fills_priced)
        for name, gpu_of_rank in chain(starts(own), fullest_fills(own), fills):
            yield f"{name}, fastest hosts first", part.gpu_in_whole(gpu_of_rank)


def exchanged(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """The best placement with two linked domains exchanged, as long as that helps."""
    machine = problem.machine
    if problem.goal.name != "time" or incumbent.gpu_of_rank is None:
        return
    pairs = list(islice(exchanges(machine), MOST_EXCHANGES))
    left, improved = MOST_EXCHANGES, True
    while improved and left > 0:
        before = incumbent.value
        for becomes in pairs[:left]:
            if budget.is_over():
                return
            gpu_of_rank = on_other_nodes(machine, incumbent.best, becomes)
            incumbent.offer(f"{incumbent.method}, domains exchanged", gpu_of_rank)
        left -= len(pairs)
        improved = incumbent.value < before


def exchanges(machine: Machine) -> Iterator[IntArray]:
    """New node of each node when two linked domains of one size change places; (N,)."""
    for name in dict.fromkeys(link.tier for link in machine.links):
        t = machine.tier_index(name)
        inside: dict[tuple[int, ...], list[IntArray]] = {}
        for domain in range(len(machine.domain_names[t])):
            nodes = np.flatnonzero(machine.domain_of_node[t] == domain)
            looks = [machine.gpus_of_node[nodes], *_tree(machine, nodes, t)]
            key = tuple(np.concatenate(looks).tolist())
            inside.setdefault(key, []).append(nodes)
        for alike in inside.values():
            for one, other in combinations(alike, 2):
                becomes = np.arange(machine.num_nodes)
                becomes[one], becomes[other] = other, one
                yield becomes


def _tree(machine: Machine, nodes: IntArray, t: int) -> list[IntArray]:
    """Domains of the tiers below around some nodes, counted as they appear."""
    return [
        np.unique(row[nodes], return_inverse=True)[1].reshape(-1)
        for row in machine.domain_of_node[1:t]
    ]
