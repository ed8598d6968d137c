"""Messages of several sizes: which partners must be near, not only how many."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer.placement.placement import Placement
from placer.solve.bounds.transfers.transfers import transfers_each_way
from placer.solve.problem.compiled import Problem
from placer.solve.tree.in_runs import fill_in_runs
from tests.solve.test_transfers import role
from tests.solve.test_workloads import machine_of, workload_of


def problem_of(racks, block, ranks, sent):
    """Ranks that send each other so many bytes, launched by nodes of a size."""
    halves = [role("a", ranks // 2), role("b", ranks - ranks // 2)]
    any_traffic = [{"from": "a", "to": "b", "bytes": "1GB"}]
    job = workload_of(halves, any_traffic, launcher={"ranks": "node-contiguous"})
    senders, receivers = np.array(list(sent)).T
    traffic = replace(
        job.traffic,
        senders=senders,
        receivers=receivers,
        size_bytes=np.array(list(sent.values())),
    )
    machine = machine_of(racks, block, "900GB/s")
    return Problem.of(machine, replace(job, traffic=traffic), "time", 0)


def least_of_all(problem, racks, block, ranks):
    """The least time of all placements of runs on nodes; None where there is none."""
    found = []
    for label in product(range(len(racks)), repeat=ranks):
        home = np.array(label)
        begins = np.flatnonzero(np.diff(home, prepend=-1))
        nodes = -(-np.diff(begins, append=ranks) // block)
        if (np.bincount(home[begins], nodes, len(racks)) > racks).any():
            continue
        machine = problem.machine
        node = fill_in_runs(machine.domain_of_node[1], problem.capacity, home)
        gpus = Placement.on_nodes(machine, node).gpu_of_rank
        found.append(problem.goal.value(gpus))
    return min(found, default=None)


@pytest.mark.parametrize("seed", range(12))
def test_no_time_is_ruled_out_that_a_placement_takes(seed):
    rng = random.Random(seed)
    ranks, block = rng.choice((6, 7, 8)), rng.choice((2, 2, 3))
    nodes = -(-ranks // block) + rng.choice((0, 1, 2))
    first = rng.randrange(1, nodes)
    racks, components = [first, nodes - first], rng.randrange(1, 4)
    sizes = rng.choice(((1, 8), (1, 1.1, 8, 40), (1, 2, 4)))
    sent = {
        (a, b): rng.choice(sizes) * 1e8
        for a in range(ranks // 2)
        for b in range(ranks // 2, ranks)
        if rng.random() < (0.8 if a % components == b % components else 0.05)
    }
    if not sent:
        return
    problem = problem_of(racks, block, ranks, sent)
    least = None
    for transfers in filter(None, transfers_each_way(problem, problem.forced_block)):
        least = least or least_of_all(problem, racks, block, ranks)
        if least is not None:
            assert transfers.times[transfers.least()] <= least * (1 + 1e-9)


def test_heavy_messages_that_no_rack_holds_are_known_to_be_far():
    """Any two of four senders fit a rack, but one of them always has 8 GB to fetch."""
    sent = {(a, b): 1e7 for a in range(4) for b in range(4, 8)}
    sent |= dict.fromkeys([(0, 4), (1, 6), (2, 5), (3, 7)], 8e9)
    problem = problem_of([3, 3], 2, 8, sent)
    every = transfers_each_way(problem, problem.forced_block)
    seconds = [of.times[of.least()] for of in every]
    least = least_of_all(problem, [3, 3], 2, 8)
    assert seconds[0] < least / 2
    assert seconds[1] == pytest.approx(least, rel=1e-2)
    assert seconds[1] <= least
