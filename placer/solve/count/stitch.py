"""Stitch chains of units out of what fragmented domains can hold.

A replica is a chain of ``length`` units (a pipeline of stages, a data-parallel ring of
tensor-parallel groups), each of which stays in one leaf domain. Every leaf domain is
cut into segments of consecutive units; going up the tree, a domain joins segments of
its children into longer ones, at the price of a hop of its tier, and exports the rest.
Only *how many* segments of each length a domain cuts, joins and exports is decided, as
an integer program whose size does not depend on the number of GPUs: leaves of one
capacity under one parent share their variables. Then the counts are dealt out to named
domains. A machine too large for one program is stitched window by window.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from placer.solve.count.deal import deal
from placer.solve.count.program import EXACT, SEARCHED, solve_counts
from placer.solve.count.windows import Windows

if TYPE_CHECKING:
    from placer.solve.count.program import Limits
    from placer.solve.count.segments import Segment, Stitching
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


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
    problem: Stitching, params: Params, seed: int, budget: Budget
) -> Stitched | None:
    """Replicas with the cheapest joints, None when none were found.

    Chains too long for windows are stitched on small machines only: elsewhere they
    cross so many leaves that laying them along the tree is about as good. Short open
    chains are stitched with a proof; for longer ones, and for rings, where much costs
    the same, that takes minutes.
    """
    domains = sum(int(parent.max()) + 1 for parent in problem.parents)
    sorts = len(problem.pairs())
    if sorts > params.window_joints and domains * sorts > params.long_joints:
        return None
    if domains * sorts <= params.joints_at_once:
        proves = sorts <= params.proved_sorts and not problem.closed
        limits = EXACT if proves else SEARCHED
        return _at_once(problem, limits.within(budget, seed))
    windows = Windows(problem, params.window_joints, seed, budget)
    if not windows.stitch():
        return None
    return Stitched(windows.replicas, -inf, False, windows.cut_short)


def _at_once(problem: Stitching, limits: Limits) -> Stitched | None:
    """Replicas by one program."""
    counts = solve_counts(problem, limits)
    if counts is None:
        return None
    replicas = deal(problem, counts)
    return Stitched(replicas, counts.lower_bound, counts.proved, counts.cut_short)
