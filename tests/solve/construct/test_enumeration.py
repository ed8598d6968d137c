"""Placements of many ranks are counted before they are listed."""

from math import exp

import pytest

from placer.solve.construct.enumeration import log_fewest
from placer.solve.tree.symmetry import Symmetry
from placer.testing.strategies import machine


@pytest.mark.parametrize(("gpus", "count"), [([4, 5], 126), ([2, 2], 3)])
def test_few_placements_of_many_ranks_are_counted(gpus, count):
    """By hand: 9 ranks on nodes of 4 and 5 have 126, 4 on two alike of 2 have 3."""
    hosts = machine([("b0", gpus)])
    least = log_fewest(Symmetry(hosts), hosts.gpus_of_node, sum(gpus))
    assert exp(least) == pytest.approx(count)
