"""The fast scorer against the slow one that shares no code with it."""

from dataclasses import replace

import numpy as np
import pytest

from placer.explain.score import score
from placer.job.beside import beside_seconds, host_passes, host_wait
from placer.job.traffic import RankTraffic
from placer.placement.placement import Placement
from tests.cost.random_cases import random_case, unequal, with_adapters
from tests.cost.reference import reference_step
from tests.cost.reference.beside import host_of, layers_twice, of_layer
from tests.marks import slow

PARTS = ("step_time_s", "compute_s", "bubble_s", "fixed_s", "exposed_scale_out_s")
BATCH = 15


def with_traffic(case, seed):
    """The case with flows of its own, of any sizes."""
    draw, ranks = np.random.default_rng([seed, 3]), case.job.world_size
    pairs = draw.integers(ranks, size=(int(draw.integers(1, 80)), 2))
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    if not len(pairs):
        return case
    sizes, share = draw.exponential(1e7, len(pairs)), float(draw.choice([1, 0.5]))
    overlap, fixed_s = bool(draw.integers(2)), float(draw.choice([0, 1e-3]))
    traffic = RankTraffic(pairs[:, 0], pairs[:, 1], sizes, overlap, share, fixed_s)
    return replace(case, job=replace(case.job, traffic=traffic))


def idle_nodes_left_out(case, seed):
    """The case on the nodes that it uses, in another order."""
    machine = case.topology
    nodes = np.random.default_rng(seed).permutation(
        np.unique(machine.node_of_gpu[case.gpu_of_rank])
    )
    left, moved = machine.select(nodes), np.zeros(machine.num_nodes, dtype=np.int64)
    moved[nodes] = left.first_gpu_of_node[:-1] - machine.first_gpu_of_node[nodes]
    gpus = case.gpu_of_rank + moved[machine.node_of_gpu[case.gpu_of_rank]]
    return replace(case, topology=left, gpu_of_rank=gpus)


CHANGES = {
    "as drawn": lambda case, _: case,
    "adapters": with_adapters,
    "links and speeds": lambda case, seed: replace(
        case, topology=unequal(case.topology, seed)
    ),
    "idle nodes left out": idle_nodes_left_out,
    "traffic": with_traffic,
}


@pytest.mark.parametrize("first", [0, *slow(range(BATCH, 240, BATCH))])
@pytest.mark.parametrize("change", CHANGES)
def test_agrees_with_plain_loops(change, first):
    """Both scorers give the same step time and parts to 1e-9 on random cases."""
    for seed in range(first, first + BATCH):
        case = CHANGES[change](random_case(seed), seed)
        fast = score(case.topology, case.job, Placement(case.gpu_of_rank))
        plain = reference_step(case.topology, case.job, case.gpu_of_rank.tolist())
        # A difference of two steps is known to a share of the step, not of itself.
        small = 1e-9 * plain["step_time_s"]
        for part in PARTS:
            expected = pytest.approx(plain[part], rel=1e-9, abs=small)
            assert fast[part] == expected, (seed, part)
        expected = pytest.approx(plain["exposed_s"], rel=1e-9, abs=small)
        assert fast["exposed_s"] == expected, seed


@pytest.mark.parametrize("change", ["as drawn", "adapters"])
def test_what_no_product_takes(change):
    """Memory, launches and the host of many jobs, of which steps show the sum alone."""
    for seed in range(150):
        job = CHANGES[change](random_case(seed, with_model=True), seed).job
        launched, moved, waits = of_layer(job)
        taken = pytest.approx(launched + moved, rel=1e-9)
        assert beside_seconds(job, job.model) == taken, seed
        assert host_wait(job, job.model) == pytest.approx(waits, rel=1e-9), seed
        ahead = 0.0 if job.model.moe_layers else host_of(job)
        forward, backward = host_passes(job, job.model)
        assert forward * (3 + layers_twice(job)) == pytest.approx(ahead), seed
        assert forward + backward == pytest.approx(ahead), seed
