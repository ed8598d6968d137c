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

    # Placements of different values that local search starts from.
    elite: int = 4
    # Nestings that are priced in full, and ranks of all of them together: pricing takes
    # time in proportion to the ranks.
    nestings: int = 64
    ranks_priced: int = 2_000_000
    # Boxes of one tier that nestings look at; beyond, the cheapest by their own tier
    # are kept.
    boxes: int = 2048
    # What an edge of a shard group is worth where time is the objective: between cp and
    # pp, since each micro-batch gathers whole parameters.
    shard_weight: float = 100.0
    # Nodes of the tree of one program that cuts pipelines alike; patterns of all such
    # programs together.
    cut_nodes: int = 100
    all_cut_patterns: int = 100_000
    # Ways to cut a replica that one such program chooses from.
    cut_ways: int = 64
    # Kinds of runs that a leaf holds in such a program, and how many combinations of
    # them are looked at and kept.
    pattern_runs: int = 3
    patterns_combined: int = 3_000_000
    patterns: int = 20_000
    # Work of packing co-location sets of several sizes, and of counting which nodes to
    # avoid must be used.
    pack_work: float = 30.0
    readmit_work: float = 20.0
    # Placements that are tried one by one, by objective: all of a small job's.
    listed: Mapping[str, int] = field(
        default_factory=lambda: {"time": 20_000, "hop-cost": 100_000}
    )
    # Placements that are tried one by one before any other search under rules, and
    # without rules before programs.
    listed_under_rules: int = 2_000
    # Nodes' worth of units of a small job; placements tried of more than are listed.
    listed_units: int = 8
    listed_sample: int = 2_000
    # Work of the exact model of a small job.
    exact_work: float = 2.0
    # Units times domains of an exact model: of hop cost, of groups of the job's own.
    hop_homes: int = 320
    group_homes: int = 2_000
    # Races of walks of the annealer, each from other starts.
    races: int = 4
    # Edges of a graph that is cut into tiles, at most, and vertices of all that are
    # cut, sweep after sweep.
    tile_edges: int = 1_000_000
    tile_vertices: int = 60_000
    # Pairs of edges at one rank that are looked at for directions of a graph.
    direction_work: int = 2_000_000
    # Ways to cut boxes of a grid in two that are looked at.
    box_work: int = 400_000
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
    # Work of each search of a generation relative to the first search: at least, and
    # after generations that found nothing.
    generation_work: tuple[float, float] = (0.25, 4.0)
    # Nodes of the tree of a program on what runs domains hold.
    run_nodes: int = 1_000
    # A gap in which programs that count parts are not worth their time.
    parts_walk_gap: float = 0.01
    # Sets of hosts to avoid that are searched when some must be used.
    avoided_sets: int = 24
    # Nodes of a machine that is searched whole besides, its rules mended.
    small_machine: int = 64
    # Domains among which the next is chosen when replicas are laid one after the other,
    # a fill for each number; 1 is tree order.
    limited_windows: tuple[int, ...] = (1, 4, 16, 64, 256)
    # Turns of the ring, and exchanges of replicas, tried for the pins of a placement.
    pin_turns: int = 64
    pin_exchanges: int = 400
    # Hosts of a pin tried for an exchange of nodes or domains.
    pin_hosts: int = 16
    # Repairs after a failure that are carried out to begin with.
    repairs: int = 24
    # Sets of ranks that may leave a domain: grown one by one, by segment at most, and
    # weighed for each number of moves.
    grown_exits: int = 64
    segment_exits: int = 512
    weighed_exits: int = 12
    # Ranks priced on the way back from a fresh placement: ranks x cells away from home,
    # squared.
    relink_work: int = 4_000_000
    # Least and most time to find out which rules are to blame and what would help; what
    # the search leaves of its own between them, in s.
    diagnosis_s: tuple[float, float] = (0.3, 30.0)
    # Nestings tried beside an optimal baseline, in jobs of at most so many ranks.
    tidy_fills: int = 4
    tidy_ranks: int = 131_072
    # Nestings priced for each other launch, in jobs of at most so many ranks.
    advice_nestings: int = 8
    advice_ranks: int = 131_072
