"""Units that nodes do not hold whole, cut where nodes end.

A launch by nodes gives every node consecutive ranks. Of hosts with 8 and 7 GPUs some
hold a tp group of 8, the others do not. The groups that are left over lie on *chains*
of nodes: so many consecutive groups on so many nodes, no part of a group small. A
program chooses the chains: as few groups as can be are cut, then as few follow each
other. Where the islands of a host are linked as fast as the GPUs of one, hosts are the
nodes.

Shapes: U units, S sizes of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, islice, permutations, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.units.units import divide_evenly
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.problem.axes import sizes_kept_whole
from placer.solve.tree.base import base_tier, linked_tier
from placer.solve.tree.fill import in_turn, tree_order

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

Counts = tuple[int, ...]

LONGEST, MOST_RANKS = 8, 64  # units of a chain, and ranks if it has several
SORTS = 3  # sizes of nodes that chains are made of, the most frequent
WORK = 1_000  # nodes of the tree of a program


class Chain(NamedTuple):
    """Consecutive units on a run of nodes.

    Attributes
    ----------
    held : tuple of int
        Ranks that each node holds, in order.
    nodes : tuple of int
        GPUs of each of these nodes.
    """

    units: int
    held: Counts
    nodes: Counts

    @property
    def size(self) -> int:
        """Ranks of a unit."""
        return sum(self.held) // self.units

    @property
    def cut(self) -> list[int]:
        """Units of the chain that lie on several nodes, from 0 on."""
        ends = accumulate(self.held)
        return sorted({end // self.size for end in ends if end % self.size})

    @property
    def slowness(self) -> list[float]:
        """Of each cut unit, halves that its least part would make at the most."""
        ends = np.union1d(self.size * np.arange(self.units), np.cumsum(self.held))
        parts, unit = np.diff(ends), ends[:-1] // self.size
        return [self.size / 2 / int(parts[unit == one].min()) for one in self.cut]


def cut_at_nodes(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Units whole on the nodes that hold them, the others on chains of nodes."""
    incumbent.offer_all(islice(cut_fills(problem), problem.fills_priced))


def cut_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) for groups of each size and each least part."""
    machine, axes = problem.machine, problem.job.parallelism
    tier = (linked_tier if problem.goal.name == "time" else base_tier)(machine)
    if problem.job.launcher == "free" or tier not in (0, machine.node_tier):
        return
    host_of_node = machine.domain_of_node[tier]
    gpus = np.bincount(host_of_node, machine.gpus_of_node).astype(np.int64)
    hosts = np.array([*dict.fromkeys(host_of_node[tree_order(machine)].tolist())])
    for size in sizes_kept_whole(axes):
        room = int((gpus // size).sum()) * size
        if room >= axes.world_size or axes.world_size % size:
            continue
        if divide_evenly(gpus, size):
            continue
        for longest in lengths_of_chains(size):
            found = fewest_cut_chains(gpus, size, axes.world_size, longest)
            if found is None:
                continue
            least, chains = found
            told = f"groups of {size} cut at nodes, parts of {least} or more"
            first = np.arange(0, axes.world_size, size)
            for host_of_rank in laid_on(problem.job, size, first, hosts, gpus, chains):
                yield told, in_turn(machine.domain_of_gpu[tier], host_of_rank)


def lengths_of_chains(size: int) -> range:
    """Units that chains of units of so many ranks may have, each tried in turn."""
    return range(1, max(1, min(LONGEST, MOST_RANKS // size)) + 1)


def fewest_cut_chains(
    gpus: IntArray, size: int, world: int, longest: int
) -> tuple[int, list[Chain]] | None:
    """The largest least part that can be, with chains for all units; None if none.

    Parameters
    ----------
    gpus : ndarray
        Of each node.
    size, world, longest : int
        Ranks of a unit and in all, and units of a chain at the most.
    """
    sorts, numbers = np.unique(gpus, return_counts=True)
    usual = np.sort(np.argsort(-numbers, kind="stable")[:SORTS])
    sorts, numbers = sorts[usual], numbers[usual]
    whole = [
        Chain(n // size, (n // size * size,), (n,)) for n in sorts.tolist() if n >= size
    ]
    for least in range(size // 2, 0, -1):
        cut = [
            chain
            for units in range(1, longest + 1)
            for chain in chains_of(units, size, least, tuple(sorts.tolist()))
            if chain.cut
        ]
        chosen = _chosen([*whole, *cut], sorts, numbers, world // size)
        if chosen is not None:
            return least, chosen
    return None


def chains_of(units: int, size: int, least: int, sorts: Counts) -> list[Chain]:
    """Chains of so many units, none with nodes to spare, no part below the least.

    Parameters
    ----------
    units, size, least : int
        Units, ranks of each, and of a part of one.
    sorts : tuple of int
        GPUs of the nodes there are.
    """
    # What begins the chain up to a rank, by how many nodes of each sort it takes.
    begun: list[dict[Counts, tuple[Counts, Counts]]] = [
        {} for _ in range(units * size + 1)
    ]
    begun[0][(0,) * len(sorts)] = ((), ())
    ends = [at for at in range(units * size) if _may_end(at, size, least)]
    for begin in ends:
        begun[begin] = _fewest(begun[begin])
        for end in [*ends[ends.index(begin) + 1 :], units * size]:
            if not _is_even(begin, end, size, least):
                continue
            for sort, room in enumerate(sorts):
                if room < end - begin:
                    continue
                for used, (held, nodes) in begun[begin].items():
                    more = (*used[:sort], used[sort] + 1, *used[sort + 1 :])
                    longer = (*held, end - begin), (*nodes, room)
                    begun[end].setdefault(more, longer)
    return [
        Chain(units, *held)
        for used, held in _fewest(begun[-1]).items()
        if sum(used) > 1
    ]


def _fewest(
    begun: dict[Counts, tuple[Counts, Counts]],
) -> dict[Counts, tuple[Counts, Counts]]:
    """Those for which no other takes some of the nodes only."""
    taken = np.array([*begun])
    return {
        used: held
        for row, (used, held) in zip(taken, begun.items(), strict=True)
        if np.count_nonzero((taken <= row).all(axis=1)) == 1
    }


def _may_end(at: int, size: int, least: int) -> bool:
    """Whether a node may end after so many ranks of a chain."""
    return at % size == 0 or least <= at % size <= size - least


def _is_even(begin: int, end: int, size: int, least: int) -> bool:
    """Whether a node with these ranks of a chain holds no small part of a unit."""
    return begin // size != (end - 1) // size or end - begin >= min(least, size)


def _chosen(
    chains: list[Chain], sorts: IntArray, numbers: IntArray, units: int
) -> list[Chain] | None:
    """Chains for all units, as few of them cut as can be; None where none fit."""
    program = Program()
    columns = [
        program.column(units, sum(chain.slowness) + 0.01 * (chain.units - 1))
        for chain in chains
    ]
    program.row(
        [Term(c, chain.units) for c, chain in zip(columns, chains, strict=True)], units
    )
    for sort, number in zip(sorts.tolist(), numbers.tolist(), strict=True):
        used = [chain.nodes.count(sort) for chain in chains]
        terms = [Term(c, n) for c, n in zip(columns, used, strict=True) if n]
        program.row(terms, most=number)
    answer = solve(program, Limits(WORK, engine="highs"))
    if answer.counts is None:
        return None
    return [
        chain
        for chain, count in zip(chains, answer.counts, strict=True)
        for _ in range(count)
    ]


def laid_on(
    job: Job,
    size: int,
    first: IntArray,
    nodes: IntArray,
    gpus: IntArray,
    chains: list[Chain],
) -> Iterator[IntArray]:
    """Node of every rank, for each stage that chains begin in and each order; (R,).

    Parameters
    ----------
    size : int
        Ranks of a unit.
    first, nodes : ndarray
        First rank of each unit, and the nodes that take them; other ranks get none.
    gpus : ndarray, shape (N,)
        Of every node.
    chains : list of Chain
        Of these units.
    """
    axes = job.parallelism
    stage, replica = (axes.coordinates[axis][first] for axis in ("pp", "dp"))
    cut = [chain for chain in chains if chain.cut]
    for start, is_spread in product(range(axes.pp), (True, False)):
        begins = _begins(stage, replica, start, cut, is_spread=is_spread)
        whole = [chain for chain in chains if not chain.cut]
        items = _all_units(begins, whole, len(first)) if begins is not None else None
        if items is None:
            if start > 0 or not is_spread:
                continue
            items = _one_by_one(chains, len(first))
            if items is None:
                return
        for order in permutations((stage, replica)):
            key = np.lexsort(order).argsort()
            along = sorted(items, key=lambda item: int(key[item[0]]))
            ranks = first[:, None] + np.arange(size)
            yield _on_nodes(axes.world_size, ranks, along, nodes, gpus)


def _begins(
    stage: IntArray,
    replica: IntArray,
    start: int,
    cut: list[Chain],
    *,
    is_spread: bool,
) -> dict[int, Chain] | None:
    """First unit of each chain, as few units of a replica cut as can be.

    Such units are of the given stage, or of the next ones. Chains lie far apart, or
    each as soon as it can: more of them then fit the first stages.
    """
    later = (stage - start) % (int(stage.max()) + 1)
    is_taken = np.zeros(len(stage), dtype=bool)
    load = np.zeros(int(replica.max()) + 1, dtype=np.int64)
    found: dict[int, Chain] = {}
    for place, chain in enumerate(sorted(cut, key=lambda one: -one.units)):
        first = np.arange(len(stage) - chain.units + 1)
        free = ~is_taken[first[:, None] + np.arange(chain.units)].any(axis=1)
        if not free.any():
            return None
        away = np.abs(first - is_spread * place * len(stage) // len(cut))
        parted = first[:, None] + np.array(chain.cut)
        owner = replica[parted]
        own = (owner[:, :, None] == owner[:, None, :]).sum(axis=2)
        worst = (load[owner] + own).max(axis=1)
        last = later[parted].max(axis=1)
        begin = int(np.lexsort((away, last, worst, ~free))[0])
        found[begin] = chain
        is_taken[begin : begin + chain.units] = True
        np.add.at(load, owner[begin], 1)
    return found


def _all_units(
    begins: dict[int, Chain], whole: list[Chain], units: int
) -> list[tuple[int, Chain]] | None:
    """All chains with their first units: whole ones between those that are cut."""
    left = sorted(whole, key=lambda chain: chain.units)
    ends = [begin + chain.units for begin, chain in sorted(begins.items())]
    found = list(begins.items())
    for at, end in zip([0, *ends], [*sorted(begins), units], strict=True):
        begin = at
        while begin < end:
            fits = [chain for chain in left if chain.units <= end - begin]
            if not left:
                return None
            chain = fits[-1] if fits else left[0]
            left.remove(chain)
            found.append((begin, _shortened(chain, end - begin)))
            begin += found[-1][1].units
    return found


def _one_by_one(chains: list[Chain], units: int) -> list[tuple[int, Chain]] | None:
    """The same with chains that are cut first, so that no gap between them is odd."""
    found: list[tuple[int, Chain]] = []
    begin = 0
    for chain in sorted(chains, key=lambda one: not one.cut):
        if chain.cut and begin + chain.units > units:
            return None
        if begin < units:
            found.append((begin, _shortened(chain, units - begin)))
            begin += found[-1][1].units
    return found


def _shortened(chain: Chain, most: int) -> Chain:
    """A chain that is not cut with so many units at most; others as they are."""
    taken = min(chain.units, most)
    if taken == chain.units:
        return chain
    return Chain(taken, (taken * (chain.held[0] // chain.units),), chain.nodes)


def _on_nodes(
    world: int,
    ranks: IntArray,
    along: list[tuple[int, Chain]],
    nodes: IntArray,
    gpus: IntArray,
) -> IntArray:
    """Node of every rank when chains take the nodes of a size in turn; shape (R,)."""
    free: dict[int, list[int]] = {}
    for node in nodes[::-1].tolist():
        free.setdefault(int(gpus[node]), []).append(node)
    node_of_rank = np.full(world, -1)
    for unit, chain in along:
        taken = [free[room].pop() for room in chain.nodes]
        held = ranks[unit : unit + chain.units].ravel()
        node_of_rank[held] = np.repeat(taken, chain.held)
    return node_of_rank
