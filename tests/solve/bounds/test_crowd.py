"""Members of a group beside the partners that they need near: no domain holds more."""

import random
from itertools import product

import numpy as np
import pytest

from placer.solve.bounds.transfers import Transfers
from tests.marks import slow
from tests.solve.bounds.test_partners import directions_of, network_of, random_flows


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
        crowd = Transfers(directions, []).crowd(seconds)
        held = list(held_in_time(label, flows, latency, seconds))
        for row in rows:
            most = crowd(row[None], room)
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
    crowd = Transfers(directions_of(network, flows), []).crowd(0.5)
    group = np.array([[8, 20, 32]])
    most = crowd(group, np.array([36, 26, 18, 17, 9, 8]))
    assert most.tolist() == [3, 2, 2, 1, 1, 0]
