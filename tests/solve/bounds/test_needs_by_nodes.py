"""Needs of a launch by nodes: never refused where some placement meets all."""

import random
from itertools import pairwise, product

import numpy as np
import pytest

from placer.solve.bounds.transfers.transfers import transfers_of
from placer.solve.problem.compiled import Problem
from tests.solve.test_transfers import role
from tests.solve.test_workloads import machine_of, workload_of


def small_workload(rng):
    """Two roles, or three, of 2 to 6 ranks each and any shapes."""
    roles = []
    for name in ("a", "b", "c")[: rng.choice((2, 2, 2, 3))]:
        tp, dp = rng.choice(((1, 2), (2, 1), (1, 3), (2, 2), (1, 4), (2, 3), (4, 1)))
        sharding = rng.choice(("zero1", "zero3"))
        roles.append(role(name, tp * dp, sharding=sharding, tp=tp))
    sent = [
        {"from": one["name"], "to": other["name"], "bytes": rng.randrange(1, 9) * 1e9}
        | {"pattern": rng.choice(("reshard", "reshard", "paired", "all_to_all"))}
        for one, other in pairwise(roles)
    ]
    return workload_of(roles, sent, launcher={"ranks": "node-contiguous"})


def labelings(ranks, racks, gpus):
    """The rack of each rank, in all ways whose runs find nodes."""
    for label in product(range(len(racks)), repeat=ranks):
        label = np.array(label)
        begins = np.flatnonzero(np.diff(label, prepend=-1))
        nodes = -(-np.diff(begins, append=ranks) // gpus)
        if (np.bincount(label[begins], nodes, len(racks)) <= racks).all():
            yield label


def meets(kinds, label):
    """Whether every rack that has ranks of a kind has the partners it needs."""
    return all(
        np.count_nonzero(kind.partners & (label == rack)) >= kind.needs
        for kind in kinds
        for rack in np.unique(label[kind.ranks])
    )


def refused(seed):
    """How many times were refused, all of them rightly."""
    rng = random.Random(seed)
    job = small_workload(rng)
    gpus = rng.choice((2, 2, 3))
    racks = [rng.randrange(1, 5) for _ in range(rng.choice((2, 3)))]
    if job.world_size > min(10, sum(racks) * gpus - 1):
        return 0
    problem = Problem.of(machine_of(racks, gpus), job, "time")
    transfers = transfers_of(problem)
    if problem.forced_block or transfers is None:
        return 0
    ways, found = list(labelings(job.world_size, racks, gpus)), 0
    for seconds in transfers.times.tolist():
        kinds = transfers.kinds(seconds)
        if not transfers.sides.may_hold(kinds):
            assert not any(meets(kinds, label) for label in ways), seed
            found += 1
    return found


@pytest.mark.slow
def test_no_time_is_refused_that_some_placement_keeps():
    assert sum(refused(seed) for seed in range(24)) > 3


@pytest.mark.slow
def test_nor_in_more_cases():
    assert sum(refused(seed) for seed in range(1000, 1012)) > 2
