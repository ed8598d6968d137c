"""What lower bounds may take, of all knobs of the search (`params.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundParams:
    """How far bounds are worked out. Work is in CP-SAT's deterministic seconds."""

    # Array elements that the isoperimetric bound of a ring may touch, exactly and as a
    # packing, before a weaker one is used.
    ring_work: int = 5_000_000
    packing_work: int = 100_000_000
    # Array elements of one evaluation with prices on the ends of pipelines, and with
    # prices on all stages; larger jobs go without.
    charge_work: int = 1_000_000_000
    ascent_work: int = 15_000_000
    # Directions in which those prices are improved.
    ascent_rounds: int = 60
    # Columns of the program on whole numbers of parts of rings and cliques, at most, at
    # the root of its tree; and once placements are known.
    part_columns: int = 8_000
    counted_columns: int = 40_000
    # Nodes of its tree then.
    parted_nodes: int = 100
    # Times of transfers that the bound on room for partners tells apart.
    near_levels: int = 8
    # Neighbours looked at in all trees of ranks that share a scale-up domain, and
    # ranks, the busiest first, for which such trees are grown.
    company_work: int = 500_000
    company_ranks: int = 32
    # Pairs of ranks of two sides in all components, at most; entries that are looked at
    # to add up what a domain has of several.
    side_pairs: int = 2_000_000
    side_work: int = 50_000_000
    # Columns of the program that counts both sides of components in domains, at most,
    # and its work.
    side_columns: int = 2_000
    side_count_work: float = 0.5
    # Largest change of a domain's size that the group relaxation looks at.
    size_steps: int = 2500
    # Sets of equally many cuts of a pipeline that are timed.
    cut_sets: int = 1000
    # Boxes of replicas that the bound with parts of expert groups tells apart, and
    # prices of parts that it tries; with none it is left out.
    expert_boxes: int = 40_000
    expert_rounds: int = 40
    # Pieces of a group times room of a domain, in pieces: larger ones go without.
    expert_part_work: int = 20_000
