"""Simulated annealing of launches by nodes on the step time, each priced in full.

What changes is up to the caller: stretches of ranks, or what hosts hold. The walk
begins at the best placement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from placer.solve.run.cooling import accepts, cooling
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

State = TypeVar("State")


class Launches(Protocol[State]):
    """Launches by nodes that changes lead to."""

    rng: np.random.Generator

    def changed(self, state: State) -> State | None:
        """Another launch, by a change drawn at random; None where none was found."""

    def nodes(self, state: State) -> npt.NDArray[np.int64]:
        """Node of every rank, shape (R,)."""


def offer_walked(
    problem: Problem,
    incumbent: Incumbent,
    budget: Budget,
    name: str,
    launches: Launches[State],
    state: State,
    most: int,
) -> None:
    """Offer the best launch that is met, if it is better than the start.

    Parameters
    ----------
    name : str
        Of the walk, after the method that it starts from.
    state : State
        The launch of the best placement; it is not changed.
    most : int
        Placements priced at the most.
    """
    params, value = problem.params, float(incumbent.value)
    most = min(most, params.ranks_priced // problem.job.world_size)
    gap, least = max(value - float(incumbent.bound), EXACT * value), value
    best = None
    for heat in cooling(*params.exchange_heat, most, budget):
        other = launches.changed(state)
        if other is None:
            continue
        gpus = problem.machine.gpus_on(launches.nodes(other))
        if not problem.allows(gpus):
            continue
        step_s = float(problem.goal.value(gpus))
        if not accepts(step_s - value, gap * heat, launches.rng.random):
            continue
        state, value = other, step_s
        if value < least * (1 - EXACT):
            least, best = value, gpus
    if best is not None:
        known = incumbent.method
        incumbent.offer(known if name in known else f"{known}, {name}", best)
