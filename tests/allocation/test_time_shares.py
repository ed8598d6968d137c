"""Jobs share the time limit and racks: the first of several does not take it all."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

import placer.allocation.offers as module
from placer.allocation.offers import Offers
from placer.allocation.question import Question, Wanted
from placer.allocation.together import in_turn
from placer.api.allocate import allocate
from placer.solve.run.budget import Budget
from tests.allocation.machines import racks, training


def test_every_job_has_its_share_of_the_time():
    """Each search may take an equal part of what those before it left."""
    given: list[float] = []
    placed = module.solved_in_time

    def told(problem, budget):
        given.append(budget.seconds_left)
        return placed(problem, budget)

    machine = racks(dict.fromkeys("abcdefgh", 4))
    jobs = [training(f"job{i}", tp=4, pp=2, dp=i) for i in (1, 2, 3)]
    with patch.object(module, "solved_in_time", told):
        allocate(machine, jobs, time_limit=600)
    # Three alone and three together.
    assert 90 < given[0] <= 100
    assert given[0] < given[1] < given[2]


def test_fair_turns_leave_domains_to_others():
    """Behind thin uplinks no two jobs share a rack while there are racks for all."""
    machine = racks(dict.fromkeys("abcdefgh", 4), oversubscription=4)
    jobs = [training(f"job{i}", tp=4, pp=2, vp=4, dp=dp) for i, dp in enumerate((4, 2))]
    wanted = [Wanted(job.name, job) for job in jobs]
    everything = np.ones(machine.num_nodes, dtype=bool)
    question = Question(machine, everything, tuple(wanted))
    found = in_turn(Offers(question, Budget(60)), (0, 1), (0.0, 0.0), is_fair=True)
    held = [{*machine.domain_of_node[1][found[i].nodes].tolist()} for i in (0, 1)]
    assert not held[0] & held[1]
    assert len(held[0]) <= 6  # two thirds of eight, rounded up
