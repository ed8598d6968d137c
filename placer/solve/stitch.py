"""Stitch pipelines out of what fragmented domains can hold.

A replica is a chain of ``length`` units (one pipeline stage each, ``unit`` ranks that
stay in one leaf domain). Every leaf domain is cut into segments of consecutive stages;
going up the tree, a domain joins segments of its children into longer ones, at the
price of a hop of its tier, and exports the rest. Only *how many* segments of each
length a domain cuts, joins and exports is decided, as an integer program whose size
does not depend on the number of GPUs: leaves of one capacity under one parent share
their variables. Then the counts are dealt out to named domains. A machine too large
for one program is stitched window by window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from placer.solve.stitch_deal import deal
from placer.solve.stitch_program import EXACT, solve_counts
from placer.solve.stitch_windows import Windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.solve.segments import Segment, Stitching

# Sorts of joints times domains: above, machines are stitched window by window.
MOST_EXACT_JOINTS = 1_000


@dataclass(frozen=True, eq=False)
class Stitched:
    """The answer.

    Attributes
    ----------
    replicas : list of Segment
        Pieces of every replica.
    lower_bound : float
        On the price of all joints; -inf when none was found.
    proved : bool
        Whether the program was solved to the end.
    cut_short : bool
        Whether the clock, not the work, set the end.
    """

    replicas: list[Segment]
    lower_bound: float
    proved: bool
    cut_short: bool


def stitch(
    problem: Stitching,
    time_limit: float,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
) -> Stitched | None:
    """Replicas with the cheapest joints, None when none were found.

    Parameters
    ----------
    problem : Stitching
    time_limit : float, s
    seed : int
    stop : callable
        Asked between programs; True ends the work without a result.
    """
    end = monotonic() + time_limit

    def remaining() -> float:
        return 0.0 if stop() else end - monotonic()

    domains = sum(int(parent.max()) + 1 for parent in problem.parents)
    if domains * len(problem.pairs()) <= MOST_EXACT_JOINTS:
        return _exact(problem, remaining(), seed)
    windows = Windows(problem, seed, remaining)
    if not windows.stitch():
        return None
    return Stitched(windows.replicas, -inf, False, windows.cut_short)


def _exact(problem: Stitching, time_limit: float, seed: int) -> Stitched | None:
    """Replicas by one program, solved to the end."""
    counts = solve_counts(problem, replace(EXACT, time_limit=time_limit, seed=seed))
    if counts is None:
        return None
    replicas = deal(problem, counts)
    return Stitched(replicas, counts.lower_bound, counts.proved, counts.cut_short)
