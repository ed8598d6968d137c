"""The graphs of the benchmark are what they are called, and fit their machines."""

import numpy as np
import pytest

from benchmarks.graphs import butterfly, cases, ring_of_rings, stencil
from placer.document import document_of
from placer.topology.read import decode_topology


@pytest.mark.parametrize("case", cases()[:16], ids=lambda case: case.name)
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
    ],
)
def test_ranks_have_as_many_neighbours_as_they_should(graph, ranks, degrees):
    """By hand."""
    assert np.bincount(graph[0], minlength=ranks).tolist() == degrees
