"""Every knob of the search, given to it with the problem.

Tests and experiments pass other values: ``Problem.of(machine, job).with_params(...)``.
Tolerances of rounding stay with the code that they belong to: they are no choices.
Those of lower bounds are in `bound_params.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from placer.solve.problem.bound_params import BoundParams


@dataclass(frozen=True)
class Params(BoundParams):
    """How hard the search tries. Work is in CP-SAT's deterministic seconds."""

    # Placements that are tried one by one, by objective: all of a small job's.
    listed: Mapping[str, int] = field(
        default_factory=lambda: {"time": 20_000, "hop-cost": 100_000}
    )
    # Placements tried where more than are listed could be.
    listed_sample: int = 2_000
    # Races of walks of the annealer, each from other starts.
    races: int = 4
    # Whether methods other than constructions run.
    local_search: bool = True
    # They do not where constructions end no more above the bound, relative to the
    # value.
    search_gap: float = 0.0
    # A search ends once its value is no more above the bound, relative to the value.
    enough_gap: float = 0.0
    # One that is as good as needs be: the search ends with it.
    enough_value: float = 0.0
    # Whether nothing worse will do. Then nothing is annealed.
    asks_enough: bool = False
    # A lower bound that is known before. Then no other is worked out.
    known_bound: float = 0.0
    # Generations of local search after all methods.
    generations: int = 0
    # What each must gain for another one, relative to the cost.
    generation_gain: float = 0.0
