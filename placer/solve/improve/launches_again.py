"""Walks of launches by nodes again, from other seeds, while that helps.

Nodes that differ give each walk its own part: how many ranks hosts hold, and in which
order. What one finds is where the next begins, so they go round. Every generation takes
each walk once, and one that gains little is the last, however much time is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.solve.improve.room_search import room_annealed
from placer.solve.improve.stretch_search import stretches_annealed
from placer.solve.problem.effort import WORTHWHILE

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

WALKS = (room_annealed, stretches_annealed)


def launches_again(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Walk again until the effort is made, or a generation is not worth its time."""
    if incumbent.gpu_of_rank is None:
        return
    gain = max(problem.params.generation_gain, WORTHWHILE)
    for generation in range(problem.params.generations):
        before = incumbent.value
        variant = problem.searched_anew(problem.seed + generation + 1)
        for walk in WALKS:
            if incumbent.ends():
                return
            walk(variant, incumbent, budget)
        if before - incumbent.value < gain * before:
            return
