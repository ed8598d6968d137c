"""The cheap lower bound of `tune`: below the step on best links, and close to it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.degrees.least import Least
from placer.job.adapters import Adapters
from placer.solve.bounds.case import step_on_best_links
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from tests.degrees.cases import machine
from tests.degrees.legal_by_hand import legal
from tests.degrees.test_what_is_suggested_fits import varied

MACHINES = (
    "node:16 gpu:1",
    "node:4 gpu:4",
    "rack:2 node:2 gpu:4",
    "rack:3 node:2 gpu:4",
    "node:5 gpu:4",
    "node:3 gpu:8",
    "rack:2 node:3 gpu:5",
)
ORDERS = (
    "tp-cp-ep-dp-pp",
    "tp-cp-ep-pp-dp",
    "pp-tp-cp-ep-dp",
    "dp-pp-cp-ep-tp",
    "cp-ep-dp-tp-pp",
    "cp-tp-ep-pp-dp",
)


@pytest.mark.parametrize("adapters", [None, Adapters(rank=64)], ids=["full", "lora"])
@pytest.mark.parametrize("seed", range(14))
def test_no_best_links_are_faster(seed: int, adapters: Adapters | None) -> None:
    """Whatever the rank order, the launcher, the GPUs to spare, and what is trained."""
    random = Random(f"least {seed}")
    framework = random.choice([*FRAMEWORKS])
    work = in_framework(varied(seed), framework)
    order = tuple(random.choice(ORDERS).split("-"))
    launcher = random.choice(["free", "node-contiguous"])
    axes = replace(work.parallelism, order=order)
    work = replace(work, parallelism=axes, launcher=launcher, adapters=adapters)
    topology = machine(MACHINES[seed % len(MACHINES)])
    assert work.model
    least = Least(topology, work, work.model)
    choices = list(legal(framework, work, 16, 16))
    for choice in random.sample(choices, min(20, len(choices))):
        changed = choice.applied(work)
        problem = Problem.of(topology, changed, "time", 0)
        assert least.busy_s(choice) <= least.work_s(choice)
        assert least.work_s(choice) <= least.step_s(choice) * (1 + 1e-12)
        cheap = least.step_s(choice) + least.sync.exposed_s(changed)
        best = step_on_best_links(problem, problem.forced_block)
        if least.sync.smallest_part(choice) < choice.ep:
            # That not all groups can have their best links it does not know.
            best = max(best, solve(problem, Budget(5.0)).value)
        assert cheap <= best * (1 + 1e-9), choice
