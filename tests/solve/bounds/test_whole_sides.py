"""What uplinks must carry where pieces of components add up to whole ones."""

import itertools
import random

import numpy as np
import pytest

from placer.solve.bounds.traffic.two_sides import HALF_OF_BOTH, _least_sent
from placer.solve.bounds.traffic.whole_sides import WholeSides
from placer.solve.run.budget import ENDLESS, Budget
from tests.solve.bounds.test_graph_cut import machine_of
from tests.solve.bounds.test_two_sides import bound, busiest, placements, problem_of

WORK = 1_000_000


def table(ranks, partners, size=1.0):
    """What goes out, comes in, and half of both, where all send to all partners."""
    near, beside = np.indices((ranks + 1, partners + 1))
    out, back = size * near * (partners - beside), size * beside * (ranks - near)
    return np.array([out, back, (out + back) / 2])


def least_busy(tables, room, capacity=1.0, least=1.0, work=WORK, budget=ENDLESS):
    room = np.array(room)
    sides = WholeSides(tables, room, np.full(len(room), capacity), work)
    return sides.least_busy(least, budget)


def test_two_components_share_the_smallest_of_three_domains():
    """Each in four and four: 1 and 1 of both in the last domain send 3 GB each."""
    tables = [table(4, 4), table(4, 4)]
    assert least_busy(tables, [6, 6, 4]) == 6
    # Both whole, where domains are large enough.
    assert least_busy(tables, [8, 8]) == 1
    # One rank of eight is away from the others.
    assert least_busy(tables, [9, 7]) == 4


def test_pieces_of_one_component_are_not_taken_twice():
    """In racks of 6, 6 and 4 with 1.5, 1.5 and 1 GB/s: 4 GB leave the last one."""
    quads = [(range(8 * k, 8 * k + 4), range(8 * k + 4, 8 * k + 8)) for k in (0, 1)]
    flows = {pair: 1e9 for of in quads for pair in itertools.product(*of)}
    machine = machine_of(3, [6, 6, 4], 1, thinner=4)
    problem = problem_of(flows, 16, machine)
    alone = problem.with_params(whole_side_work=0)
    assert bound(alone) == pytest.approx(4 / 1.0)
    # The other two and two are beside one and one of the other component.
    assert bound(problem) == pytest.approx(7 / 1.5)


def test_a_time_that_takes_too_much_work_is_not_ruled_out():
    tables = [table(4, 4), table(4, 4)]
    for work in (0, 1, 10, 100):
        assert least_busy(tables, [6, 6, 4], work=work) <= 6
    assert least_busy(tables, [6, 6, 4], work=0) == 1


def test_codes_of_hundreds_of_components_are_too_long():
    assert least_busy([table(4, 4)] * 400, [1600, 1600]) == 1


def test_domains_without_an_uplink_hold_whole_components():
    """That of 8 has one, two and two of the other are in each of the others: 4 GB."""
    tables, capacity = [table(4, 4), table(4, 4)], np.array([0.0, 1.0, 1.0])

    def least(room):
        sides = WholeSides(tables, np.array(room), capacity, WORK)
        return sides.least_busy(1.0, ENDLESS)

    assert least([8, 4, 4]) == 4
    # None fits into 6, so no time is enough.
    assert least([6, 6, 4]) > 6


def test_a_budget_that_ends_rules_nothing_out():
    tables = [table(4, 4), table(4, 4)]
    assert least_busy(tables, [6, 6, 4], budget=Budget(0.0)) == 1


def test_no_placement_keeps_uplinks_less_busy():
    raised = 0
    for seed in range(60):
        rng = random.Random(seed)
        ranks = rng.randrange(5, 8)
        cut = rng.randrange(2, ranks - 1)
        flows = {}
        for own in (range(cut), range(cut, ranks)):
            half = own.start + rng.randrange(1, len(own))
            pairs = itertools.product(range(own.start, half), range(half, own.stop))
            for pair in pairs:
                flows[pair[:: rng.choice((1, 1, -1))]] = rng.choice((1e8, 3e8))
        nodes = [rng.randrange(1, 4) for _ in range(rng.randrange(2, 4))]
        nodes[0] += max(0, ranks - sum(nodes))
        machine = machine_of(len(nodes), nodes, 1, thinner=rng.choice((1, 4)))
        problem = problem_of(flows, ranks, machine)
        best = min(busiest(problem, homes) for homes in placements(machine, ranks))
        found = bound(problem)
        assert found <= best * (1 + 1e-9), seed
        alone = problem.with_params(whole_side_work=0)
        raised += found > bound(alone) * (1 + 1e-9)
    assert raised > 10


def least_of_all_counts(tables, room, capacity):
    """Domain by domain, every number of either side of each component."""
    sides = tuple(n - 1 for one in tables for n in one.shape[1:])
    known = {(0,) * len(sides): 0.0}
    for size, carried in zip(room, capacity, strict=True):
        later = {}
        for held in itertools.product(*(range(n + 1) for n in sides)):
            pairs = list(zip(held[::2], held[1::2], strict=True))
            if sum(held) > size:
                continue
            sent = max(
                sum(t[(way, *p)] for t, p in zip(tables, pairs, strict=True))
                for way in range(3)
            )
            busy = sent / carried if carried else (np.inf if sent else 0.0)
            for before, seconds in known.items():
                total = tuple(np.add(before, held).tolist())
                if all(n <= most for n, most in zip(total, sides, strict=True)):
                    now = max(seconds, busy)
                    later[total] = min(now, later.get(total, np.inf))
        known = later
    return known.get(sides, np.inf)


@pytest.mark.parametrize("seed", range(10))
def test_exact_for_two_and_three_components_on_uneven_domains(seed):
    rng = random.Random(f"counts {seed}")
    shapes = [(rng.randint(1, 2), rng.randint(1, 2)) for _ in range(rng.choice((2, 3)))]
    sent = [
        np.array([[rng.choice((0, 1, 3)) for _ in range(b)] for _ in range(a)])
        for a, b in shapes
    ]
    tables = [_least_sent(np.array([one, 0 * one])) * HALF_OF_BOTH for one in sent]
    ranks = sum(map(sum, shapes))
    room = [rng.randint(1, ranks) for _ in range(rng.choice((2, 3)))]
    room[0] += max(0, ranks - sum(room))
    capacity = np.array([rng.choice((0.0, 0.5, 1.0, 2.0)) for _ in room])
    best = least_of_all_counts(tables, room, capacity)
    start = 0.1 * min(best, 1.0)
    for work in (0, 1, 3, 30, 300, WORK):
        found = WholeSides(tables, np.array(room), capacity, work)
        assert found.least_busy(start, ENDLESS) <= best * (1 + 1e-9)
    if best < np.inf:
        assert found.least_busy(start, ENDLESS) == pytest.approx(best)
