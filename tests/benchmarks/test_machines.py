"""Machines and graphs are what their history says, and hold the jobs made for them."""

from collections import Counter

import numpy as np
import pytest

from benchmarks import graphs
from benchmarks.cluster_jobs import KINDS, drawn
from benchmarks.clusters import HISTORIES
from benchmarks.traffic_graphs import (
    butterfly,
    pipelines_of_stars,
    ring_of_rings,
    rings_of_rings,
    stencil,
    weighted_stencil,
)
from placer.documents import document_of
from placer.topology.read import decode_topology

DRAWS = 128
SMALL = [case for case in graphs.cases() if case.ranks < 2000]


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


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_every_graph_fits_its_machine(case):
    """Ranks of flows are ranks of the job, which the machine has GPUs for."""
    topology = decode_topology(document_of(case.machine, case.name))
    senders, receivers, size = case.graph
    assert case.ranks <= topology.num_gpus
    assert max(senders.max(), receivers.max()) < case.ranks
    assert (senders != receivers).all()
    assert (size > 0).all()


@pytest.mark.parametrize(
    ("graph", "degrees"),
    [
        (stencil(3, 3), [2, 3, 2, 3, 4, 3, 2, 3, 2]),
        (stencil(3, 3, periodic=True), [4] * 9),
        (ring_of_rings(9, 3), [4, 2, 2] * 3),
        (butterfly(8), [3] * 8),
        (rings_of_rings(9, 3), [4, 2, 2] * 3),
        (pipelines_of_stars(1, 2, 2), [3, 1, 1, 3, 1, 1]),
        (weighted_stencil((3, 4), (1, 2)), [2, 3, 3, 2, 3, 4, 4, 3, 2, 3, 3, 2]),
    ],
)
def test_ranks_have_as_many_neighbours_as_they_should(graph, degrees):
    """By hand."""
    assert np.bincount(graph[0], minlength=len(degrees)).tolist() == degrees
