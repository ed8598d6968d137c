"""Fair shares of an uplink, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from placer.cost.fabric import Fabric
from placer.cost.fair_share import Crossings, fair_pace
from placer.cost.rings import build_rings
from tests.cost.machines import racks


def on_one_link(flows: list[int], capacity: float) -> list[float]:
    """Seconds of groups with a byte each through one link, a NIC carrying 1 B/s."""
    groups = np.arange(len(flows))
    crossings = [Crossings(groups, np.zeros_like(groups), np.array([capacity]))]
    alone, copy = np.ones(len(flows)), np.zeros(len(flows), dtype=np.int64)
    return fair_pace(crossings, np.array(flows), alone, copy).tolist()


def test_one_nic_beside_three() -> None:
    """Four flows at 1:2: bytes over capacity is 1 s, the group of one NIC takes 4/3.

    Each flow has half its NIC until the three, of a third of a byte, are done after
    2/3 s; the fourth sends its other two thirds alone.
    """
    assert on_one_link([3, 1], 2.0) == pytest.approx([2 / 3, 4 / 3])


def test_between_two_bounds() -> None:
    """Held back on one link by the one, on another by the other: in between.

    A group of one NIC shares link 0 with a group of one and link 1 with a group of two,
    each of 1 B/s. On link 0 alone it takes 2 s; on link 1 it has a third until its
    rival is done, 3/2 s, and the link for itself then: 2 s. If it were slowest
    everywhere: 3/2 + 2/2 = 5/2.
    """
    group = np.array([0, 1]), np.array([0, 2])
    crossings = [
        Crossings(group[0], np.zeros(2, dtype=np.int64), np.array([1.0])),
        Crossings(group[1], np.zeros(2, dtype=np.int64), np.array([1.0])),
    ]
    found = fair_pace(crossings, np.array([1, 1, 2]), np.ones(3), np.zeros(3, int))
    assert found[0] == pytest.approx((2 + 5 / 2) / 2)


@pytest.mark.parametrize("seed", range(30))
def test_on_every_link_somebody_takes_bytes_over_capacity(seed: int) -> None:
    """The slowest group on an uplink takes at least what its bytes need, or more."""
    draw = np.random.default_rng(seed)
    fabric = Fabric.of(racks(8, float(draw.choice([1, 2, 4, 7]))))
    rings = build_rings(fabric, draw.permutation(32).reshape(-1, 4))
    for hops in rings.flows.crossings:
        for link in np.unique(hops.link):
            crossing = hops.group[hops.link == link]
            least = len(crossing) / hops.capacity[link]
            assert rings.route.outer_pace[crossing].max() >= least * (1 - 1e-12)
