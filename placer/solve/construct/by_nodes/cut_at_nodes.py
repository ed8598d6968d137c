"""Units that nodes do not hold whole, cut where nodes end.

The groups that are left over lie on *chains* of nodes: so many consecutive groups on so
many nodes, no part of a group small. A program chooses the chains: as few groups as can
be are cut, then as few follow each other. Where the islands of a host are linked as
fast as the GPUs of one, hosts are the nodes. Otherwise groups are cut between islands
too. See docs/method.md, "Groups cut where nodes end".

Shapes: U units, D islands, or hosts without any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, permutations, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.units.units import divide_evenly
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.problem.axes import sizes_kept_whole
from placer.solve.problem.launch import run_tiers
from placer.solve.tree.base import base_tier, linked_tier
from placer.solve.tree.fill import in_turn, tree_order

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

Counts = tuple[int, ...]
Begun = tuple[Counts, tuple[Counts, ...]]

LONGEST, MOST_RANKS = 8, 64  # units of a chain, and ranks if it has several
SORTS = 4  # sizes of nodes that chains are made of, the most frequent
WORK = 1_000  # nodes of the tree of a program


class Chain(NamedTuple):
    """Consecutive units on a run of nodes.

    Attributes
    ----------
    held : tuple of int
        Ranks that each island of each node holds, in order.
    nodes : tuple of tuple of int
        GPUs of each island of each of these nodes.
    """

    units: int
    held: Counts
    nodes: tuple[Counts, ...]

    @property
    def size(self) -> int:
        """Ranks of a unit."""
        return sum(self.held) // self.units

    @property
    def cut(self) -> list[int]:
        """Units of the chain that lie on several nodes, from 0 on."""
        islands = [0, *accumulate(len(node) for node in self.nodes)]
        ends = (sum(self.held[:last]) for last in islands)
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
    if problem.job.launcher == "free" or tier not in run_tiers(machine):
        return
    gpus = np.bincount(machine.domain_of_gpu[tier])
    home, domain = np.unique(
        (machine.host_of_node, machine.domain_of_node[tier]), axis=1
    )
    islands = np.split(domain, np.flatnonzero(np.diff(home)) + 1)
    along = dict.fromkeys(machine.host_of_node[tree_order(machine)].tolist())
    hosts = [tuple(islands[host].tolist()) for host in along]
    sorts = [tuple(gpus[list(host)].tolist()) for host in hosts]
    world = axes.world_size
    for size in sizes_kept_whole(axes):
        holds_all = int((gpus // size).sum()) * size >= world
        if holds_all or world % size or divide_evenly(gpus, size):
            continue
        for longest in lengths_of_chains(size):
            found = fewest_cut_chains(sorts, size, world, longest)
            if found is None:
                continue
            least, chains = found
            told = f"groups of {size} cut at nodes, parts of {least} or more"
            first = np.arange(0, world, size)
            for row in laid_on(problem.job, size, first, hosts, gpus, chains):
                yield told, in_turn(machine.domain_of_gpu[tier], row)


def lengths_of_chains(size: int) -> range:
    """Units that chains of units of so many ranks may have, each tried in turn."""
    return range(1, max(1, min(LONGEST, MOST_RANKS // size)) + 1)


def fewest_cut_chains(
    nodes: Iterable[Counts], size: int, world: int, longest: int
) -> tuple[int, list[Chain]] | None:
    """The largest least part that can be, with chains for all units; None if none.

    Parameters
    ----------
    nodes : iterable of tuple of int
        GPUs of the islands of each.
    size, world, longest : int
        Ranks of a unit and in all, and units of a chain at the most.
    """
    numbers = dict(sorted(Counter(sorted(nodes)).most_common(SORTS)))
    sorts = tuple(numbers)
    whole = []
    for sort in sorts:
        held = tuple(gpus // size * size for gpus in sort)
        if any(held):
            whole.append(Chain(sum(held) // size, held, (sort,)))
    for least in range(size // 2, 0, -1):
        cut = [
            chain
            for units in range(1, longest + 1)
            for chain in chains_of(units, size, least, sorts)
            if chain.cut or len(chain.nodes) == 1
        ]
        chosen = _chosen([*whole, *cut], numbers, world // size)
        if chosen is not None:
            return least, chosen
    return None


def chains_of(
    units: int, size: int, least: int, sorts: Sequence[Counts]
) -> list[Chain]:
    """Chains of so many units, none with nodes to spare, no part below the least.

    Parameters
    ----------
    units, size, least : int
        Units, ranks of each, and of a part of one.
    sorts : sequence of tuple of int
        GPUs of the islands of the nodes there are.
    """
    # What begins the chain up to a rank, by how many nodes of each sort it takes.
    begun: list[dict[Counts, Begun]] = [{} for _ in range(units * size + 1)]
    begun[0][(0,) * len(sorts)] = ((), ())
    ends = {at for at in range(units * size) if _may_end(at, size, least)}
    ends.add(units * size)
    for begin in sorted(ends):
        begun[begin] = _fewest(begun[begin])
        for sort, room in enumerate(sorts):
            for filled in _filled(begin, room, ends, size, least):
                end = begin + sum(filled)
                for used, (held, nodes) in begun[begin].items():
                    more = (*used[:sort], used[sort] + 1, *used[sort + 1 :])
                    longer = (*held, *filled), (*nodes, room)
                    begun[end].setdefault(more, longer)
    found = _fewest(begun[-1]).values()
    return [Chain(units, *held) for held in found if len(held[0]) > 1]


def _filled(
    begin: int, room: Counts, ends: set[int], size: int, least: int
) -> Iterator[Counts]:
    """Ranks of each island of a node from a rank of a chain on, the fullest first."""
    ways: list[Counts] = [()]
    for gpus in room:
        ways = [
            (*held, more)
            for held in ways
            for more in range(gpus, -1, -1)
            if begin + sum(held) + more in ends
            and _is_even(begin + sum(held), begin + sum(held) + more, size, least)
        ]
    yield from (held for held in ways if any(held))


def _fewest(begun: dict[Counts, Begun]) -> dict[Counts, Begun]:
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
    chains: list[Chain], numbers: dict[Counts, int], units: int
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
    for sort, number in numbers.items():
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
    nodes: Sequence[Counts],
    gpus: IntArray,
    chains: list[Chain],
) -> Iterator[IntArray]:
    """Island of every rank, for each stage that chains begin in and each order; (R,).

    Parameters
    ----------
    size : int
        Ranks of a unit.
    first : ndarray
        First rank of each unit; other ranks get none.
    nodes : sequence of tuple of int
        Islands of the nodes that take them.
    gpus : ndarray, shape (D,)
        Of every island.
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
    """First unit of each chain, no replica with many or slow units that are cut.

    Such units are of the given stage, or of the next ones. Chains lie far apart, or
    each as soon as it can: more of them then fit the first stages.
    """
    later = (stage - start) % (int(stage.max()) + 1)
    is_taken = np.zeros(len(stage), dtype=bool)
    load = np.zeros(int(replica.max()) + 1)
    found: dict[int, Chain] = {}
    for place, chain in enumerate(sorted(cut, key=lambda one: -one.units)):
        first = np.arange(len(stage) - chain.units + 1)
        free = ~is_taken[first[:, None] + np.arange(chain.units)].any(axis=1)
        if not free.any():
            return None
        away = np.abs(first - is_spread * place * len(stage) // len(cut))
        parted = first[:, None] + np.array(chain.cut)
        owner = replica[parted]
        slow = np.array(chain.slowness)
        own = ((owner[:, :, None] == owner[:, None, :]) * slow).sum(axis=2)
        worst = (load[owner] + own).max(axis=1)
        last = later[parted].max(axis=1)
        begin = int(np.lexsort((away, last, worst, ~free))[0])
        found[begin] = chain
        is_taken[begin : begin + chain.units] = True
        np.add.at(load, owner[begin], slow)
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
    ends = np.minimum(np.cumsum(chain.held), taken * chain.size)
    return Chain(taken, tuple(np.diff(ends, prepend=0).tolist()), chain.nodes)


def _on_nodes(
    world: int,
    ranks: IntArray,
    along: list[tuple[int, Chain]],
    nodes: Sequence[Counts],
    gpus: IntArray,
) -> IntArray:
    """Island of every rank when chains take the nodes of a sort in turn; shape (R,)."""
    free: dict[Counts, list[Counts]] = {}
    for node in nodes[::-1]:
        free.setdefault(tuple(gpus[list(node)].tolist()), []).append(node)
    island_of_rank = np.full(world, -1)
    for unit, chain in along:
        taken = [island for sort in chain.nodes for island in free[sort].pop()]
        held = ranks[unit : unit + chain.units].ravel()
        island_of_rank[held] = np.repeat(taken, chain.held)
    return island_of_rank
