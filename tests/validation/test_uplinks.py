"""Rings that share uplinks: the cost model against a simulation that shares nothing."""

import numpy as np
import pytest

from validation.flows import Racks, max_min_rates, ring_seconds
from validation.uplinks import cases, share_in_order


@pytest.mark.slow
def test_slowest_groups_are_right():
    """Within 10 % of the simulation in at least 300 placements."""
    errors = np.array([case.error for case in cases()])
    assert len(errors) >= 300
    assert np.abs(errors).max() < 0.10
    assert np.sqrt((errors**2).mean()) < 0.01


@pytest.mark.slow
def test_placements_keep_their_order():
    """Of two placements more than 2 % apart the model knows the faster one."""
    assert share_in_order() > 0.97


def test_rates_rise_together():
    """Bertsekas and Gallager: a flow held back elsewhere leaves its share to others.

    Links of 1 and 10 B/s; flow 0 on both, flow 1 on the second, flow 2 on none.
    """
    links = np.array([[0, 1, 3], [1, 3, 3], [2, 3, 3]])
    rates = max_min_rates(np.array([1.0, 10.0, 5.0]), links)
    assert rates == pytest.approx([1.0, 9.0, 5.0])


def test_a_ring_by_hand():
    """Two GPUs in each of two racks: two rings, each over one NIC of every rack."""
    racks = Racks(1, 2, 2, nvlink=900.0, nic=100.0, rack_uplink=1e9, pod_uplink=1e9)
    (seconds,) = ring_seconds(racks, [[0, 1, 2, 3]], 800.0)
    assert seconds == pytest.approx(3 / 4 * 800 / 2 / 100)
    squeezed = Racks(1, 2, 2, 900.0, 100.0, rack_uplink=50.0, pod_uplink=1e9)
    (seconds,) = ring_seconds(squeezed, [[0, 1, 2, 3]], 800.0)
    assert seconds == pytest.approx(3 / 4 * 800 / 50)
