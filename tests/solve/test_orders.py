"""Open orders, and what another order or launcher saves, against every placement."""

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.base.errors import InfeasibleError
from placer.job.axes import MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER, Parallelism
from placer.job.model import Job
from placer.job.orders import framework_orders, in_order
from placer.job.traffic import Group
from placer.placement.check import violations
from placer.solve.advice import advise
from placer.solve.orders import solve_orders
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.topology.model import Tier
from tests.solve import oracle
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

DEFAULT, MAJOR = "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"
FLAG = "Megatron-LM: --use-tp-pp-dp-mapping"


def two_tiers(gpus, scale_up=True):
    """Nodes under one cluster whose links are nine times as long, ten times slower."""
    tiers = [
        Tier("node", 1e9, 0.0, scale_up, 1.0, 1.0, 1.0),
        Tier("cluster", 1e8, 0.0, False, 1.0, 1.0, 9.0),
    ]
    return machine_of(gpus, [[0] * len(gpus)], tiers)


def job_of(order, weights, **sizes):
    axes = Parallelism(**sizes, etp=sizes.get("tp", 1), order=tuple(order.split("-")))
    return Job("job", axes, weights=weights)


def advice_of(topology, job, **params):
    problem = Problem.of(topology, job).with_params(**params)
    found = advise(problem, solve(topology, job), Budget(60.0))
    assert found is not None
    return found


def test_another_order_saves_a_known_hop_cost():
    """Pipelines inside nodes rather than across them: 16 x 9 - 16 less.

    Two nodes of four, pp 4 and dp 2. By default a node holds two stages of both
    replicas: 2 of 6 pipeline edges cross (4 x 10 + 2 x 10 x 9), and 4 dp edges do not
    (4 x 1), 224 in all. Replica by replica all pipeline edges are inside (60) and the
    dp edges cross (4 x 9), 96 in all.
    """
    topology = two_tiers([4, 4])
    found = advice_of(topology, job_of(DEFAULT, {"pp": 10, "dp": 1}, pp=4, dp=2))
    assert found["status"] == "searched"
    order, free = found["savings"]
    saved = {"value": 96, "saves": 128}
    assert order == {"change": "order", "to": MAJOR, "how": FLAG} | saved
    assert free == {"change": "launcher", "to": "free"} | saved


def test_what_is_not_advised():
    """Groups of rank numbers mean other ranks in another order.

    When time is up before the other launches were tried, nothing is said of them.
    Beyond so many ranks no launch is tried, but a proof still counts.
    """
    topology, weights = two_tiers([4, 4]), {"pp": 10, "dp": 1}
    job = job_of(DEFAULT, weights, pp=4, dp=2)
    group = Group("mine", "all_reduce", 1e6, 1.0, False, ((0, 4), (1, 5)))
    found = advice_of(topology, replace(job, weights={"pp": 10}, groups=(group,)))
    assert found["status"] == "proved" or found["tried"] == ["free"]
    budget = Budget(60.0, lambda: True)
    assert advise(Problem.of(topology, job), solve(topology, job), budget) is None
    most = {"most_ranks": 7}
    assert advice_of(topology, job, **most) == {"status": "not-computed"} | most
    found = advice_of(topology, job_of(MAJOR, weights, pp=4, dp=2), **most)
    assert found["status"] == "proved"


def random_case(rng):
    """Up to three nodes and eight ranks of two or three axes."""
    axes = rng.sample(["tp", "cp", "pp", "dp"], 3)
    sizes = dict(zip(axes, (2, 2, rng.choice((1, 2))), strict=True))
    weights = {axis: float(rng.choice((1, 2, 5, 20))) for axis in sizes}
    order = rng.choice((DEFAULT, MAJOR, "tp-dp-cp-ep-pp"))
    job = job_of(order, weights, **sizes)
    gpus = [rng.choice((1, 2, 2, 3, 4)) for _ in range(rng.choice((2, 3)))]
    gpus[0] += max(0, job.world_size - sum(gpus))
    return two_tiers(gpus), job


def least_hops(topology, job):
    """By the plain-loop oracle."""
    legal = np.array(oracle.legal_placements(topology, job))
    return oracle.hop_costs(topology, job, legal).min()


@pytest.mark.parametrize("seed", range(20))
def test_advice_against_every_placement(seed):
    """Every saving is one that a launch really has, and "proved" means that none has.

    All placements of every launch are priced by the plain-loop oracle.
    """
    topology, job = random_case(random.Random(seed))
    solution = solve(topology, job)
    found = advise(Problem.of(topology, job), solution, Budget(60.0))
    assert found is not None
    least = {
        DEFAULT: least_hops(topology, in_order(job, MEGATRON_DEFAULT_ORDER)),
        MAJOR: least_hops(topology, in_order(job, REPLICA_MAJOR_ORDER)),
        "free": least_hops(topology, replace(job, launcher="free")),
    }
    assert found["lower_bound"] <= min(least.values()) + 1e-9
    if found["status"] == "proved":
        assert solution.value <= min(least.values()) + 1e-9
        return
    for entry in found["savings"]:
        assert entry["value"] == pytest.approx(solution.value - entry["saves"])
        assert entry["saves"] > 0
        assert entry["value"] >= least[entry["to"]] - 1e-9


def opened(job):
    axes = replace(job.parallelism, order=MEGATRON_DEFAULT_ORDER, auto_order=True)
    return replace(job, parallelism=axes)


def chosen_order(topology, job):
    """The job in the order chosen for it, and its placement."""
    problem, found = solve_orders(Problem.of(topology, job), Budget(60.0))
    return problem.job, found


@pytest.mark.parametrize("seed", range(20))
def test_best_of_all_orders(seed):
    """Value and bound of an open order are right for every placement in every order."""
    topology, job = random_case(random.Random(seed))
    job = opened(job)
    chosen, found = chosen_order(topology, job)
    least = min(
        least_hops(topology, in_order(job, order))
        for order in framework_orders(job.parallelism)
    )
    assert found.lower_bound <= least + 1e-9 <= found.value + 2e-9
    assert violations(found.placement, topology, chosen) == []
    if found.status == "optimal":
        assert found.value == pytest.approx(least)


def test_an_order_that_cannot_be_launched_is_passed_over():
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
