"""Transfers between hosts that hold one run of ranks each: the best cuts."""

import random
from itertools import pairwise, permutations

import numpy as np
import pytest

import placer
from placer.documents import document_of
from placer.solve.bounds import certificate
from placer.solve.problem.compiled import Problem
from placer.topology.read import decode_topology
from tests.solve.solving import solve
from tests.solve.test_workloads import workload_of


def hosts_of(sizes):
    fast, slow = ({"bandwidth": f"{rate}GB/s", "latency": "1us"} for rate in (400, 50))
    content = {
        "format": "placer/topology",
        "version": 1,
        "name": "hosts",
        "tiers": [
            {"name": "node", "size": 2, "scale_up": True} | fast,
            {"name": "all"} | slow,
        ],
        "nodes": [{"names": f"h{i}", "gpus": size} for i, size in enumerate(sizes)],
    }
    return decode_topology(document_of(content, "t"))


def small_workload(rng):
    """Two or three roles of 2 to 8 ranks in all, with any transfers, in runs."""
    roles = []
    for name in ("a", "b", "c")[: rng.choice((2, 3))]:
        tp, dp = rng.choice(((1, 1), (2, 1), (1, 2), (1, 3)))
        roles.append({"name": name, "job": {"parallelism": {"tp": tp, "dp": dp}}})
    names = [role["name"] for role in roles]
    transfers = []
    for first, second in pairwise(names):
        pattern = rng.choice(("reshard", "broadcast", "paired", "all_to_all"))
        size = rng.randrange(1, 20) * 1e7
        transfers.append(
            {"from": first, "to": second, "bytes": size, "pattern": pattern}
        )
    return workload_of(roles, transfers, launcher={"ranks": "node-contiguous"})


def cuts(ranks, rooms):
    """Every way to give hosts, in this order, runs of the ranks that are left."""
    if not rooms:
        if not ranks:
            yield []
        return
    for length in range(min(ranks, rooms[0]) + 1):
        for rest in cuts(ranks - length, rooms[1:]):
            yield [length, *rest]


def best_of_all(machine, job):
    """Least step time over all orders of the hosts and all cuts of the ranks."""
    problem = Problem.of(machine, job, "time")
    first = np.cumsum(machine.gpus_of_node) - machine.gpus_of_node
    found = np.inf
    rooms = machine.gpus_of_node.tolist()
    for order in permutations(range(len(rooms))):
        for lengths in cuts(job.world_size, [rooms[host] for host in order]):
            places = [
                first[host] + np.arange(length)
                for host, length in zip(order, lengths, strict=True)
            ]
            found = min(found, problem.model.step(np.concatenate(places)).step_time_s)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_no_cut_of_the_ranks_beats_the_bound_or_the_placement(seed):
    rng = random.Random(seed)
    job = small_workload(rng)
    sizes = [rng.choice((2, 2, 3)) for _ in range(rng.choice((2, 3, 4)))]
    if rng.random() < 0.5:
        sizes = [sizes[0]] * len(sizes)
    if sum(sizes) < job.world_size:
        return
    machine = hosts_of(sizes)
    best = best_of_all(machine, job)
    problem = Problem.of(machine, job, "time")
    bound = certificate.lower_bound(problem, problem.forced_block).value
    assert bound <= best * (1 + 1e-9)
    assert solve(machine, job, time_limit=5.0).value == pytest.approx(best)


def test_partners_side_by_side_share_a_host_where_hosts_are_to_spare():
    """Ranks 0 and 1 send to 2 and 3: three hosts of two keep none but 1 and 2 near."""
    machine = placer.read_topology("cluster:1 node:3 gpu:3")
    roles = [{"name": n, "job": {"parallelism": {"dp": 2}}} for n in ("a", "b")]
    sent = [{"from": "a", "to": "b", "bytes": "5GB", "pattern": "all_to_all"}]
    job = workload_of(roles, sent, launcher={"ranks": "node-contiguous"})
    found = solve(machine, job, time_limit=5.0)
    assert found.value == pytest.approx(best_of_all(machine, job))
