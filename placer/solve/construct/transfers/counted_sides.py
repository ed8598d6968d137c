"""Transfers of a free launch: both sides of components, as a program counts them.

Where all of one side send to all of the other it does not matter which of them a domain
holds. So the counts that the bound finds possible (`side_counts`) are placed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.solve.bounds.transfers.transfers import transfers_of
from placer.solve.tree.fill import in_turn

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent


def counted_sides(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Counts that meet the needs of the least transfers that the bound allows."""
    if problem.goal.name != "time" or problem.job.launcher != "free":
        return
    transfers = transfers_of(problem)
    if transfers is None:
        return
    least = transfers.least(incumbent.value, budget=budget)
    kinds = transfers.kinds(float(transfers.times[least]))
    held = transfers.sides.held(kinds, budget)
    if held is None:
        return
    domain = problem.machine.domain_of_gpu[problem.model.fabric.scale_up_tier]
    room = np.bincount(domain)
    roomiest = np.argsort(-room, kind="stable")
    home = np.full(problem.job.world_size, -1, dtype=np.int64)
    for ranks, places in held:
        home[ranks] = roomiest[places]
    # Ranks without needs take what is left.
    others = np.flatnonzero(home < 0)
    left = room - np.bincount(home[home >= 0], minlength=len(room))
    home[others] = np.repeat(np.arange(len(room)), left)[: len(others)]
    incumbent.offer("counted sides", in_turn(domain, home))
