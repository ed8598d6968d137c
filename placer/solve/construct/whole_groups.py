"""Groups whole where domains hold them, and others in few parts that lie near.

Ranks that stay together are gathered into groups, groups into chains, and so on until
all are in one, the innermost domains first: what a domain cannot complete is completed
in the next one out. So the heaviest groups are cut the least, and what
holds many of them lies in as few of the outer domains as can be. Or chains end with
domains that together hold whole ones. Shapes: R ranks, D domains, S sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise, permutations, product

import numpy as np

from placer.base.arrays import IntArray
from placer.job.axes import Parallelism
from placer.solve.construct.chains import chained
from placer.solve.problem.axes import DENSE, EXPERT, KEPT_WHOLE
from placer.solve.problem.colocation import colocation_of, join
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Candidate, Incumbent
from placer.solve.tree.domains import (
    ancestor_of_domain,
    base_tier,
    linked_tier,
    node_capacity,
    whole_sets,
)
from placer.solve.tree.fill import fill_domains
from placer.topology.machine import Machine


def whole_groups(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Groups whole first, in every order of the axes that part them."""
    incumbent.offer_all(whole_group_fills(problem))


def whole_group_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) of every way to do that.

    In the smallest domains that it costs something to leave. Nodes of a node-contiguous
    launch hold equal blocks; or runs of different lengths, in domains of several nodes.
    """
    machine, job = problem.machine, problem.job
    costly = (linked_tier if problem.goal.name == "time" else base_tier)(machine)
    for block in dict.fromkeys((problem.colocation.block, 1)):
        in_runs = block == 1 and job.launcher != "free"
        tier = max(costly, 1) if in_runs else costly
        if tier >= len(machine.tiers) - 1:
            continue
        colocation = colocation_of(machine, job, block)
        sizes = colocation.uniform_sizes()
        if sizes is None:
            continue
        grain = sizes[tier]
        capacity = node_capacity(machine, block)
        takes = whole_sets(machine, capacity, sizes[: tier + 1])
        if takes[-1].sum() < job.world_size:
            continue
        sequences = _sequences(job.parallelism, [*colocation.label[: tier + 1]])
        room = takes[-1] // grain
        for (name, sequence, many), way in product(sequences, Way):
            if way is Way.IN_ROWS and len(many) == len(KEPT_WHOLE) + 1:
                continue  # groups are in no chains
            domains = _domains(machine, tier, room, many, way)
            if not len(domains):
                continue
            domain_of_rank = np.empty(job.world_size, dtype=np.int64)
            domain_of_rank[sequence] = np.repeat(domains, grain)
            order = None if in_runs else sequence
            node_of_rank = fill_domains(machine, takes, domain_of_rank, order)
            if node_of_rank is not None:
                yield f"whole {name}{way.value}", machine.gpus_on(node_of_rank)


def _sequences(
    axes: Parallelism, inner: Sequence[IntArray]
) -> Iterator[tuple[str, IntArray, list[int]]]:
    """Name, ranks in turn, and how many sets each larger one is made of.

    Groups are joined along the axes that are kept whole, then along all others.
    """
    rows = [*inner]
    for axis in KEPT_WHOLE:
        label = join(rows[-1], axes.ranks_of_group[axis])
        rows.append(np.unique(label, return_inverse=True)[1].reshape(-1))
    unit = rows[-1]
    first = np.unique(unit, return_index=True)[1]
    grid = EXPERT if axes.ep > 1 else DENSE
    along = {axis: axes.coordinates[axis][first][unit] for axis in grid}
    for order in permutations(axis for axis in grid if along[axis].max() > 0):
        keys = [along[axis] for axis in order]
        lines = [
            np.unique(keys[cut:], axis=1, return_inverse=True)[1].reshape(-1)
            for cut in range(1, len(keys))
        ]
        levels = [*rows[len(inner) - 1 :], *lines, 0 * unit]
        counts = [np.unique(np.bincount(label)) for label in levels]
        if all(len(count) == 1 for count in counts):
            many = [int(b[0] // a[0]) for a, b in pairwise(counts)]
            name = " ".join((*(f"{axis} chains," for axis in order[:1]), "groups"))
            yield name, np.lexsort([*rows, *keys]), many


def _domains(
    machine: Machine, tier: int, room: IntArray, many: Sequence[int], way: Way
) -> IntArray:
    """Domain of each set that stays together, in the order of the last, largest set.

    None at all where chains in rows are too long, or do not fit.

    Parameters
    ----------
    room : ndarray, shape (D,), sets
    many : sequence of int
        How many sets each larger one is made of.
    way : Way
        None is always best. Rests lie anywhere of the innermost groups alone.
    """
    home = np.repeat(np.arange(len(room)), room)
    rows = home[:, None]
    wanted, own = int(np.prod(many)), tier
    for size in many:
        wanted //= size
        if size == 1:
            continue
        if way is Way.IN_ROWS and wanted == many[-1]:
            # Single units end anywhere.
            while np.bincount(home).max() < 2 and own < len(machine.tiers) - 1:
                own += 1
                home = machine.domain_around[own - 1][home]
            return np.asarray(rows[chained(machine, own, home, size, wanted)].ravel())
        outer = rows.shape[1] > 1 and way is Way.ANYWHERE
        gathers = Way.AT_ONCE if outer else way
        sets = Pools(machine, own, home).gathered(size, wanted, gathers)
        rows, home = rows[sets].reshape(len(sets), -1), home[sets[:, 0]]
    return np.asarray(rows[0])


class Way(Enum):
    """How sets are gathered that no domain holds whole; and what it is called."""

    # The largest rooms hold the main parts of all, what is left their rests.
    AT_ONCE = ", at once"
    # So, but over the whole machine: a rest lies far away rather than in two parts.
    ANYWHERE = ", rests anywhere"
    # One by one, each in the rooms that fit best; chains then go through domains in
    # turn, in the order in which fewest are cut.
    IN_ROWS = ", in rows"


class Pools:
    """Sets that are not yet part of larger ones, by domain.

    Levels are tiers from that of the sets' domains out.

    ``home`` ((S,)): domain of each, mostly.
    """

    def __init__(self, machine: Machine, tier: int, home: IntArray) -> None:
        domains = np.arange(int(machine.domain_of_node[tier].max()) + 1)
        outer = range(tier + 1, len(machine.tiers))
        self._sets: list[list[int]] = [
            own.tolist() for own in _by_owner(home, len(domains))
        ]
        self._within = [
            domains,
            *(ancestor_of_domain(machine, tier, each) for each in outer),
        ]
        self._free = [
            np.bincount(within[home], minlength=int(within.max()) + 1)
            for within in self._within
        ]
        self._inside: list[list[IntArray]] = [[]]
        for each in outer:
            around = machine.domain_around[each - 1]
            self._inside.append(_by_owner(around, int(around.max()) + 1))

    def gathered(self, size: int, wanted: int, way: Way) -> IntArray:
        """Sets of a size, so many or more, the main part first; shape (S, size)."""
        found: list[list[int]] = []
        levels = range(len(self._free))
        for level in (0, levels[-1]) if way is Way.ANYWHERE else levels:
            free = self._free[level]
            for domain in np.argsort(-free, kind="stable").tolist():
                many = int(free[domain]) // size
                if level:
                    many = min(many, max(wanted - len(found), 0))
                if level and many and way is not Way.IN_ROWS:
                    found += self._completed(level, domain, size, many)
                else:
                    found += [self._taken(level, domain, size) for _ in range(many)]
        return np.array(found)

    def _completed(
        self, level: int, domain: int, size: int, many: int
    ) -> list[list[int]]:
        """Sets of which the largest rooms of a domain hold the main parts.

        Other rooms then hold the rests, the largest first: one that is near and has
        enough, or any that has, or several.
        """
        room = self._free[0]
        own = np.flatnonzero(self._within[level] == domain)
        mains = own[np.argsort(-room[own], kind="stable")][many - 1 :: -1].tolist()
        found = [self._taken(0, main, int(room[main])) for main in mains]
        for near in range(1, level + 1):
            for part, main in zip(found, mains, strict=True):
                inside = self._within[near] == self._within[near][main]
                enough = np.flatnonzero(inside & (room >= size - len(part)))
                if len(part) < size and len(enough):
                    best = int(enough[room[enough].argmin()])
                    part += self._taken(0, best, size - len(part))
        for part, main in zip(found, mains, strict=True):
            homes = [int(within[main]) for within in self._within[: level + 1]]
            rest = size - len(part)
            near = next(n for n, h in enumerate(homes) if self._free[n][h] >= rest)
            part += self._taken(near, homes[near], rest)
        return found

    def _taken(self, level: int, domain: int, size: int) -> list[int]:
        """So many sets of a domain: of the room that fits best, else of the largest."""
        if not level:
            for free, within in zip(self._free, self._within, strict=True):
                free[within[domain]] -= size
            own = self._sets[domain]
            self._sets[domain] = own[size:]
            return own[:size]
        inside = self._inside[level][domain]
        taken: list[int] = []
        while rest := size - len(taken):
            free = self._free[level - 1][inside]
            enough = np.where(free >= rest, -free, -free.max() - 1)
            place = int((free if free.max() < rest else enough).argmax())
            part = min(rest, int(free[place]))
            taken += self._taken(level - 1, int(inside[place]), part)
        return taken


def _by_owner(owner: IntArray, count: int) -> list[IntArray]:
    """What each owner has, in order."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=count))
    return np.split(order, ends[:-1])
