"""Stitch pipelines out of what fragmented domains can hold.

A replica is a chain of ``length`` units (one pipeline stage each, ``unit`` ranks that
stay in one leaf domain). Every leaf domain is cut into segments of consecutive stages;
going up the tree, a domain joins segments of its children into longer ones, at the
price of a hop of its tier, and exports the rest. Only *how many* segments of each
length a domain cuts, joins and exports is decided, as an integer program whose size
does not depend on the number of GPUs: leaves of one capacity under one parent share
their variables. Then the counts are dealt out to named domains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.solve.stitch_deal import deal
from placer.solve.stitch_program import solve_counts

if TYPE_CHECKING:
    from placer.solve.segments import Segment, Stitching


@dataclass(frozen=True, eq=False)
class Stitched:
    """The answer.

    Attributes
    ----------
    replicas : list of Segment
        Pieces of every replica.
    lower_bound : float
        On the price of all joints.
    proved : bool
        Whether the program was solved to the end.
    """

    replicas: list[Segment]
    lower_bound: float
    proved: bool


def stitch(problem: Stitching, time_limit: float, seed: int) -> Stitched | None:
    """Replicas with the cheapest joints, None when none were found."""
    counts = solve_counts(problem, time_limit, seed)
    if counts is None:
        return None
    return Stitched(deal(problem, counts), counts.lower_bound, counts.proved)
