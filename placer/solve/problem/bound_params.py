"""What lower bounds may take, of all knobs of the search (`params.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundParams:
    """How far bounds are worked out. Work is in CP-SAT's deterministic seconds."""

    # Columns of the program on whole numbers of parts of rings and cliques, at most, at
    # the root of its tree; and once placements are known.
    part_columns: int = 8_000
    counted_columns: int = 40_000
    # Nodes of its tree then.
    parted_nodes: int = 100
    # Boxes of replicas that the bound with parts of expert groups tells apart, and
    # prices of parts that it tries; with none it is left out.
    expert_boxes: int = 40_000
    expert_rounds: int = 40
    # Pieces of a group times room of a domain, in pieces: larger ones go without.
    expert_part_work: int = 20_000
