"""Rings, all-to-alls and messages on machines worked out by hand."""

import numpy as np
import pytest

from placer.cost.communicators import CollectiveCost, Communicators
from placer.cost.custom import group_time
from placer.cost.exchange import all_to_all_cost, send_cost
from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.cost.rings import Rings, build_rings
from placer.job.model import Collectives
from placer.job.traffic import Group
from placer.topology.model import Topology
from tests.cost.machines import machine, racks, tier

SIZE = 2.0**28  # bytes, of the published contention table
MICRO = 1e-6
RINGS = Collectives("ring")


def ring_pass(
    topology: Topology, gpus: np.ndarray, size: float = SIZE
) -> CollectiveCost:
    rings = build_rings(Fabric.of(topology), gpus)
    return Communicators(rings).gather(size)


def one_lane(topology: Topology, order: np.ndarray) -> CollectiveCost:
    """A ring in exactly this order with one NIC a hop, as a simulator would run it."""
    fabric = Fabric.of(topology)
    gpus = order[None, :]
    tiers = fabric.tier_between(gpus, np.roll(gpus, -1, axis=1))
    domains = np.array([len(np.unique(fabric.scale_up_domain_of_gpu[order]))])
    one = np.ones(1, dtype=np.int64)
    rings = Rings(fabric, gpus, tiers, domains, one)
    return Communicators(rings).gather(SIZE)


# Contention of lock-step rings on 8 racks of 4 GPUs: microseconds by the
# bottleneck-link rule, and by event simulation of the same steps on a congestion-aware
# network.


def test_rings_inside_racks() -> None:
    """Groups of 4 inside a rack: rule 225 us, events 225 us."""
    seconds = ring_pass(racks(), np.arange(32).reshape(8, 4)).seconds
    assert seconds == pytest.approx(225 * MICRO, rel=0.01)


@pytest.mark.parametrize(
    ("oversubscription", "rule", "event"),
    [(1, 2370, 2363), (2, 4719, 4713), (4, 9416, 9412), (7, 16463, 16464)],
)
def test_four_rails(oversubscription: float, rule: float, event: float) -> None:
    """Four groups with one GPU a rack share each rack's uplink."""
    rails = np.arange(32).reshape(8, 4).T
    seconds = ring_pass(racks(oversubscription=oversubscription), rails).seconds
    assert seconds == pytest.approx(rule * MICRO, rel=0.01)
    assert seconds == pytest.approx(event * MICRO, rel=0.05)


@pytest.mark.parametrize(
    ("strided", "oversubscription", "rule", "event"),
    [
        (False, 1, 2694, 2604),
        (False, 4, 2694, 2606),
        (True, 1, 2694, 2605),
        (True, 4, 10495, 10403),
    ],
)
def test_one_ring_over_all(
    strided: bool, oversubscription: float, rule: float, event: float
) -> None:
    """One 32-GPU ring with a NIC a hop: near the events, below the rule.

    The rule pays the worst hop's latency in each of 31 steps (93 us), this model the
    mean of hops inside a rack for 24 of them and of hops between racks for 7, which is
    why it is closer to the events.
    """
    order = np.arange(32).reshape(8, 4)
    topology = racks(oversubscription=oversubscription)
    cost = one_lane(topology, order.T.ravel() if strided else order.ravel())
    assert cost.seconds == pytest.approx(event * MICRO, rel=0.05)
    assert cost.bandwidth_seconds + 93 * MICRO == pytest.approx(rule * MICRO, rel=0.01)


def pods() -> Topology:
    """16 single-GPU nodes in 4 pods, 1:4 oversubscribed between pods."""
    return machine(
        [1, 4, 4],
        [
            tier("node", 100e9, 1e-6),
            tier("pod", 100e9, 2e-6),
            tier("cluster", 100e9, 4e-6, oversubscription=4.0),
        ],
    )


@pytest.mark.parametrize("seed", range(5))
def test_order_between_domains_matters(seed: int) -> None:
    """Contiguous <= random <= strided for a ring over pods.

    Contiguous, one flow leaves a pod over 4 x 100/4 GB/s; strided, four do.
    """
    contiguous = np.arange(16)[None, :]
    strided = np.arange(16).reshape(4, 4).T.reshape(1, 16)
    shuffled = np.random.default_rng(seed).permutation(16)[None, :]
    times = [
        ring_pass(pods(), g).seconds.item() for g in (contiguous, shuffled, strided)
    ]
    assert times == sorted(times)
    edge = 15 / 16 * SIZE
    latency = 15 * (12 * 2e-6 + 4 * 4e-6) / 16
    assert times[0] == pytest.approx(edge / 100e9 + latency)
    assert times[2] == pytest.approx(4 * edge / 100e9 + 15 * 4e-6)


def test_slow_node() -> None:
    """A group with a member on a node at half bandwidth takes twice as long."""
    factor = np.array([1.0, 0.5])
    tiers = [tier("rack", 900e9, scale_up=True), tier("cluster", 100e9)]
    topology = machine([4, 2], tiers, factor)
    inside = np.arange(8).reshape(2, 4)
    seconds = ring_pass(topology, inside).seconds
    assert seconds[1] == pytest.approx(2 * seconds[0])


@pytest.mark.parametrize(("oversubscription", "rate"), [(1.0, 200e9), (4.0, 50e9)])
def test_all_to_all_by_hand(oversubscription: float, rate: float) -> None:
    """Two racks of two: half the buffer of both members leaves over the rack's uplink.

    Each member also pays one NVLink and two fabric latencies.
    """
    topology = racks(2, oversubscription, gpus=2)
    cost = all_to_all_cost(Fabric.of(topology), np.arange(4)[None, :], 4e9)
    expected = 2 * 2e9 / rate + 0.5e-6 + 2 * 3e-6
    assert cost.seconds == pytest.approx(expected)
    assert cost.bytes_by_tier.tolist() == [4 * 1e9, 4 * 2e9]


def test_all_to_all_inside_a_rack_does_not_wait_for_its_uplink() -> None:
    """A group inside a rack is not slowed by one that fills the rack's uplink."""
    topology = racks(2, 100.0)
    groups = np.array([[0, 1], [2, 4]])
    inside, across = all_to_all_cost(Fabric.of(topology), groups, 1.8e9).seconds
    assert inside == pytest.approx(1e-3 + 0.5e-6)
    assert across == pytest.approx(0.9e9 / 4e9 + 3e-6)


def test_messages_by_hand() -> None:
    """A message takes its latency and its bytes; messages together share an uplink."""
    fabric = Fabric.of(racks(3, 4.0))
    alone = send_cost(fabric, np.array([0]), np.array([1]), 9e8)
    assert alone.seconds == pytest.approx(1e-3 + 0.5e-6)
    sources, targets = np.array([0, 1, 4]), np.array([8, 9, 10])
    together = send_cost(fabric, sources, targets, 1e8)
    # Two leave rack 0 and three enter rack 2, over 4 x 100/4 = 100 GB/s each.
    assert together.seconds == pytest.approx(3e-3 + 3e-6)
    assert together.load.up[1].tolist() == [2e8, 1e8, 0.0]
    assert together.load.down[1].tolist() == [0.0, 0.0, 3e8]


@pytest.mark.parametrize(
    ("collective", "seconds"),
    [
        ("all_reduce", 2 * (0.75e9 / 900e9 + 1.5e-6)),
        ("all_gather", 0.75e9 / 900e9 + 1.5e-6),
        ("reduce_scatter", 0.75e9 / 900e9 + 1.5e-6),
        ("all_to_all", 0.75e9 / 900e9 + 1.5e-6),
        ("send_recv", 1e9 / 900e9 + 0.5e-6),
        ("relay", 3 * (1e9 / 900e9 + 0.5e-6)),
    ],
)
def test_custom_groups(collective: str, seconds: float) -> None:
    """Every collective of a custom group, 1 GB a rank, three times a step."""
    network = PlacedNetwork(Fabric.of(racks()), np.arange(32))
    group = Group("mine", collective, 1e9, 3.0, False, ((0, 1, 2, 3), (4,)))
    assert group_time(network, group, RINGS).seconds == pytest.approx(3 * seconds)


def test_hops_of_a_relay_add_up() -> None:
    """A message over two racks and back: one NVLink hop and two over the fabric."""
    network = PlacedNetwork(Fabric.of(racks()), np.arange(32))
    group = Group("mine", "relay", 1e9, 2.0, False, ((0, 1, 4, 2), (8, 9, 10, 11)))
    time = group_time(network, group, RINGS)
    nearby, across = 1e9 / 900e9 + 0.5e-6, 1e9 / 100e9 + 3e-6
    assert time.seconds == pytest.approx(2 * (nearby + 2 * across))
    assert time.traffic is not None
    assert time.traffic.bytes_by_tier.tolist() == [2 * 4e9, 2 * 2e9]


def test_free_scale_out() -> None:
    """With free scale-out links only NVLink costs anything."""
    fabric = Fabric.of(racks(2)).with_free_scale_out()
    across = np.array([[0, 4]])
    groups = Communicators(build_rings(fabric, across))
    assert groups.gather(SIZE).seconds == 0.0
    assert groups.all_reduce(SIZE, "auto").seconds == 0.0
    assert all_to_all_cost(fabric, across, SIZE).seconds == 0.0
    assert send_cost(fabric, across[:, :1], across[:, 1:], SIZE).seconds == 0.0
    inside = all_to_all_cost(fabric, np.array([[0, 1]]), 1.8e12).seconds
    assert inside == pytest.approx(1.0 + 0.5e-6)
