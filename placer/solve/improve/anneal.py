"""Better placements near the best that are known."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.improve.layout import layout_of
from placer.solve.improve.population import Population
from placer.solve.problem.objective import HopCostObjective
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.job.model import Job
    from placer.solve.improve.layout import Layout
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent
    from placer.solve.run.move_counts import MoveCounts

IntArray = npt.NDArray[np.int64]

DENSE = ("tp", "cp", "pp", "dp")


def annealed(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Anneal the elite pool on the hop cost."""
    if not isinstance(problem.goal, HopCostObjective):
        return
    name = f"annealed, from {incumbent.method}"
    for gpu_of_rank in polished(problem, incumbent.elite, budget, incumbent.moves):
        incumbent.offer(name, gpu_of_rank)
        if budget.is_over():
            return


def polished(
    problem: Problem, elite: Sequence[IntArray], budget: Budget, counts: MoveCounts
) -> Iterator[IntArray]:
    """GPU of every rank in placements, each better than those before it.

    Parameters
    ----------
    problem : Problem
        To minimise hop cost.
    elite : sequence of ndarray
        GPU of every rank in good placements, the best first.
    budget : Budget
    counts : MoveCounts
        Told of every move.
    """
    axes = problem.hops.axes
    if not (elite and axes):
        return
    layout = layout_of(problem, axes, elite[0])
    if layout is None or not layout.label.any():  # one unit has nowhere to go
        return
    homes = [layout.homes(gpu_of_rank) for gpu_of_rank in elite]
    starts = [home for home in homes if home is not None]
    if not starts:
        return
    if len(np.unique(layout.fence)) == 1:
        starts += _in_axis_order(problem.job, layout)
    population = Population(layout, axes, np.array(starts), problem, counts)
    for home in population.improve(budget):
        yield layout.gpu_of_rank(home)


def _in_axis_order(job: Job, layout: Layout) -> list[IntArray]:
    """Domain of every unit when they are laid along the tree, axis by axis."""
    first = np.unique(layout.label, return_index=True)[1]
    axes = ("etp", "ep", "pp", "edp") if job.parallelism.ep > 1 else DENSE
    of_unit = [job.parallelism.coordinates[axis][first] for axis in axes]
    varying = [values for values in of_unit if values.max() > 0]
    nodes = tree_order(layout.topology)
    along = layout.topology.domain_of_node[layout.tier][nodes]
    domains = along[np.sort(np.unique(along, return_index=True)[1])]
    places = np.repeat(domains, layout.room[domains] // layout.size)[: len(first)]
    found = []
    for order in permutations(varying):
        home = np.empty(len(first), dtype=np.int64)
        home[np.lexsort(order)] = places
        found.append(home)
    return found
