"""What lower bounds may take, of all knobs of the search (`params.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundParams:
    """How far bounds are worked out. Work is in CP-SAT's deterministic seconds.

    Attributes
    ----------
    ring_work, packing_work : int
        Array elements that the isoperimetric bound of a ring may touch, exactly and as
        a packing, before a weaker one is used.
    charge_work, ascent_work : int
        Array elements of one evaluation with prices on the ends of pipelines, and with
        prices on all stages; larger jobs go without.
    ascent_rounds : int
        Directions in which those prices are improved.
    cut_shares : tuple of float
        Shares of the weight of edges, tried in turn, that are counted for groups which
        are cut for certain, and not where the least cut is looked for.
    parts_work : int
        Array elements touched for prices of the parts of rings and cliques.
    parted_columns, counted_columns : int
        Columns of the program on whole numbers of parts of expert groups, at most, at
        the root of its tree; and once placements are known.
    parted_nodes : int
        Nodes of its tree then.
    line_columns, line_work : (int, int), (float, float)
        Columns of the program on parts of lines in two tiers, at most, and its work: at
        first, and once placements are known.
    rack_blocks : tuple of int
        Nodes in a row whose ranks the bound on the ranks of a rack tells apart, one
        number after the other; 0 for none.
    rack_columns, rack_nodes, rack_rounds : int
        Sorts of runs in its program at most, nodes of its tree, and how often the
        program that prices ranks is solved.
    set_cuts, set_work, set_room, set_rounds : int
        Ways to take a piece of what is left of a closed set, at most; array elements
        touched for the charges of pieces; the largest charge of a domain; and how often
        the program that prices pieces is solved.
    near_levels : int
        Times of transfers that the bound on room for partners tells apart.
    company_work, company_ranks : int
        Neighbours looked at in all trees of ranks that share a scale-up domain, and
        ranks, the busiest first, for which such trees are grown.
    cover_work : (int, int)
        Neighbours looked at for company of all ranks, at first and later.
    cover_program : (float, float)
        Work of each program that takes one for each rank, likewise.
    direction_work : int
        Pairs of edges at one rank that are looked at for directions of a graph.
    side_pairs, side_work : int
        Pairs of ranks of two sides in all components, at most; entries that are looked
        at to add up what a domain has of several.
    whole_side_work : int
        Contents of a domain, by both sides of each component, that are looked at.
    side_columns, side_count_work : int, float
        Columns of the program that counts both sides of components in domains, at most,
        and its work.
    size_steps : int
        Largest change of a domain's size that the group relaxation looks at.
    cut_run_work : float
        Work of a program on runs of ranks that cut few groups.
    cut_sets, slow_sets : int
        Sets of equally many cuts of a pipeline, and of slow stages, that are timed: all
        of 16 stages.
    uplink_sizes : int
        Sizes of uplinks that are told apart; of more, only the largest counts.
    stage_counts : int
        Stages times scale-up domains of a program that counts ranks of each in each.
    stage_count_work : float
        Its work.
    expert_boxes, expert_rounds : int
        Boxes of replicas that the bound with parts of expert groups tells apart, and
        prices of parts that it tries; with none it is left out.
    expert_part_work : int
        Pieces of a group times room of a domain, in pieces: larger ones go without.
    expert_choices : int
        Boxes of replicas for programs that count parts in whole numbers.
    expert_program_work, expert_count_work : float
        Work of one such program, and of all for one bound.
    expert_far_columns : int
        Columns of one that tells outer domains apart only because hops between them
        take longer, at most: larger ones take the time of better placements.
    expert_known : float, s, optional
        A bound from which programs go on that know what parts share with each other and
        with gradients. They take the longest; without it there are none.
    """

    ring_work: int = 5_000_000
    packing_work: int = 100_000_000
    charge_work: int = 1_000_000_000
    ascent_work: int = 15_000_000
    ascent_rounds: int = 60
    cut_shares: tuple[float, ...] = (0.75, 0.9375, 0.984375)
    parts_work: int = 20_000_000
    parted_columns: int = 8_000
    counted_columns: int = 40_000
    parted_nodes: int = 100
    line_columns: tuple[int, int] = (2_000, 20_000)
    line_work: tuple[float, float] = (1.0, 4.0)
    rack_blocks: tuple[int, ...] = (0, 1, 2, 4, 8)
    rack_columns: int = 200
    rack_nodes: int = 200
    rack_rounds: int = 20
    set_cuts: int = 2_000_000
    set_work: int = 50_000_000
    set_room: int = 2_000
    set_rounds: int = 400
    near_levels: int = 8
    company_work: int = 500_000
    company_ranks: int = 32
    cover_work: tuple[int, int] = (1_000_000, 12_000_000)
    cover_program: tuple[float, float] = (0.5, 5.0)
    direction_work: int = 2_000_000
    side_pairs: int = 2_000_000
    side_work: int = 50_000_000
    whole_side_work: int = 500_000
    side_columns: int = 2_000
    side_count_work: float = 0.5
    size_steps: int = 2500
    cut_run_work: float = 0.5
    cut_sets: int = 1000
    slow_sets: int = 20_000
    uplink_sizes: int = 8
    stage_counts: int = 200
    stage_count_work: float = 0.02
    expert_boxes: int = 40_000
    expert_rounds: int = 40
    expert_part_work: int = 20_000
    expert_choices: int = 300_000
    expert_program_work: float = 0.5
    expert_count_work: float = 2.0
    expert_far_columns: int = 5_000
    expert_known: float | None = None
