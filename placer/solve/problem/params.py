"""Every knob of the search, given to it with the problem, and those of each effort.

Tests and experiments pass other values: ``Problem.of(machine, job).with_params(...)``.
What is rounding is no choice (`placer.base.rounding`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import maxsize
from typing import Any, Final, Literal, TypeGuard

from placer.cost import JITTER


@dataclass(frozen=True)
class Params:
    """How hard the search tries. Work is in CP-SAT's deterministic seconds."""

    # Placements that are tried one by one, by objective: all of a small job's, and how
    # many nodes it fills at the most.
    listed: Mapping[str, int] = field(
        default_factory=lambda: {"time": 20_000, "hop-cost": 100_000}
    )
    listed_nodes: int = 8
    # Of a job of very few, before any other method.
    few_listed: int = 2_000
    # Placements of one construction that are priced, and ranks of all of them together:
    # pricing takes time in proportion to the ranks.
    fills: int = 64
    ranks_priced: int = 2_000_000
    # Boxes of nestings that are kept at each tier, the cheapest there; and pairs of
    # unlike domains that may exchange what they hold for a better rest.
    compared: int = 2_048
    # Edges of the graph of traffic, at most, for it to be cut into tiles, and pairs of
    # them at one vertex to be cut into boxes; vertices in all thorough sweeps together,
    # and tiles in the making that these keep; ways to cut boxes that are looked at.
    tiled_edges: int = 1_000_000
    tiled_vertices: int = 16_000
    tiled_beam: int = 12
    box_cuts: int = 200_000
    # Nestings tried beside an optimal baseline, and for each other launch, in jobs of
    # at most so many ranks.
    tidy_fills: int = 4
    launch_fills: int = 8
    most_ranks: int = 131_072
    # Placements of different values that local search starts from.
    elite: int = 4
    # Moves of a walk that mends what breaks rules, for a unit and in all.
    mending_moves: tuple[int, int] = (100, 25_000)
    # Least and most time, in s, to find out which rules are to blame and what would
    # help; between them what the search leaves of its own.
    diagnosis_s: tuple[float, float] = (0.3, 30.0)
    # Walks of a job that runs already after the first, and moves of one.
    homeward_walks: int = 8
    homeward_moves: int = 60_000
    # How hot walks begin: at most so much of the value, and of the usual change of a
    # move; how many times cooler they end. Moves tried to know that change, and pieces
    # of a walk, each cooler, between which it looks at the time.
    heat: tuple[float, float, float] = (1e-3, 0.2, 300.0)
    probes_and_pieces: tuple[int, int] = (1_800, 100)
    # Races of walks of the annealer, each from other starts; and moves of a walk of the
    # first round, for a unit and at most.
    races: int = 4
    walk_moves: tuple[int, int] = (400, 200_000)
    # Whether methods other than constructions run.
    local_search: bool = True
    # They do not where constructions end no more above the bound, relative to the
    # value.
    search_gap: float = 0.0
    # A search ends once its value is no more above the bound, relative to the value.
    enough_gap: float = 0.0
    # A value that suffices: the search ends with it.
    enough_value: float = 0.0
    # Whether anything above that value is of no use: nothing is annealed then.
    asks_enough: bool = False
    # A lower bound that is known before: no other is worked out then.
    known_bound: float = 0.0
    # Generations of local search after all methods.
    generations: int = 0
    # What a generation must gain for another one to follow, relative to the cost.
    generation_gain: float = 1e-3
    # Columns of a program of a bound in whole numbers, at most: of parts of rings and
    # cliques on the hop cost, and of ranks near their partners.
    part_columns: int = 8_000
    partner_columns: int = 2_000
    # Boxes of replicas that the bound with parts of expert groups tells apart, and
    # prices of parts that it tries; with none it is left out.
    expert_boxes: int = 40_000
    expert_rounds: int = 40
    # Lists of sizes of such parts that fit a domain or make up a group; of more that
    # bound says nothing.
    expert_sums: int = 4_000


# How long a search goes on: until when, as people ask for it.
QUICK: Final = "quick"
MEASURABLE: Final = "measurable"
NORMAL: Final = "normal"
FULL: Final = "full"
EFFORTS = (QUICK, MEASURABLE, NORMAL, FULL)

EffortName = Literal["quick", "measurable", "normal", "full"]
Effort = EffortName | int


def is_effort(effort: str | int) -> TypeGuard[Effort]:
    """Whether there is such an effort: a name, or a number of generations."""
    if isinstance(effort, str):
        return effort in EFFORTS
    return effort >= 0


def params_of(effort: Effort, objective: str = "time") -> Mapping[str, Any]:
    """The `Params` of an effort.

    ``quick`` makes constructions only, ``normal`` goes on after all methods while that
    helps, ``full`` until the time is over; a number is one of generations.
    ``measurable`` is normal, and ends where no step could be shorter by what shows
    between two runs.
    """
    if effort == QUICK:
        return {"local_search": False}
    if effort in (NORMAL, MEASURABLE):
        is_enough = effort == MEASURABLE and objective == "time"
        ends = {"enough_gap": JITTER} if is_enough else {}
        return {"generations": maxsize, **ends}
    generations = maxsize if effort == FULL else effort
    return {"generations": generations, "generation_gain": 0.0}
