"""Units cut where nodes end, inside the sets that a rule keeps in an outer domain.

What `cut_at_nodes` does on the whole machine is done here in every leaf that takes
sets. Each leaf takes sets in rank order, so many that few units are cut.

Shapes: R ranks, L outer domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice, permutations, product
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.by_nodes.cut_at_nodes import (
    Chain,
    fewest_cut_chains,
    laid_on,
    lengths_of_chains,
)
from placer.solve.construct.units.units import divide_evenly
from placer.solve.problem.axes import sizes_kept_whole
from placer.solve.problem.colocation import colocation_of, join
from placer.solve.tree.base import base_tier, linked_tier
from placer.solve.tree.fill import tree_order
from placer.solve.tree.outer_sets import set_size, sets_cut_least

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

Chains = list[Chain]
ChainsOf = Callable[[tuple[int, ...], int, int], Chains | None]


def cut_within_sets(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Units whole on the nodes that hold them, others on chains of nodes of a leaf."""
    incumbent.offer_all(islice(cut_set_fills(problem), problem.fills_priced))


def cut_set_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) for groups of each size and each outer tier."""
    machine, job = problem.machine, problem.job
    inner = (linked_tier if problem.goal.name == "time" else base_tier)(machine)
    if job.launcher == "free" or inner > 0 or not job.require:
        return
    label = colocation_of(machine, job, 1).label
    for size in sizes_kept_whole(job.parallelism):
        if divide_evenly(machine.gpus_of_node, size):
            continue
        units = np.arange(job.world_size).reshape(-1, size)
        for tier in range(1, len(machine.tiers) - 1):
            sets = join(label[tier], units)
            each = set_size(sets, size)
            if each is None:
                continue
            told = f"groups of {size} cut at nodes, sets of {each} whole"
            orders = _orders(problem, sets)
            ways = [_leaves(problem, tier, order, size) for order in orders]
            chains_of = _chains_of(size)
            for longest, leaves in product(lengths_of_chains(size), ways):
                for node_of_rank in _laid(problem, size, leaves, longest, chains_of):
                    yield told, machine.gpus_on(node_of_rank)


def _chains_of(size: int) -> ChainsOf:
    """Chains for units of so many ranks on the nodes of a leaf, asked for once.

    Neither the order of sets nor that of nodes changes them.
    """

    @cache
    def chains_of(gpus: tuple[int, ...], units: int, longest: int) -> Chains | None:
        nodes = [(one,) for one in gpus]
        found = fewest_cut_chains(nodes, size, units * size, longest)
        return found[1] if found else None

    return chains_of


def _orders(problem: Problem, sets: IntArray) -> Iterator[IntArray]:
    """Ranks of the sets, one after the other, a row a set; shape (sets, ranks)."""
    axes = problem.job.parallelism
    ranks = np.argsort(sets, kind="stable").reshape(int(np.unique(sets).size), -1)
    first = ranks[:, 0]
    stage, replica = (axes.coordinates[axis][first] for axis in ("pp", "dp"))
    for order in permutations((stage, replica)):
        yield ranks[np.lexsort(order)]


def _leaves(
    problem: Problem, tier: int, ranks: IntArray, size: int
) -> list[tuple[IntArray, IntArray]]:
    """First rank of each unit of an outer domain, and its nodes.

    Empty if none fit, or if nodes hold all units of each whole.
    """
    machine = problem.machine
    along = tree_order(machine)
    outer = machine.domain_of_node[tier]
    count, each = ranks.shape
    whole, room = (
        np.bincount(outer, one).astype(np.int64)
        for one in (machine.gpus_of_node // size, machine.gpus_of_node)
    )
    sets = sets_cut_least(whole, room // each, each // size, count)
    if sets.sum() < count or np.all(sets * (each // size) <= whole):
        return []
    found, begin = [], 0
    for domain in dict.fromkeys(outer[along].tolist()):
        held = np.sort(ranks[begin : begin + sets[domain]].ravel())
        begin += int(sets[domain])
        if len(held):
            found.append((held[::size], along[outer[along] == domain]))
    return found


def _laid(
    problem: Problem,
    size: int,
    leaves: list[tuple[IntArray, IntArray]],
    longest: int,
    chains_of: ChainsOf,
) -> Iterator[IntArray]:
    """Node of every rank, each way to lay chains in all leaves alike; shape (R,)."""
    gpus = problem.machine.gpus_of_node
    ways = []
    for first, nodes in leaves:
        chains = chains_of(tuple(np.sort(gpus[nodes]).tolist()), len(first), longest)
        if chains is None:
            return
        each = [(node,) for node in nodes.tolist()]
        ways.append(laid_on(problem.job, size, first, each, gpus, chains))
    for rows in zip(*ways, strict=False):
        yield np.max(rows, axis=0)
