"""Drawn machines are what their history says, and hold the jobs drawn for them."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.cluster_jobs import KINDS, drawn, job
from benchmarks.clusters import FAMILIES, HISTORIES, machine
from placer.placement.baselines import baseline

DRAWS = 128


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_histories(family: str, history: str) -> None:
    """What is missing where: nothing, whole nodes, single GPUs, places of leaves."""
    rng = np.random.default_rng(5)
    topology, missing = machine(rng, family, history, 1500)
    kind = FAMILIES[family]
    nodes_of_leaf = np.bincount(topology.domain_of_node[1])
    assert 1300 <= topology.num_gpus <= 2000
    if history == "whole":
        assert missing == 0
        assert set(nodes_of_leaf) == {kind.leaf}
    else:
        assert 0 < missing < 0.8
    short = topology.gpus_of_node < kind.node
    assert short.any() == (history == "seven of eight")
    if history == "seven of eight":
        assert set(nodes_of_leaf) == {kind.leaf}
        assert set(topology.gpus_of_node[short]) == {kind.node - 1}
    if history in ("scheduled", "uneven"):
        assert len(set(nodes_of_leaf.tolist())) > 2
    if history == "uneven":
        assert nodes_of_leaf.min() >= kind.leaf // 2


def test_the_scheduler_leaves_holes() -> None:
    """What is left free lies in many leaves, few of which are whole."""
    topology, _ = machine(np.random.default_rng(1), "hosts", "scheduled", 1024)
    nodes_of_leaf = np.bincount(topology.domain_of_node[1])
    assert len(nodes_of_leaf) > 1024 / 8 / 16 * 1.2
    assert (nodes_of_leaf < 16).mean() > 0.5


def test_every_job_with_every_history() -> None:
    """A bit more than a hundred draws have all nine jobs with all five histories."""
    draws = [drawn(seed) for seed in range(DRAWS)]
    pairs = Counter((draw.kind, draw.history) for draw in draws)
    assert len(pairs) == len(KINDS) * len(HISTORIES)
    sizes = [draw.job.world_size for draw in draws]
    assert min(sizes) >= 64
    assert sum(size > 4096 for size in sizes) == DRAWS // 16
    assert {draw.job.launcher for draw in draws} == {"free", "node-contiguous"}
    for draw in draws:
        assert draw.job.world_size <= draw.topology.num_gpus
    again = drawn(7)
    assert again.topology.node_names == draws[7].topology.node_names
    assert again.job.parallelism == draws[7].job.parallelism


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_jobs(family: str, kind: str) -> None:
    """A job of every kind has edges and a step, and fits a machine that holds it."""
    topology, _ = machine(np.random.default_rng(2), family, "whole", 600)
    found = job(topology, family, kind, 1.0, "free")
    assert found is not None
    assert found.model is not None
    assert found.weights
    assert baseline("given-order", topology, found).gpu_of_rank.max() < 720
    small, _ = machine(np.random.default_rng(2), family, "whole", 8)
    assert job(small, family, "deep pipeline", 0.1, "free") is None
