"""Drawn machines are what their history says, and hold the jobs drawn for them."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.cluster_jobs import KINDS, drawn, job
from benchmarks.clusters import FAMILIES, HISTORIES, machine
from placer.placement.baselines import baseline

DRAWS = 128


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
