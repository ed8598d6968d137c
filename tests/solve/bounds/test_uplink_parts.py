"""tp and cp groups behind thin uplinks, by hand and against all placements."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER, Parallelism
from placer.job.model import Compute, DataParallel, Overlap
from placer.job.parallel import ContextParallel, TensorParallel
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.gradients.uplink_room import UplinkRoom
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier, Topology
from tests.marks import slow
from tests.solve.bounds.test_uplinks import MODEL, OUTER, model_on
from tests.solve.oracle import least, legal_placements
from tests.solve.random_cases import machine_of

# tp, cp, pp and dp of six ranks.
SIZES = (
    (2, 1, 1, 3),
    (3, 1, 1, 2),
    (1, 2, 1, 3),
    (1, 3, 2, 1),
    (2, 3, 1, 1),
    (2, 1, 3, 1),
)


def machine(gpus: list[int], leaf: list[int], thin: float) -> Topology:
    """Nodes in leaves behind uplinks that are so thin."""
    tiers = [
        Tier("node", 400e9, 0.0, True, 1.0, 1.0, 1.0),
        Tier("leaf", OUTER, 0.0, False, 1.0, 1.0, 2.0),
        Tier("cluster", OUTER, 0.0, False, thin, 1.0, 3.0),
    ]
    return machine_of(gpus, [leaf, [0] * len(gpus)], tiers)


@pytest.mark.parametrize("axis", ["tp", "cp"])
def test_a_group_that_lies_in_two_leaves(axis: str) -> None:
    """Three pairs on two leaves of three GPUs: one of them crosses 3/8 of a NIC."""
    topology = machine([1] * 6, [0, 0, 0, 1, 1, 1], 8.0)
    axes = Parallelism(2, 1, 1, 1, 3, 1, 2)
    if axis == "cp":
        axes = Parallelism(1, 2, 1, 1, 3, 1, 1)
    job = model_on([1] * 6, 8.0, axes, MODEL).job
    best = least(topology, job, "time", legal_placements(topology, job))
    bound = lower_bound(Problem.of(topology, job, "time"), 1).value
    assert bound == pytest.approx(best)


def test_a_run_of_groups_that_take_turns_has_one_rank_of_one() -> None:
    """Where one ring may cross, a node has one rank of the pairs' two groups."""
    topology = machine([3, 3, 3], [0, 1, 2], 2.0)
    plain = model_on([1] * 6, 2.0, Parallelism(2, 1, 1, 1, 3, 1, 2), MODEL)
    job = replace(plain.job, launcher="node-contiguous")
    problem = Problem.of(topology, job, "time")
    room = UplinkRoom(best_of_problem(problem), 2)
    gradients = job.parallelism.ranks_of_group["dp_cp"]
    one, two = (rings / float(room.uplink[0]) for rings in (1, 2))
    assert room.held(gradients, one).tolist() == [1, 1, 1]
    assert room.held(gradients, two).tolist() == [3, 3, 3]


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 70))])
def test_no_placement_is_faster(seed: int) -> None:
    """No placement of six ranks over thin leaves beats the bound, in either launch."""
    rng = random.Random(seed)
    tp, cp, pp, dp = rng.choice(SIZES)
    order = rng.choice((MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER))
    axes = Parallelism(tp, cp, 1, pp, dp, 1, tp, order)
    by_nodes = rng.random() < 0.7
    gpus = [rng.choice((1, 2, 3)) for _ in range(4 if by_nodes else 3)]
    if sum(gpus) < 6:
        pytest.skip("too few GPUs")
    leaf = sorted(rng.randrange(3) for _ in gpus)
    leaf = np.unique(leaf, return_inverse=True)[1].tolist()
    topology = machine(gpus, leaf, float(rng.choice((2, 4, 16))))
    job = replace(
        model_on(
            [1] * 6, 1.0, axes, replace(MODEL, heads=12, kv_heads=12, hidden=1536)
        ).job,
        launcher="node-contiguous" if by_nodes else "free",
        tensor_parallel=TensorParallel(sequence=rng.random() < 0.8),
        context_parallel=ContextParallel(
            communication=rng.choice(("p2p", "p2p", "all_gather"))
        ),
        data_parallel=DataParallel(
            sharding=rng.choice(("zero1", "ddp", "zero3")),
            overlap_reduce=rng.random() < 0.5,
            overlap_gather=rng.random() < 0.5,
        ),
        overlap=Overlap(cp=rng.random() < 0.5),
        require={"tp": "leaf"} if rng.random() < 0.3 else {},
        compute=Compute(micro_batch_time=rng.choice((1e-5, 1e-3))),
        micro_batches=pp,
    )
    every = legal_placements(topology, job)
    if not every:
        pytest.skip("no room")
    problem = Problem.of(topology, job, "time")
    bound = lower_bound(problem, problem.forced_block).value
    assert bound <= least(topology, job, "time", every) * (1 + 1e-9)
