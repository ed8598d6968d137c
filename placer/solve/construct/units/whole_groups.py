"""Groups whole where domains hold them, and others in few parts that lie near.

Ranks that stay together are gathered into groups, groups into chains, and so on until
all are in one, the innermost domains first: what a domain cannot complete is completed
in the next one out (`pools.py`). So the heaviest groups are cut the least, and what
holds many of them lies in as few of the outer domains as can be. Or chains end with
domains that together hold whole ones. Shapes: R ranks, D domains, S sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations, product

import numpy as np

from placer.base.arrays import IntArray
from placer.job.axes import Parallelism
from placer.solve.construct.units.pools import Pools, Way
from placer.solve.construct.units.rows import chained
from placer.solve.problem.axes import DENSE, EXPERT, KEPT_WHOLE
from placer.solve.problem.colocation import colocation_of, join
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Candidate, Incumbent
from placer.solve.tree.base import base_tier, linked_tier
from placer.solve.tree.capacity import node_capacity, whole_sets
from placer.solve.tree.fill import fill_domains
from placer.solve.tree.in_runs import fill_in_runs
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
            if in_runs:
                row = machine.domain_of_node[tier]
                found = fill_in_runs(row, takes[0], domain_of_rank)
                if found is None:
                    continue
                node_of_rank = found
            else:
                node_of_rank = fill_domains(machine, takes, domain_of_rank, sequence)
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
