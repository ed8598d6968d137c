"""Traffic between ranks: who needs partners near, and whether domains have room."""

import random
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from placer.job.traffic import RankTraffic
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.partners import Partners
from placer.solve.bounds.transfers import Need, Transfers, may_hold
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.construct.test_tiles import grid
from tests.solve.random_cases import machine_of
from tests.solve.test_communicators import job_of

FAST, SLOW = Tier("node", 400e9, 0.0, True), Tier("all", 50e9, 0.0, False)


@pytest.mark.parametrize(
    ("shape", "room", "out"), [((6, 6), 4, 2), ((6, 8), 8, 2), ((4, 4, 4), 8, 3)]
)
def test_a_stencil_has_a_corner_in_every_node(shape, room, out):
    """Some rank of a square has two neighbours elsewhere, of a cube three."""
    edges = grid(*shape).edges
    senders, receivers = np.concatenate((edges, edges[:, ::-1])).T.tolist()
    sent = {"from": senders, "to": receivers, "bytes": [1e7] * len(senders)}
    ranks = int(np.prod(shape))
    nodes = -(-ranks // room)
    machine = machine_of([room] * nodes, [[0] * nodes], [FAST, SLOW])
    bound = lower_bound(Problem.of(machine, job_of(ranks, traffic=sent)), 1)
    assert bound.value == pytest.approx(out * 1e7 / 50e9)


def network_of(label, room, latency=0.0):
    """Sets of ranks in domains of such room; ten bytes a second inside, one outside."""
    fabric = SimpleNamespace(
        scale_up_tier=0,
        bandwidth=np.array([10.0, 1.0]),
        latency=np.array([latency, 3 * latency]),
    )
    return SimpleNamespace(fabric=fabric, label=[label], capacities=[room])


def directions_of(network, flows):
    """Both ways of the flows, where anybody needs a partner near."""
    ends = np.array(list(flows)).T
    sizes = np.array(list(flows.values()))
    both = [Partners.of(network, *pair, sizes) for pair in (ends, ends[::-1])]
    return [one for one in both if one is not None]


def random_flows(rng, label):
    """In components or anyhow; some sets send and receive."""
    sets = label.max() + 1
    component = [rng.randrange(2) for _ in range(sets)]
    sends = [rng.random() < 0.5 for _ in range(sets)]
    mixed, share = rng.random() < 0.5, rng.choice((0.3, 0.6, 0.95))
    flows = {}
    for one, other in product(range(len(label)), repeat=2):
        first, second = label[one], label[other]
        fits = component[first] == component[second] and first != second
        fits &= mixed or (sends[first] and not sends[second])
        if fits and rng.random() < share:
            flows[one, other] = rng.choice((1.0, 1.0, 2.0, 5.0))
    return flows


def least_far(label, rooms, flows, latency):
    """Seconds of the slowest rank, in the best way to place sets, and the domains."""
    bytes_to = np.zeros((2, len(label), len(label)))
    for (one, other), size in flows.items():
        bytes_to[0, one, other] = bytes_to[1, other, one] = size
    members, best = np.bincount(label), (np.inf, label)
    for home in product(range(len(rooms)), repeat=len(members)):
        if (np.bincount(home, members, len(rooms)) > rooms).any():
            continue
        domain = np.array(home)[label]
        far = bytes_to * (domain[:, None] != domain)
        near = bytes_to - far
        waits = ((bytes_to > 0) + 2 * (far > 0)).sum(2) * latency
        took = np.maximum(far.sum(2), near.sum(2) / 10) + waits
        if took.max() < best[0]:
            best = took.max(), domain
    return best


@pytest.mark.parametrize("rounds", [150, *slow([1_500])])
def test_the_best_placement_has_as_many_partners_near(rounds):
    """Sets of unlike ranks, uneven domains, room to spare: all placements are tried."""
    rng, asked = random.Random(4), 0
    for _ in range(rounds):
        label = np.sort([rng.randrange(rng.choice((3, 4, 5))) for _ in range(8)])
        label = np.unique(label, return_inverse=True)[1]
        rooms = [rng.randint(2, 5) for _ in range(rng.choice((2, 3)))]
        latency = rng.choice((0.0, 0.1))
        flows = random_flows(rng, label)
        if sum(rooms) < 8 or not flows:
            continue
        best, domain = least_far(label, rooms, flows, latency)
        network = network_of(label, np.array(rooms), latency)
        for one in directions_of(network, flows) if np.isfinite(best) else ():
            needs = one.needs(best)[label]
            for rank in np.flatnonzero(needs):
                own = one.component[label] == one.component[label[rank]]
                near = one.is_partner[label] & own & (domain == domain[rank])
                assert np.count_nonzero(near) >= needs[rank]
            asked += bool(needs.any())
    assert asked > rounds // 50


def test_messages_of_no_bytes_ask_for_nobody():
    """Without latency they take no time, wherever partners are."""
    network = network_of(np.arange(4), np.array([2, 2]))
    none = RankTraffic(np.array([0, 1]), np.array([2, 3]), np.zeros(2))
    assert Transfers.of(network, none).spans()[0][0] <= 0


def test_members_of_a_group_share_a_domain_with_the_partners_of_each():
    """Each of 4 needs all 8 senders near: 27 GPUs hold three members, 18 hold two.

    One member of a group is in each component of twelve.
    """
    flows = {
        (12 * part + sender, 12 * part + 8 + receiver): 1.0
        for part, sender, receiver in product(range(3), range(8), range(4))
    }
    network = network_of(np.arange(36), np.array([36]))
    crowd = Transfers(directions_of(network, flows), []).crowd(0.5)
    group = np.array([[8, 20, 32]])
    most = crowd(group, np.array([36, 26, 18, 17, 9, 8]))
    assert most.tolist() == [3, 2, 2, 1, 1, 0]


class Kind(NamedTuple):
    """Ranks that need so many partners near."""

    ranks: list[int]
    partners: list[int]
    needs: int


def holds(kinds, room):
    """Whether domains may hold all; two kinds that need each other are one need."""
    left, needs = list(kinds), []
    while left:
        one = left.pop(0)
        other = next((k for k in left if k[:2] == (one.partners, one.ranks)), None)
        if other:
            left.remove(other)
        back = other.needs if other else 0
        needs.append(Need(len(one.ranks), len(one.partners), one.needs, back))
    return may_hold(needs, room)


def random_case(rng):
    """Components of a few ranks, some in none, and uneven domains; some GPUs spare."""
    ranks, kinds = rng.randrange(3, 8), []
    left = rng.sample(range(ranks), ranks)
    while len(left) > 1:
        own, left = left[: (size := rng.randrange(2, 6))], left[size:]
        if len(own) < 2:
            break
        middle = rng.randrange(1, len(own))
        one, other = own[:middle], own[middle:]
        kinds.append(Kind(one, other, rng.randrange(1, len(other) + 1)))
        if rng.random() < 0.5:
            kinds.append(Kind(other, one, rng.randrange(1, len(one) + 1)))
    room = [rng.randrange(0, 5) for _ in range(rng.randrange(2, 5))]
    room[0] += max(0, ranks + rng.randrange(3) - sum(room))
    return kinds, ranks, room


def can_be_placed(kinds, ranks, room):
    """Whether one of all ways to deal ranks to domains meets all needs."""
    homes = np.array(list(product(range(len(room)), repeat=ranks)))
    held = homes[:, :, None] == np.arange(len(room))
    fits = (held.sum(axis=1) <= room).all(axis=1)
    for kind in kinds:
        near = held[:, kind.partners].sum(axis=1)
        has = held[:, kind.ranks].any(axis=1)
        fits &= ((near >= kind.needs) | ~has).all(axis=1)
    return bool(fits.any())


def compared(seeds):
    """How many cases some placement meets, and how many were refused."""
    met = refused = 0
    for seed in seeds:
        kinds, ranks, room = random_case(random.Random(seed))
        may_be = holds(kinds, room)
        placed = can_be_placed(kinds, ranks, room)
        assert may_be or not placed, seed
        met, refused = met + placed, refused + (not may_be)
    return met, refused


def test_no_needs_are_refused_that_some_placement_meets():
    met, refused = compared(range(150))
    assert met > 40
    assert refused > 15


@pytest.mark.slow
def test_nor_in_many_cases():
    compared(range(1000, 2000))


def test_components_that_share_no_domain_are_refused():
    """By hand: 27 ranks of each of three, where two domains have room for 27."""
    kinds = [
        Kind([*range(at, at + 4)], [*range(at + 4, at + 38)], 23) for at in (0, 38, 76)
    ]
    room = [52, 36, 16, 16, 12]
    assert not holds(kinds, room)
    assert holds([kind._replace(needs=22) for kind in kinds], room)
