"""Chains of units on domains that together hold whole chains.

A pipeline of 16 stages lies in four racks with room for four, or in four with room for
three and one for four. Where chains end with racks, each is cut once less. Such sets of
domains are looked for inside each domain of the next tier, then among what is left
further out. Shapes: D domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.problem.axes import DENSE, EXPERT
from placer.solve.tree.base import base_tier, linked_tier
from placer.solve.tree.capacity import parent_of_domain, whole_sets
from placer.solve.tree.fill import fill_domains, in_tree_order

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

MOST_TOURED = 4_096  # chains whose order is looked for
LOOKED = 256  # domains that a set is made of, the first of the order
# Chains of a set, and whether it may hold a little more, in the order tried: single
# domains first, then as many chains as share stages, with nothing to spare at first.
TOGETHER: Sequence[tuple[int, bool]] = [
    (1, True),
    *((many, waste) for waste in (False, True) for many in range(2, 7)),
]


class _Chain(NamedTuple):
    """Ranks of a chain, of a unit of it, and of half a unit or a whole one."""

    ranks: int
    unit: int
    grain: int


def whole_chains(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Chains that end with domains."""
    incumbent.offer_all(whole_chain_fills(problem))


def whole_chain_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) for chains along each axis but the outermost.

    In the smallest domains with room for two units that it costs something to leave.
    """
    machine, axes = problem.machine, problem.job.parallelism
    sets = problem.colocation.uniform_sizes()
    if sets is None:
        return
    innermost = (linked_tier if problem.goal.name == "time" else base_tier)(machine)
    family = EXPERT if axes.ep > 1 else DENSE
    along = [axes.coordinates[axis] for axis in family]
    sizes = [int(values.max()) + 1 for values in along]
    inside = [*accumulate(sizes, mul)]
    for number, (unit, ranks) in enumerate(pairwise(inside[:-1])):
        axis, size = family[number + 1], sizes[number]
        is_halved = family is DENSE and unit > sizes[0] and size % 2 == 0
        chain = _Chain(ranks, unit, unit // 2 if is_halved else unit)
        for tier in range(innermost, len(machine.tiers) - 1):
            if chain.grain % sets[tier] or ranks == unit:
                break
            units = [*sets[:tier], chain.grain]
            takes = whole_sets(machine, problem.capacity, units)
            if takes[tier].max() < 2 * unit:
                continue
            tied = problem.colocation.label[:tier]
            cut = number + 1
            sequence = np.lexsort((*along[:cut], *tied, *along[cut:]))
            if (found := _domains(problem, tier, takes[tier], chain)) is not None:
                domain = np.empty_like(found)
                domain[sequence] = found
                node_of_rank = fill_domains(machine, takes, domain, sequence)
                yield f"whole {axis} chains", machine.gpus_on(node_of_rank)
            break


# Domains that hold so many chains together.
_Set = tuple[list[int], int]


def _domains(
    problem: Problem, tier: int, takes: IntArray, chain: _Chain
) -> IntArray | None:
    """Domain of each rank in turn, None where units do not fit; shape (R,)."""
    machine, world = problem.machine, problem.job.world_size
    room = takes // chain.unit * chain.unit
    halves = 2 * -(-(world - int(room.sum())) // chain.unit)
    if halves > 0:
        room[np.flatnonzero(takes > room)[:halves]] += chain.grain
    if room.sum() < world:
        return None
    place = np.argsort(in_tree_order(machine, tier))
    further = range(tier + 1, len(machine.tiers))
    parents = [parent_of_domain(machine, outer) for outer in further]
    spare = (int(room.sum()) - world) // chain.grain
    grains = room // chain.grain
    # Units of two halves come first.
    in_turn = np.lexsort((place, room % chain.unit == 0)).tolist()
    turn = {d: place for place, d in enumerate(in_turn)}
    left, placed = set(in_turn), list[IntArray]()
    wanted = missing = world // chain.ranks
    size = chain.ranks // chain.grain
    for own, chains in _sets(grains, parents, place, size, spare):
        if chains <= missing:
            missing -= chains
            left -= {*own}
            ordered = sorted(own, key=turn.__getitem__) if halves > 0 else own
            placed.append(_there_and_back(ordered, room, chain)[:chains])
    along = sorted(left, key=lambda d: int(place[d]))
    rows = np.concatenate([*placed, _there_and_back(along, room, chain)])[:wanted]
    if len(rows) < wanted:
        return None
    rows = rows[np.argsort(place[rows].min(axis=1), kind="stable")]
    if len(rows) <= MOST_TOURED:
        tiers = [one.distance for one in machine.tiers[tier:]]
        rows = rows[_tour(rows[:, :: chain.grain], parents, np.diff(tiers).tolist())]
    return rows.ravel()


def _there_and_back(domains: Sequence[int], room: IntArray, chain: _Chain) -> IntArray:
    """Domain of each rank of chains that domains hold, every second one backwards.

    Two chains that share a domain then have the same stages there.
    """
    filled = np.repeat(np.array(domains, dtype=np.int64), room[domains])
    many = len(filled) // chain.ranks
    rows = filled[: many * chain.ranks]
    rows = rows.reshape(many, chain.ranks // chain.unit, chain.unit)
    rows[1::2] = rows[1::2, ::-1]
    return rows.reshape(many, chain.ranks)


def _tour(rows: IntArray, parents: Sequence[IntArray], rises: list[float]) -> list[int]:
    """An order of chains in which the nearest to the last one comes next.

    They are the nearer, the more of their units are in the same domains.
    """
    left, found = np.arange(1, len(rows)), [0]
    domains = [rows]
    for parent in parents[:-1]:
        domains.append(parent[domains[-1]])
    while len(left):
        away = np.zeros(len(left))
        for rise, domain in zip(rises, domains, strict=True):
            away += rise * (domain[left] != domain[found[-1]]).sum(axis=1)
        nearest = int(away.argmin())
        found.append(int(left[nearest]))
        left = np.delete(left, nearest)
    return found


def _sets(
    room: IntArray, parents: Sequence[IntArray], place: IntArray, size: int, spare: int
) -> list[_Set]:
    """Sets of domains that hold whole chains and little more, the innermost first."""
    pools = {d: [d] for d in np.argsort(place).tolist() if room[d]}
    found: list[_Set] = []
    for parent in parents:
        outer: dict[int, list[int]] = {}
        for domain, own in pools.items():
            outer.setdefault(int(parent[domain]), []).extend(own)
        rest = {d: int(room[own].sum()) % size for d, own in outer.items()}
        for domain in sorted(outer, key=rest.__getitem__):
            own = outer[domain]
            sets = _sets_of(own, room, size, min(spare, rest[domain]))
            found += sets
            taken = {d for domains, _ in sets for d in domains}
            spare -= sum(int(room[d]) for d in taken)
            spare += size * sum(chains for _, chains in sets)
            outer[domain] = [d for d in own if d not in taken]
        pools = outer
    return found


def _sets_of(
    domains: Sequence[int], room: IntArray, size: int, free: int
) -> list[_Set]:
    """Sets found among some domains in order, that leave no more free in all."""
    left, found = [*domains], list[_Set]()
    while left:
        rooms = room[left[:LOOKED]].tolist()
        for many, waste in TOGETHER:
            chosen = _fitting(rooms, many * size, free * waste)
            if chosen:
                break
        else:
            break
        found.append(([left[i] for i in chosen], many))
        free -= sum(rooms[i] for i in chosen) - many * size
        first = [d for i, d in enumerate(left[:LOOKED]) if i not in chosen]
        left = first + left[LOOKED:]
    return found


def _fitting(sizes: Sequence[int], least: int, spare: int) -> set[int]:
    """Places of the first sizes that add up to the least or little more, if any."""
    sums = [*accumulate(sizes, lambda known, size: known | known << size, initial=1)]
    enough = sums[-1] >> least & (1 << spare + 1) - 1
    if not enough:
        return set()
    total = least + (enough & -enough).bit_length() - 1
    found = set()
    for place in reversed(range(len(sizes))):
        if not sums[place] >> total & 1:
            found.add(place)
            total -= sizes[place]
    return found
