"""Collectives on machines worked out by hand, simulated, and measured."""

import numpy as np
import pytest

from placer.cost.communicators import Communicators
from placer.cost.exchange import all_to_all_cost
from placer.cost.fabric import Fabric
from placer.cost.rings import build_rings
from tests.cost.machines import machine, racks, tier

S = 1e9
NVLINK, NIC = 900e9, 100e9
IN, OUT = 0.5e-6, 3e-6  # latency of a hop inside a rack and between racks
ONE, FOUR = [0, 1, 2, 3], [0, 1, 4, 5, 8, 9, 12, 13]  # of a rack, two of each of four


def groups(topology, members):
    fabric = Fabric.of(topology)
    return Communicators(build_rings(fabric, members), fabric)


def all_reduce(topology, members, name, size=S):
    return groups(topology, np.array([members])).all_reduce(size, name)


def exchange(thinner, copies=0):
    """4 GB of each of two GPUs in each of two racks."""
    topology = racks(2, thinner, gpus=2)
    return all_to_all_cost(Fabric.of(topology), np.arange(4)[None], 4e9, copies)


# Seconds, and bytes inside racks and between them. A switch first fills 16 channels of
# 4 chunks in and out, and reduces at 74 % of NVLink; trees over four racks have two
# levels; two NICs carry what two members of each rack send.
COSTS = {
    "switch of a rack": (
        lambda: all_reduce(racks(), ONE, "nvls"),
        (S + 2 * 16 * 4 * 131072) / (0.74 * NVLINK) + 25 / 3.4 * IN,
        (4 * (1 + 1 / 4) * S, 0),
    ),
    "ring over four racks": (
        lambda: all_reduce(racks(4), FOUR, "ring"),
        2 * (7 / 8 * S / (2 * NIC) + 3 * OUT + 4 * IN),
        (4 * 2 * 7 / 8 * S, 4 * 2 * 7 / 8 * S),
    ),
    "trees over four racks": (
        lambda: all_reduce(racks(4), FOUR, "tree"),
        2 * S / (2 * NIC) + 2 * (1 * IN + 2 * OUT),
        (4 * 2 * S, 2 * 3 * S),
    ),
    "switches of four racks": (
        lambda: all_reduce(racks(4), FOUR, "nvls"),
        2 * (S + 6 * 16 * 2 * 65536) / (2 * NIC) + 25 / 3.4 * IN + 2 * 2 * OUT,
        (8 * (1 + 1 / 2) * S, 2 * 3 * S),
    ),
    "all-to-all": (
        lambda: exchange(1.0),
        2 * 2e9 / 200e9 + IN + 2 * OUT,
        (4 * 1e9, 4 * 2e9),
    ),
    # Of four copies of a token 15/8 / 4 cross; the neighbour gets 175/256 once.
    "all-to-all of copies": (
        lambda: exchange(4.0, copies=4),
        2 * (2e9 * 15 / 8 / 4) / 50e9 + IN + OUT,
        (4 * 2e9 * 175 / 256, 4 * 2e9 * 15 / 8 / 4),
    ),
}


@pytest.mark.parametrize("name", COSTS)
def test_costs_by_hand(name):
    """Seconds and bytes by tier, counted on paper."""
    call, seconds, sent = COSTS[name]
    found = call()
    assert found.seconds == pytest.approx(seconds)
    assert found.traffic.bytes_by_tier.tolist() == pytest.approx(sent)


RAILS = np.arange(32).reshape(8, 4).T


@pytest.mark.parametrize(
    ("members", "oversubscription", "rule", "event"),
    [
        (RAILS.T, 1, 225, 225),
        (RAILS, 1, 2370, 2363),
        (RAILS, 2, 4719, 4713),
        (RAILS, 4, 9416, 9412),
        (RAILS, 7, 16463, 16464),
    ],
)
def test_rings_that_share_uplinks(members, oversubscription, rule, event):
    """Groups inside 8 racks of 4 GPUs, and four with one GPU a rack, microseconds.

    By the bottleneck-link rule of a published table, and by event simulation of the
    same steps on a congestion-aware network.
    """
    topology = racks(oversubscription=oversubscription)
    seconds = groups(topology, members).gather(2.0**28).seconds
    assert seconds == pytest.approx(rule * 1e-6, rel=0.01)
    assert seconds == pytest.approx(event * 1e-6, rel=0.05)


@pytest.mark.parametrize(
    ("gpus", "name", "measured"),
    [(4, "ring", 197), (4, "tree", 234), (8, "ring", 394), (8, "tree", 486)],
)
def test_three_domains_as_measured(gpus, name, measured):
    """Three NVLink domains of GB200 without NVLS, 17 GB: NVIDIA/nccl issue 1801."""
    nvlink, nic = 720e9, 49.7e9
    tiers = [tier("rack", nvlink, 1e-6, scale_up=True), tier("cluster", nic, 8e-6)]
    members, size = 3 * gpus, 2.0**34
    found = all_reduce(machine([gpus, 3], tiers), [*range(members)], name, size)
    rate = 2 * (members - 1) / members * size / found.seconds.item() / 1e9
    assert rate == pytest.approx(measured, rel=0.05)
