"""The most ranks of a rack: never refused where some placement meets all needs."""

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import count
from math import inf

import numpy as np
import pytest

from placer.solve.bounds import certificate
from placer.solve.bounds.transfers.partners import Kind
from placer.solve.bounds.transfers.rack_ranks import RackRanks, needs_of
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from placer.solve.run.budget import Budget
from tests.solve.bounds.test_needs_by_nodes import meets
from tests.solve.solving import solve
from tests.solve.test_transfers import transfers
from tests.solve.test_workloads import machine_of, workload_of


def kind_of(ranks, has, meets_them, needs):
    of = np.zeros((2, ranks), dtype=bool)
    of[0, has] = of[1, meets_them] = True
    return Kind(*of, needs)


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
    """Whether a random case is refused, and rightly; None where it is too easy."""
    rng = random.Random(seed)
    longest = rng.choice((2, 2, 3, 4))
    racks = [
        tuple(
            sorted(
                (
                    rng.choice((longest, longest, rng.randrange(1, longest + 1)))
                    for _ in range(rng.randrange(1, 4))
                ),
                reverse=True,
            )
        )
        for _ in range(rng.choice((2, 2, 3)))
    ]
    room = sum(map(sum, racks))
    ranks = min(room - rng.choice((0, 1, 1, 2, 3)), 8)
    if ranks < 4:
        return None
    kinds = random_kinds(rng, ranks)
    blocks = rng.choice(((1,), (2,), (1, 2, 4, 8)))
    params = replace(Params(), rack_blocks=blocks)
    held = RackRanks(Counter(racks), params).may_hold(kinds)
    if held:
        return False
    assert not some_placement_meets(kinds, ranks, racks), seed
    return True


def test_no_needs_are_refused_that_some_placement_meets():
    assert sum(refused(seed) or 0 for seed in range(30)) > 3


@pytest.mark.slow
def test_nor_in_many_cases():
    assert sum(refused(seed) or 0 for seed in range(1000, 1120)) > 20


def test_a_rack_holds_as_many_of_those_who_need_each_other():
    """Six pairs, 0 with 6 and so on: three nodes of two hold two, not three, halves."""
    pairs = [([rank], [rank + 6]) for rank in range(6)]
    kinds = [kind_of(12, *ends, 1) for one in pairs for ends in (one, one[::-1])]
    assert [need.sizes for need in needs_of(kinds)] == [(1, 1, 1, 1)] * 6
    for racks, holds in (([(2,) * 3] * 2, False), ([(2,) * 4, (2,) * 2], True)):
        assert RackRanks(Counter(racks), Params()).may_hold(kinds) is holds


def test_what_a_rack_leaves_is_enough_for_others():
    """Two need one of two partners each: who is without the one leaves one partner."""
    kinds = [kind_of(4, [0, 2], [1, 3], 1)]
    assert RackRanks(Counter([(3,), (1,)]), Params()).may_hold(kinds)
    both = [kind_of(4, [0, 2], [1, 3], 1), kind_of(4, [1, 3], [0, 2], 1)]
    assert not RackRanks(Counter([(3,), (1,)]), Params()).may_hold(both)


def test_those_with_needs_have_a_price_of_their_own():
    """Rank 0 needs two of three; racks of two hold all but it, rank by rank."""
    kinds = [kind_of(8, [0], [1, 2, 3], 2)]
    assert not RackRanks(Counter([(1, 1)] * 4), Params()).may_hold(kinds)
    larger = Counter([(1, 1, 1), (1, 1), (1, 1), (1,)])
    assert RackRanks(larger, Params()).may_hold(kinds)


def test_a_budget_that_is_over_refuses_nobody():
    pairs = [([rank], [rank + 6]) for rank in range(6)]
    kinds = [kind_of(12, *ends, 1) for one in pairs for ends in (one, one[::-1])]
    ranks = RackRanks(Counter([(2,) * 3] * 2), Params())
    for looks, holds in ((0, True), (1, True), (1000, False)):
        assert ranks.may_hold(kinds, over_after(looks)) is holds


def over_after(looks):
    """A budget that is over when it was asked so many times."""
    asked = count(1)
    return Budget(inf, lambda: next(asked) > looks)


@pytest.mark.parametrize(
    ("title", "gpus", "racks"),
    [
        ("pairs", 128, [9, 9, 9, 7]),
        pytest.param("experts", 128, [9, 9, 9, 7], marks=pytest.mark.slow),
    ],
)
def test_many_components_on_racks_with_gpus_to_spare_are_proved(title, gpus, racks):
    """Of each component a rack holds all, none, or what both sides need."""
    roles, keys = next(of for name, *of in transfers(gpus) if name == title)
    sent = {"from": "a", "to": "b", "bytes": "80GB"} | keys
    job = workload_of(roles, [sent], launcher={"ranks": "node-contiguous"})
    machine = machine_of(racks, 4, "900GB/s")
    problem = Problem.of(machine, job, "time")
    at_once = certificate.lower_bound(problem, 0, budget=Budget(0)).value
    by_node = certificate.lower_bound(problem, 0).value
    assert 0 < at_once < by_node  # what time left open is asked again
    assert by_node > 1.1 * certificate.lower_bound(problem, 1).value
    assert solve(machine, job).value <= by_node * 1.01
