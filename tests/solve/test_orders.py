"""An open order: the chosen one is the best of those a framework offers."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from placer.base.errors import InfeasibleError
from placer.job.axes import MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER
from placer.job.orders import framework_orders, in_order
from placer.placement.check import violations
from placer.solve.orders import solve_orders
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from tests.solve import oracle
from tests.solve.test_advice import job_of, random_case, two_tiers

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.run.solution import Progress, Solution
    from placer.topology.model import Topology


def opened(job: Job) -> Job:
    axes = replace(job.parallelism, order=MEGATRON_DEFAULT_ORDER, auto_order=True)
    return replace(job, parallelism=axes)


def chosen_order(
    topology: Topology, job: Job, progress: Progress | None = None
) -> tuple[Job, Solution]:
    """The job in the order chosen for it, and its placement."""
    problem, found = solve_orders(Problem.of(topology, job), Budget(60.0), progress)
    return problem.job, found


@pytest.mark.parametrize("seed", range(20))
def test_best_of_all_orders(seed: int) -> None:
    """Value and bound of an open order are right for every placement in every order."""
    topology, job = random_case(random.Random(seed))
    job = opened(job)
    chosen, found = chosen_order(topology, job)
    least = min(
        oracle.least(
            topology, ordered, "hop-cost", oracle.legal_placements(topology, ordered)
        )
        for ordered in (
            in_order(job, order) for order in framework_orders(job.parallelism)
        )
    )
    assert found.lower_bound <= least + 1e-9 <= found.value + 2e-9
    assert violations(found.placement, topology, chosen) == []
    if found.status == "optimal":
        assert found.value == pytest.approx(least)


@pytest.mark.parametrize(("pp", "dp", "best"), [(10, 1, 96), (1, 10, 96)])
def test_the_order_follows_the_traffic(pp: int, dp: int, best: float) -> None:
    """Whichever of pp and dp is heavier ends up inside nodes.

    Two nodes of four, pp 4 and dp 2, where pp is heavier: 6 x 10 + 4 x 9 = 96. Where dp
    is: 4 x 10 + 4 x 1 + 2 x 9 = 62.
    """
    job = opened(job_of("tp-cp-ep-dp-pp", {"pp": pp, "dp": dp}, pp=4, dp=2))
    chosen, found = chosen_order(two_tiers([4, 4]), job)
    order = REPLICA_MAJOR_ORDER if pp > dp else MEGATRON_DEFAULT_ORDER
    assert chosen.parallelism.order == order
    assert found.value == (best if pp > dp else 62)
    assert found.status == "optimal"
    assert found.stop_reason == "proved"


def test_an_order_that_cannot_be_launched_is_passed_over() -> None:
    """Pipelines in a node are only possible replica by replica; dp groups by default.

    When neither order can, the error is that of the first.
    """
    job = opened(job_of("tp-cp-ep-dp-pp", {"pp": 1, "dp": 1}, pp=4, dp=2))
    topology = two_tiers([4, 4])
    chosen, _ = chosen_order(topology, replace(job, require={"pp": "node"}))
    assert chosen.parallelism.order == REPLICA_MAJOR_ORDER
    chosen, _ = chosen_order(topology, replace(job, require={"dp": "node"}))
    assert chosen.parallelism.order == MEGATRON_DEFAULT_ORDER
    with pytest.raises(InfeasibleError):
        chosen_order(topology, replace(job, require={"pp": "node", "dp": "node"}))
