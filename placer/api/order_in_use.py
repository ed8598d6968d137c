"""The placement that a job has already, kept where nothing measurable is to win."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placer.explain.difference import Saving, saving
from placer.explain.uncertain import links_are_assumed
from placer.placement.baselines import baseline
from placer.placement.placement import Placement
from placer.placement.previous import Previous, PreviousPlan
from placer.placement.started import order_in_use
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.settle import TIDY_RANKS, settled
from placer.solve.run.solution import EXACT, Solution
from placer.topology.model import Topology


class Answer(NamedTuple):
    """What is answered."""

    solution: Solution
    # What the best that was found saves of a step in the given order, which is kept
    # where that is too little.
    saved: Saving | None = None


def answer(
    machine: Topology, problem: Problem, found: Solution, previous: PreviousPlan | None
) -> Answer:
    """The placement in use, or one that is better by more than runs differ.

    In use is the previous plan, else the hosts in the given order. Of equally good
    placements the one is taken that leaves the most ranks there. On the hop cost, which
    nothing disturbs, only what is equal is kept.
    """
    job = problem.job
    if previous is None:
        name: str = order_in_use(job)
        used = baseline(name, machine, job, problem.seed).gpu_of_rank
    else:
        name, used = "previous plan", previous.seats(job).gpu_of_rank
    if (used < 0).any() or np.array_equal(used, found.placement.gpu_of_rank):
        return Answer(found)
    if previous is None and job.world_size <= TIDY_RANKS:
        domain = problem.machine.domain_of_gpu[:, used]
        seats = Previous(used, domain, (), np.zeros(len(used), dtype=bool))
        found = settled(problem, found, seats)
    saved = None
    value = float(problem.goal.value(used))
    if problem.goal.name == "time":
        after = found.placement.gpu_of_rank
        thin = links_are_assumed(machine)
        saved = saving(problem.model, used, after, problem.seed, thin=thin)
        is_better = saved.is_measurable
    else:
        is_better = value > found.value * (1 + EXACT)
    avoided = problem.avoided(found.placement.gpu_of_rank)
    is_legal = problem.allows(used) and problem.avoided(used) <= avoided
    if not is_better and is_legal:
        found = found.instead(Placement(used), value, f"{name}, kept")
    return Answer(found, saved if previous is None else None)
