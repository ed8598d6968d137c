"""Better placements near the best that are known."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.nestings.fill import tree_order
from placer.solve.parts import node_capacity
from placer.solve.polish.layout import layout_of
from placer.solve.polish.population import Population

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from placer.cost.hop_cost import HopCost
    from placer.job.model import Job
    from placer.solve.parts import Parts
    from placer.solve.polish.layout import Layout
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

DENSE = ("tp", "cp", "pp", "dp")
MOST_KNOWN = 4


class Known:
    """The best placements met so far, of different values."""

    def __init__(self) -> None:
        self._found: list[tuple[float, IntArray]] = []

    def add(self, value: float, gpu_of_rank: IntArray) -> None:
        """Keep a placement if it is among the best."""
        if all(value != known for known, _ in self._found):
            self._found.append((value, gpu_of_rank))
            self._found.sort(key=lambda known: known[0])
            del self._found[MOST_KNOWN:]

    def placements(self) -> list[IntArray]:
        """GPU of every rank of each, the best first."""
        return [gpu_of_rank for _, gpu_of_rank in self._found]


def polished(
    topology: Topology,
    job: Job,
    parts: Parts,
    hops: HopCost,
    known: Sequence[IntArray],
    seed: int,
    over: Callable[[], bool] = lambda: False,
) -> Iterator[IntArray]:
    """GPU of every rank in placements, each better than those before it.

    Parameters
    ----------
    topology, job, parts : Topology, Job, Parts
    hops : HopCost
    known : sequence of ndarray
        GPU of every rank in good placements, the best first.
    seed : int
    over : callable
        Asked now and then; True ends the work.
    """
    if not (known and hops.axes):
        return
    capacity = node_capacity(topology, parts.block)
    layout = layout_of(topology, parts, capacity, hops.axes, known[0])
    if layout is None or not layout.label.any():  # one unit has nowhere to go
        return
    homes = [layout.homes(gpu_of_rank) for gpu_of_rank in known]
    starts = [home for home in homes if home is not None]
    if not starts:
        return
    if len(np.unique(layout.fence)) == 1:
        starts += _in_axis_order(job, layout)
    population = Population(layout, hops.axes, np.array(starts), seed)
    for home in population.improve(over):
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
