"""Peers of the benchmark on drawn machines pay what placer pays."""

import numpy as np
import pytest

from benchmarks import annealing
from benchmarks.cases import case
from placer.cost.hop_cost import HopCost


def test_hop_price_is_the_hop_cost():
    """The annealing's own sum of edges says what a move adds to the cost."""
    topology, job = case("drawn-8", "hop-cost")
    start = np.arange(job.world_size)
    price = annealing._HopPrice(topology, job, start)
    cost = HopCost(topology, job)
    assert price.start == pytest.approx(cost.cost(start))
    ranks, gpus = np.array([0, 1, 70, 71]), np.array([70, 71, 0, 1])
    moved = start.copy()
    moved[ranks] = gpus
    added = cost.cost(moved) - cost.cost(start)
    assert price.delta(ranks, gpus) == pytest.approx(added)
    assert added != 0
