"""Jobs whose groups and traffic are the user's own are placed well."""

import itertools

import numpy as np
import pytest

import placer
from placer import testing
from placer.cost.step import StepModel
from placer.solve.problem.compiled import Problem
from tests.conformance.test_pipette import pipelines, racks
from tests.solve.solving import solve

COLLECTIVES = ("all_to_all", "all_reduce", "all_gather", "send_recv", "relay")


def job_of(ranks, launcher="free", **keys):
    """A job of so many ranks with groups or traffic."""
    return testing.job("own", launcher=launcher, dp=ranks, **keys)


def pairs(ranks, size="2GB"):
    """Rank r beside rank r + half."""
    half = ranks // 2
    rows = [[r, r + half] for r in range(half)]
    group = {"name": "pairs", "collective": "send_recv", "bytes": size, "ranks": rows}
    return {"groups": [group]}


@pytest.mark.parametrize("ranks", [128])
def test_distant_pairs_share_nodes(ranks):
    """Each pair on one node, which is the bound."""
    machine = placer.read_topology(f"rack:{ranks // 32} node:8 gpu:4")
    found = solve(machine, job_of(ranks, **pairs(ranks)))
    assert found.value == pytest.approx(4.4454e-3, rel=1e-4)
    assert found.lower_bound == pytest.approx(found.value)


def random_keys(rng, ranks):
    """Overlapping groups of several sizes and patterns, and traffic."""
    groups = [
        {
            "name": f"g{i}",
            "collective": str(rng.choice(COLLECTIVES)),
            "bytes": float(rng.integers(1, 100)) * 1e6,
            "overlap": False,
            "ranks": [
                row.tolist()
                for row in np.split(rng.permutation(ranks), [int(rng.integers(2, 5))])
                if len(row) > 1
            ],
        }
        for i in range(int(rng.integers(0, 3)))
    ]
    senders = np.append(rng.integers(ranks, size=5), 0)
    receivers = np.append(rng.integers(ranks, size=5), 1)
    sizes = rng.integers(1, 100, 6) * 1e6
    traffic = {
        "from": senders.tolist(),
        "to": receivers.tolist(),
        "bytes": sizes.tolist(),
    }
    keys = {"groups": groups} if groups else {}
    if not groups or rng.random() < 0.6:
        keys["traffic"] = traffic
    return keys


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_all_placements_is_found(seed):
    """On every small graph; and no bound is above it."""
    rng = np.random.default_rng(seed)
    shape, ranks = (("rack:2 node:2 gpu:2", 5), ("node:3 gpu:2", 6))[seed % 2]
    machine = placer.read_topology(shape)
    job = job_of(ranks, **random_keys(rng, ranks))
    model = StepModel(machine, job)
    every = itertools.permutations(range(machine.num_gpus), ranks)
    # GPUs of a node are alike: only ascending ones are looked at.
    nodes = {tuple(machine.node_of_gpu[list(gpus)].tolist()) for gpus in every}
    least = min(model.step(seated(machine, row)).step_time_s for row in nodes)
    found = solve(machine, job)
    assert found.value == pytest.approx(least, rel=1e-9)
    assert found.lower_bound <= least * (1 + 1e-9)


def seated(machine, node_of_rank):
    """GPU of every rank, the free ones of its node in turn."""
    left = machine.first_gpu_of_node[:-1].copy()
    gpus = []
    for node in node_of_rank:
        gpus.append(int(left[node]))
        left[node] += 1
    return np.array(gpus)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
@pytest.mark.parametrize("seed", range(1))
def test_rules_are_kept_beside_groups(launcher, seed):
    """A required group lies in one rack, and blocks of ranks on their nodes."""
    rng = np.random.default_rng(seed)
    keys = random_keys(rng, 32)
    tied = {
        "name": "tied",
        "collective": "all_to_all",
        "bytes": 1e8,
        "ranks": [[r, r + 16] for r in range(0, 16, 4)],
    }
    keys["groups"] = [*keys.get("groups", []), tied]
    machine = placer.read_topology("rack:3 node:4 gpu:4")
    job = job_of(32, launcher, require={"tied": "rack"}, **keys)
    problem = Problem.of(machine, job)
    found = solve(machine, job)
    assert problem.allows(found.placement.gpu_of_rank)


def test_hosts_without_nvlink_are_annealed() -> None:
    """Nodes of one GPU have no domain to stay in, and yet racks to be in."""
    machine = racks([7, 6, 5, 4])
    found = solve(machine, pipelines(3, 7))
    assert found.moves
