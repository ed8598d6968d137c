"""Who needs partners near: never more of them than the best placement has."""

import random
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from placer.job.traffic import RankTraffic
from placer.solve.bounds.partners import Partners
from placer.solve.bounds.transfers import Transfers
from tests.marks import slow


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
