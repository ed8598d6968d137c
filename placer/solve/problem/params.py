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
    # Joints a chain may have, tried in turn when the slowest replica sets the cost.
    joint_limits: tuple[int | None, ...] = (1, 2, 3, None)
    # Leaves' worth of units in a ring that is stitched: longer ones are cut about as
    # often when they are laid along the tree.
    ring_leaves: int = 4
    # Shapes that are stitched, by objective: the cheapest when laid along the tree.
    shapes: Mapping[str, int] = field(
        default_factory=lambda: {"hop-cost": 3, "time": 2}
    )
    # Shapes that cost more than this times the cheapest, beyond the least, are not.
    shape_spread: float = 1.25
    # Sorts of joints times domains: above the first a machine is stitched window by
    # window, of so many each; above the third chains too long for windows are left.
    # Programs with at most so many sorts are solved to the end.
    joints_at_once: int = 1_000
    window_joints: int = 1_800
    long_joints: int = 2_000
    proved_sorts: int = 36
    # Nodes of SCIP's tree: of programs solved to the end, and of others.
    proved_nodes: int = 1_000
    stitched_nodes: int = 500
    # Work of a window's program, and the relative difference from the bound that is
    # good enough.
    window_work: float = 0.5
    window_gap: float = 0.012
    # Seeds that it is solved from until that is reached.
    window_seeds: int = 4
    # Windows that follow each other; more are several walks, side by side.
    windows_a_walk: int = 4
    # Replicas' worth of free units that a window hands on to the next.
    handed_on: int = 2
    # Share of the time left that one stitching may take; arranging its chains takes the
    # rest.
    stitching_time: float = 0.85
    # Share of the spare halves above which windows count them as room.
    scarce_halves: float = 0.1
    # Replicas taken back and made again, tried in turn, where a window has no solution.
    taken_back: tuple[int, ...] = (4, 8, 16, 32, 64)
    # Most lanes whose exchanges are searched: all pairs are compared at each step;
    # random exchanges in that search, times lanes.
    exchanged_lanes: int = 256
    lane_kicks: int = 2_048
    # Most lanes that are put in order: the matrix of their distances takes memory.
    toured_lanes: int = 4_096
    # Near bundles that each bundle on a tour of lanes is joined to.
    tour_neighbours: int = 12
    # Random exchanges for each bundle on a tour, and in all; bundles that one of them
    # takes at most.
    tour_kicks: int = 8
    all_tour_kicks: int = 4_096
    tour_window: int = 30
    # Nodes of the tree of one program that cuts pipelines alike; patterns of all such
    # programs together.
    cut_nodes: int = 100
    all_cut_patterns: int = 100_000
    # Ways to cut a replica that one such program chooses from.
    cut_ways: int = 64
    # Ways to spread runs of pipelines over domains that are priced.
    spread_ways: int = 16
    # Kinds of runs that a leaf holds in such a program, and how many combinations of
    # them are looked at and kept.
    pattern_runs: int = 3
    patterns_combined: int = 3_000_000
    patterns: int = 20_000
    # Rounds of exchanges between leaves that bring patterns into balance (every one but
    # the last finds something), and comparisons in all of them.
    balance_rounds: int = 20
    balance_compared: int = 1_000_000_000
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
    # Work of annealing on the hop cost: at most, and for each unit and domain, in us.
    anneal_work: float = 4e6
    anneal_work_of_pair: float = 8e3
    # Units of all copies together, and entries of their table of costs, at most.
    anneal_units: int = 4096
    anneal_table: int = 25_000_000
    # Fewest and most copies of placements that are annealed together.
    anneal_copies: tuple[int, int] = (4, 64)
    # Starts that cost more than this times the cheapest are left out.
    anneal_worst_start: float = 1.03
    # Cycles at most, and how often the set-up must be worth its work in each.
    anneal_cycles: tuple[int, float] = (5, 8)
    # Shares of the work on units by themselves, and tied along one axis, two, ...
    anneal_levels: tuple[float, ...] = (0.6, 0.3, 0.1)
    # Temperatures of the coldest and the hottest copy at the start, relative to what
    # the heaviest edges of a unit cost at the greatest distance.
    anneal_start_heat: tuple[float, float] = (0.03, 0.5)
    # Temperature at the end, likewise.
    anneal_end_heat: float = 0.02
    # Share of the steps that are then made at temperature 0.
    anneal_quenched: float = 0.15
    # Share of the units for which a step proposes a change; fewest proposals.
    anneal_proposed: tuple[float, int] = (0.25, 256)
    # Share of the proposals that fill free room.
    anneal_moved: float = 0.5
    # Steps between two looks at who is where, for proposals only.
    anneal_look: int = 16
    # Largest job whose step time is searched: larger ones take too long to price.
    exchange_ranks: int = 16_384
    # Placements priced in that search, and their ranks.
    exchange_scores: int = 600
    exchange_ranks_priced: int = 400_000
    # Placements to begin with, and rounds after which the worse half is left out.
    exchange_starts: int = 8
    exchange_rounds: int = 3
    # Changes proposed for every placement priced; most others are known already.
    exchange_tries: int = 20
    # Temperatures at the start and the end of a round, relative to the gap.
    exchange_heat: tuple[float, float] = (0.03, 0.001)
    # What the traffic of a placement is worth, relative to the gap.
    exchange_traffic: float = 0.02
    # Whether groups that the best placement keeps whole move as one.
    keep_whole: bool = True
    # Edges of a graph that is cut into tiles, at most, and vertices of all that are
    # cut, sweep after sweep.
    tile_edges: int = 1_000_000
    tile_vertices: int = 60_000
    # Pairs of edges at one rank that are looked at for directions of a graph.
    direction_work: int = 2_000_000
    # Ways to cut boxes of a grid in two that are looked at.
    box_work: int = 400_000
    # Times that the flows of a job with groups of its own are weighed afresh.
    rebalance_rounds: int = 8
    # Work of annealing in each, in us.
    rebalance_work: float = 4e5
    # Neighbours of all units, padded: jobs with more are not annealed so.
    rebalance_entries: int = 4_000_000
    # Placements whose busiest ports and uplinks are evened out.
    even_starts: int = 2
    # How often what they are busy is squared before it is summed, round by round, and
    # the temperature at the start of each, relative to what a change adds.
    even_doublings: tuple[int, ...] = (2, 3, 4, 5)
    even_heat: tuple[float, ...] = (0.3, 0.05, 0.05, 0.05)
    # How far below the best the target of a later round is, at least and at most.
    even_cut: tuple[float, float] = (0.01, 0.16)
    # Temperatures at the start of later rounds, in turn, relative to the best: a
    # message more is much to a port, and little to an uplink.
    even_aimed_heat: tuple[float, ...] = (0.1, 0.02, 0.01, 0.005)
    # Temperature at the end of a round of either sort, relative to its start.
    even_end: tuple[float, float] = (1e-3, 1e-2)
    # Work of all rounds from one placement, in us.
    even_work: float = 4e6
    # Shares of it that later rounds have where sums come first, and each of them.
    even_aimed: float = 0.5
    even_round: float = 0.25
    # Whether methods other than constructions run.
    local_search: bool = True
    # They do not where constructions end no more above the bound, relative to the
    # value.
    search_gap: float = 0.0
    # A search ends once its value is no more above the bound, relative to the value.
    enough_gap: float = 0.0
    # One that is as good as needs be: the search ends with it.
    enough_value: float = 0.0
    # Whether nothing worse will do. Then no program is asked for parts of experts.
    asks_enough: bool = False
    # A lower bound that is known before. Then no other is worked out.
    known_bound: float = 0.0
    # Whether parts of expert groups are chosen by programs and walks, too.
    expert_searches: bool = True
    # Generations of local search after all methods.
    generations: int = 0
    # What each must gain for another one, relative to the cost.
    generation_gain: float = 0.0
    # Work of each search of a generation relative to the first search: at least, and
    # after generations that found nothing.
    generation_work: tuple[float, float] = (0.25, 4.0)
    # Placements that such a search prices at the least, on step time.
    generation_scores: int = 64
    # Orders of the domains along which components of traffic are laid.
    line_orders: int = 256
    # Kinds of ranks that need others near, and columns, of a program on what runs
    # domains hold; nodes of its tree; and how often it is asked again, where runs
    # cannot be laid end to end.
    run_kinds: int = 8
    run_columns: int = 5_000
    run_nodes: int = 1_000
    run_rounds: int = 8
    # Ways to cut such components, and to divide domains into places for the pieces, of
    # one program; nodes of its tree.
    piece_ways: int = 20_000
    piece_nodes: int = 100
    # Ranks of the largest closed sets of nodes that are cut.
    set_places: int = 128
    # Pieces of one at most, one number after the other.
    set_pieces: tuple[int, ...] = (1, 2, 4)
    # Work of one cut.
    cut_work: float = 0.5
    # Ranks of closed sets that are placed one by one at most; work of one program.
    loose_ranks: int = 128
    loose_work: float = 4.0
    # A gap in which programs that count parts are not worth their time.
    parts_walk_gap: float = 0.01
    # Most ways to make up groups that a program for the hop cost tells apart.
    parts_ways: int = 6_000
    # Nodes of its tree.
    parts_nodes: float = 100
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
