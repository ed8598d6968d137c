"""Counts of both sides in domains: never a refusal where some placement meets needs."""

import random
from functools import cache
from itertools import product

import numpy as np
import pytest

from placer.solve.bounds import certificate
from placer.solve.bounds.transfers.side_counts import SideCounts
from placer.solve.problem.compiled import Problem
from placer.solve.problem.needs import Kind
from placer.solve.problem.params import Params
from tests.marks import slow
from tests.solve.bounds.test_needs_by_nodes import meets
from tests.solve.solving import solve
from tests.solve.test_transfers import transfers
from tests.solve.test_workloads import machine_of, workload_of


def kind_of(ranks, has, meets_them, needs):
    of = np.zeros((2, ranks), dtype=bool)
    of[0, has] = of[1, meets_them] = True
    return Kind(*of, needs)


def counts_of(room, hosts=()):
    """Domains of so many ranks, launched free, or on such hosts by nodes."""
    hosts = [tuple(sorted(of, reverse=True)) for of in hosts]
    hosts = sorted(hosts, key=sum, reverse=True)
    return SideCounts(sorted(filter(None, room), reverse=True), hosts, Params())


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
        kinds.append(kind_of(ranks, one, other, rng.randrange(1, len(other) + 1)))
        if rng.random() < 0.5:
            kinds.append(kind_of(ranks, other, one, rng.randrange(1, len(one) + 1)))
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
        holds = counts_of(room).may_hold(kinds)
        placed = can_be_placed(kinds, ranks, room)
        assert holds or not placed, seed
        met, refused = met + placed, refused + (not holds)
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
        kind_of(114, range(at, at + 4), range(at + 4, at + 38), 23)
        for at in (0, 38, 76)
    ]
    counts = counts_of([52, 36, 16, 16, 12])
    assert not counts.may_hold(kinds)
    assert counts.may_hold([kind._replace(needs=22) for kind in kinds])


def random_kinds(rng, ranks):
    """Components of neighbours, of ranks that alternate, or of any; both ways or one.

    A rank is in one component at the most.
    """
    order = list(range(ranks))
    if rng.random() < 0.3:
        rng.shuffle(order)
    components, period = rng.randrange(1, 4), rng.randrange(1, 4)
    dealt = [(place // period if rng.random() < 0.9 else 0) for place in range(ranks)]
    found, half = [], rng.choice((ranks // 2, ranks // 3))
    for own in range(components):
        of = [rank for rank in order if dealt[rank] % components == own]
        x, y = [r for r in of if r < half], [r for r in of if r >= half]
        if x and y:
            found.append(kind_of(ranks, x, y, rng.randrange(1, min(len(y), 3) + 1)))
            if rng.random() < 0.7:
                found.append(kind_of(ranks, y, x, rng.randrange(1, min(len(x), 3) + 1)))
    return found


def some_placement_meets(kinds, ranks, racks):
    """Whether runs, laid on nodes one after the other in all ways, meet all needs."""

    @cache
    def goes_on(first, free, label):
        if first == ranks:
            return meets(kinds, np.array(label))
        for rack, sizes in enumerate(free):
            for size in set(sizes):
                left = list(sizes)
                left.remove(size)
                others = (*free[:rack], tuple(left), *free[rack + 1 :])
                for length in range(1, min(size, ranks - first) + 1):
                    if goes_on(first + length, others, label + (rack,) * length):
                        return True
        return False

    return goes_on(0, tuple(map(tuple, racks)), ())


def refused(seed):
    """Whether a random case by nodes is refused, and rightly."""
    rng = random.Random(seed)
    longest = rng.choice((2, 2, 3, 4))
    racks = [
        [rng.randrange(1, longest + 1) for _ in range(rng.randrange(1, 4))]
        for _ in range(rng.choice((2, 2, 3)))
    ]
    room = [sum(hosts) for hosts in racks]
    ranks = min(sum(room) - rng.choice((0, 1, 1, 2, 3)), 8)
    if ranks < 4:
        return False
    kinds = random_kinds(rng, ranks)
    if counts_of(room, racks).may_hold(kinds):
        return False
    assert not some_placement_meets(kinds, ranks, racks), seed
    # Nodes say more than room.
    return counts_of(room).may_hold(kinds)


@pytest.mark.parametrize("seeds", [range(150), *slow([range(1000, 1600)])])
def test_by_nodes_none_are_refused_that_some_placement_meets(seeds):
    assert sum(map(refused, seeds)) > len(seeds) // 40


def test_a_node_holds_few_of_what_is_far_apart_in_a_role():
    """By hand: 0 to 7 each need two of 8 to 23, every eighth; nodes of two hold one."""
    kinds = [kind_of(24, [own], [own + 8, own + 16], 2) for own in range(8)]
    assert counts_of([6] * 4).may_hold(kinds)
    assert not counts_of([4] * 6, [(2, 2)] * 6).may_hold(kinds)
    assert counts_of([6] * 4, [(2, 2, 2)] * 4).may_hold(kinds)


@pytest.mark.parametrize(
    ("title", "gpus", "racks"),
    [
        ("pairs", 128, [9, 9, 9, 7]),
        ("alike", 64, [5, 5, 7]),
        pytest.param("experts", 128, [9, 9, 9, 7], marks=pytest.mark.slow),
    ],
)
def test_components_by_nodes_on_racks_with_gpus_to_spare_are_proved(title, gpus, racks):
    """A rack of nine nodes holds eight of pairs of nodes, wherever runs begin."""
    roles, keys = next(of for name, *of in transfers(gpus) if name == title)
    sent = {"from": "a", "to": "b", "bytes": "80GB"} | keys
    job = workload_of(roles, [sent], launcher={"ranks": "node-contiguous"})
    problem = Problem.of(machine_of(racks, 4, "900GB/s"), job, "time")
    by_node = certificate.lower_bound(problem, 0).value
    assert by_node > 1.1 * certificate.lower_bound(problem, 1).value
    assert solve(problem.machine, job).value <= by_node * 1.01
