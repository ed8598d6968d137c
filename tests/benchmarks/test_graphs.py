"""The graphs of the benchmark are what they are called, and fit their machines."""

import numpy as np
import pytest

from benchmarks.graphs import cases
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

SMALL = [case for case in cases() if case.ranks < 2000]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_every_case_fits_its_machine(case):
    """Ranks of flows are ranks of the job, which the machine has GPUs for."""
    machine = decode_topology(document_of(case.machine, case.name))
    senders, receivers, size = case.graph
    assert case.ranks <= machine.num_gpus
    assert max(senders.max(), receivers.max()) < case.ranks
    assert (senders != receivers).all()
    assert (size > 0).all()


@pytest.mark.parametrize(
    ("graph", "ranks", "degrees"),
    [
        (stencil(3, 3), 9, [2, 3, 2, 3, 4, 3, 2, 3, 2]),
        (stencil(3, 3, periodic=True), 9, [4] * 9),
        (ring_of_rings(9, 3), 9, [4, 2, 2] * 3),
        (butterfly(8), 8, [3] * 8),
        (rings_of_rings(9, 3), 9, [4, 2, 2] * 3),
        (pipelines_of_stars(1, 2, 2), 6, [3, 1, 1, 3, 1, 1]),
        (weighted_stencil((3, 4), (1, 2)), 12, [2, 3, 3, 2, 3, 4, 4, 3, 2, 3, 3, 2]),
    ],
)
def test_ranks_have_as_many_neighbours_as_they_should(graph, ranks, degrees):
    """By hand."""
    assert np.bincount(graph[0], minlength=ranks).tolist() == degrees
