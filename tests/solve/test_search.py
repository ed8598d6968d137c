"""What every result promises: legal, no worse than any baseline, repeatable."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import placer
from placer import testing
from placer.base.errors import InfeasibleError, InputError
from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.baselines import BASELINES, baseline
from placer.placement.check import violations
from placer.solve import search
from placer.solve.problem.compiled import Problem, objective_of
from placer.solve.problem.launch import feasible_colocations
from placer.solve.run.budget import Budget
from placer.solve.score import is_built
from placer.testing import racks
from tests.allocate.machines import training as own_training
from tests.marks import slow
from tests.solve.construct.test_whole_groups import job as training
from tests.solve.construct.test_whole_groups import machine as cluster_of
from tests.solve.machines import MODEL, fragmented, matching_job
from tests.solve.random_cases import machine_of, random_tiers
from tests.solve.solving import own_job, solve

SHORT = 0.5  # s: what is promised holds however short the time


def case(seed, objective):
    """A fragmented machine of 64 to 512 GPUs and a job that fits its size."""
    rng = random.Random(f"{seed} {objective}")
    while True:
        topology = fragmented(rng)
        job = matching_job(rng, topology, objective)
        if job.world_size <= topology.num_gpus:
            return topology, job


def solved(topology, job, objective, seconds):
    """What is found, which is legal; None where there is no placement."""
    try:
        found = solve(topology, job, objective=objective, time_limit=seconds)
    except InfeasibleError:
        assert not feasible_colocations(topology, job)
        return None
    assert violations(found.placement, topology, job) == []
    return found


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("seed", [0, *slow(range(1, 16))])
def test_never_worse_than_a_legal_baseline(seed, objective):
    """The result is legal, priced right, and beats or equals each legal baseline."""
    topology, job = case(seed, objective)
    goal = objective_of(topology, job, objective)
    legal = {
        name: placement
        for name in BASELINES
        if name != "random"
        for placement in [baseline(name, topology, job)]
        if not violations(placement, topology, job)
    }
    if (found := solved(topology, job, objective, SHORT)) is None:
        assert legal == {}
        return
    assert found.value == goal.value(found.placement.gpu_of_rank)
    assert found.lower_bound <= found.value
    for name, placement in legal.items():
        assert found.value <= goal.value(placement.gpu_of_rank) * (1 + 1e-9), name


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("seed", range(12))
def test_no_time_still_gives_a_placement(seed, objective):
    """With a limit of 0 s every feasible job gets a legal placement."""
    topology, job = case(seed, objective)
    if (found := solved(topology, job, objective, 0.0)) is None:
        return
    assert found.stop_reason in ("proved", "time-limit")
    assert found.deterministic == (found.stop_reason == "proved")


def test_objectives_need_their_inputs():
    """Hop cost needs weights, time a model or groups; the error says which."""
    topology = machine_of([2, 2], [[0, 0]], random_tiers(random.Random(0), 2))
    bare = Job("bare", Parallelism(dp=4))
    with pytest.raises(InputError, match="weights"):
        solve(topology, bare, objective="hop-cost")
    with pytest.raises(InputError, match="model, groups or traffic"):
        solve(topology, bare, objective="time")


def test_groups_in_parts_are_shown_before_any_bound():
    """A bound may take long: whoever waits has a placement within 3 % before it."""
    hosts = cluster_of([8] * 7 + [7] * 2, [0] * 9)
    experts = training(tp=1, ep=8, pp=4, dp=16, vp=2)
    told = []
    found = solve(hosts, experts, progress=told.append)
    before = [one.value for one in told if one.lower_bound == 0]
    assert min(before) <= 1.03 * found.value


@pytest.mark.skipif(not is_built(), reason="the compiled part is not built")
def test_a_walk_is_shown_before_the_dear_part_of_a_bound():
    """Parts of groups take long to bound; who waits has what the first walk found."""
    told, work = [], training(tp=1, ep=16, dp=64)
    found = solve(racks([14, 13, 9, 12, 11, 10], gpus=1), work, progress=told.append)
    early = [one.value for one in told if one.lower_bound < 0.95 * found.value]
    assert min(early) <= 1.03 * found.value
    assert found.lower_bound >= 0.99 * found.value


def test_slow_hosts_are_left_idle_before_any_bound():
    """Whoever waits a moment has no step of slow hosts: walks rarely leave them all."""
    machine = racks([2, 2, 2], gpus=1, joined=False, nic=10e9)
    machine = replace(machine, compute_factor=np.array([1, 0.5, 1, 1, 0.9, 1]))
    small = {"layers": 4, "hidden": 1024, "ffn": 4096, "heads": 16, "vocab": 32000}
    work = testing.job(
        launcher="free",
        pp=2,
        dp=2,
        model=small,
        sequence=128,
        micro_batch=1,
        micro_batches=4,
        compute={"micro_batch_time": 0.01},
    )
    told = []
    found = solve(machine, work, progress=told.append)
    assert min(one.value for one in told if one.lower_bound == 0) == found.value


def test_what_no_domain_holds_is_infeasible_on_slow_hosts_too():
    """Pipelines of 16 nodes in racks of 12, all hosts equally slow: an answer."""
    machine = replace(racks([12] * 3), compute_factor=np.full(36, 0.5))
    require = {"tp": "node", "cp": "rack", "pp": "rack"}
    work = replace(training(tp=4, cp=2, pp=8, dp=2), model=MODEL, require=require)
    with pytest.raises(InfeasibleError, match="0 fit"):
        solve(machine, work)


@pytest.mark.parametrize("seed", range(12))
def test_a_ring_is_as_fast_as_on_the_best_of_all_shares(seed):
    """Every way to share the ranks among racks of one NVLink domain, as counts.

    And the bound knows how many network cards the racks can give: it is reached.
    """
    rng = random.Random(seed)
    sizes = [rng.randint(2, 9) for _ in range(rng.randint(2, 4))]
    ranks = rng.randint(max(sizes) + 1, sum(sizes))
    topology = racks(sizes, gpus=1)
    ring = own_training(tp=1, dp=ranks)
    rack, model = topology.domain_of_gpu[1], StepModel(topology, ring)
    ways = (
        np.concatenate([np.flatnonzero(rack == r)[:n] for r, n in enumerate(counts)])
        for counts in product(*(range(size + 1) for size in sizes))
        if sum(counts) == ranks
    )
    best = min(float(model.step(gpus).step_time_s) for gpus in ways)
    found = search.solve(Problem.of(topology, ring), Budget(20))
    assert found.value == pytest.approx(best)
    assert found.lower_bound == pytest.approx(best)


@pytest.mark.skipif(not is_built(), reason="the compiled part is not built")
def test_shard_groups_share_racks_so_that_each_has_many_cards():
    """Racks of 8, 8, 4 and 4 hold two shard groups of 10 as 6 + 4 each."""
    topology = racks([8, 8, 4, 4], gpus=1)
    ring = own_training(tp=1, dp=20)
    mode = replace(ring.data_parallel, sharding="hsdp", shard_size=10)
    found = solve(topology, replace(ring, data_parallel=mode), objective="time")
    rack = topology.domain_of_gpu[1][found.placement.gpu_of_rank]
    for own in (rack[:10], rack[10:]):
        held = np.bincount(own)
        assert held[held > 0].min() >= 4


def test_distant_pairs_share_nodes():
    """Each pair, rank r beside rank r + half, is on one node, which is the bound."""
    machine = placer.read_topology("rack:4 node:8 gpu:4")
    rows = [[rank, rank + 64] for rank in range(64)]
    pairs = {"name": "pairs", "collective": "send_recv", "bytes": "2GB", "ranks": rows}
    found = solve(machine, own_job(128, groups=[pairs]))
    assert found.value == pytest.approx(4.4454e-3, rel=1e-4)
    assert found.lower_bound == pytest.approx(found.value)
