"""Members of a group beside the partners that they need near: no domain holds more."""

import random
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

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


def held_in_time(label, flows, latency, seconds):
    """What a domain may hold, every rank in time: all sets of sets, tried."""
    bytes_to = np.zeros((2, len(label), len(label)))
    for (one, other), size in flows.items():
        bytes_to[0, one, other] = bytes_to[1, other, one] = size
    for chosen in product((False, True), repeat=label.max() + 1):
        inside = np.array(chosen)[label]
        far = bytes_to[:, :, ~inside]
        waits = (bytes_to > 0).sum(2) + 2 * (far > 0).sum(2)
        took = (far.sum(2) + waits * latency)[:, inside]
        if took.max(initial=0.0) <= seconds * (1 + 1e-9) + 1e-9:
            yield inside


@pytest.mark.parametrize("seed", [*range(25), *slow(range(25, 160))])
def test_no_domain_holds_more_members_in_time(seed):
    """One domain by itself, what others hold being anything: every subset of sets."""
    rng = random.Random(seed)
    label = np.repeat(np.arange(7), [rng.choice((1, 1, 1, 2)) for _ in range(7)])
    flows, latency = random_flows(rng, label), rng.choice((0.0, 0.1))
    room = np.array([rng.randrange(1, len(label) + 1) for _ in range(3)])
    if not flows:
        return
    network = network_of(label, np.full(9, room.max()), latency)
    directions = directions_of(network, flows)
    levels = np.unique([time for one in directions for time in one.levels]).tolist()
    rows = [np.array(rng.sample(range(len(label)), k)) for k in (2, 4, 6)]
    rows += [np.unique([ends[way] for ends in flows]) for way in (0, 1)]
    for seconds in rng.sample(levels, min(2, len(levels))):
        near = Transfers(directions, []).kept_near(seconds, seconds)
        held = list(held_in_time(label, flows, latency, seconds))
        for row in rows:
            most = near.most_together(row[None], room)
            for one, bound in zip(room, most, strict=True):
                found = [h[row].sum() for h in held if h.sum() <= one]
                assert max(found, default=0) <= bound


def test_members_of_a_group_share_a_domain_with_the_partners_of_each():
    """Each of 4 needs all 8 senders near: 27 GPUs hold three members, 18 hold two.

    One member of a group is in each component of twelve.
    """
    flows = {
        (12 * part + sender, 12 * part + 8 + receiver): 1.0
        for part, sender, receiver in product(range(3), range(8), range(4))
    }
    network = network_of(np.arange(36), np.array([36]))
    near = Transfers(directions_of(network, flows), []).kept_near(0.5, 0.5)
    group = np.array([[8, 20, 32]])
    most = near.most_together(group, np.array([36, 26, 18, 17, 9, 8]))
    assert most.tolist() == [3, 2, 2, 1, 1, 0]
