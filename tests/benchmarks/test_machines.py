"""Machines are what their history says, and hold the jobs made for them."""

from collections import Counter

from benchmarks.cluster_jobs import KINDS, drawn
from benchmarks.clusters import HISTORIES

DRAWS = 128


def test_every_job_with_every_history():
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
