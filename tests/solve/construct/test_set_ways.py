"""Closed sets of nodes: found as they are, and cut as well as trying all cuts does."""

import random
from itertools import product

import numpy as np
import pytest

from placer.solve.construct.transfers.closed_sets import closed_sets
from placer.solve.construct.transfers.set_ways import Ways
from placer.solve.problem.needs import Need
from placer.solve.problem.params import Params
from placer.solve.run.budget import Budget


def pairs(count, needs=1):
    """Rank ``i`` and rank ``count + i`` need each other."""
    ends = (np.arange(count), count + np.arange(count))
    return [
        Need(*np.array([[a], [b]]), needs, needs) for a, b in zip(*ends, strict=True)
    ]


def random_needs(rng, ranks, least):
    """Components of any of the first half and any of the second, each way."""
    half, components = ranks // 2, rng.randrange(1, 4)
    own = [rng.randrange(components) for _ in range(ranks)]
    found = []
    for number in range(components):
        of = np.flatnonzero(np.array(own) == number)
        x, y = of[of < half], of[of >= half]
        if len(x) and len(y):
            needs, back = rng.randrange(1, len(y) + 1), rng.randrange(least, len(x) + 1)
            found.append(Need(x, y, needs, back))
    return found


def nodes_of(held, block):
    """Nodes that runs of consecutive ranks take."""
    cuts = np.flatnonzero(np.diff(held) > 1) + 1
    return sum(-(-len(run) // block) for run in np.split(held, cuts) if len(run))


def is_met(needs, held):
    for need in needs:
        x, y = (int(np.isin(of, held).sum()) for of in need[:2])
        if (x and y < need.needs) or (y and x < need.back):
            return False
    return True


def best_pairs(needs, ranks, block):
    """Nodes of both pieces of all cuts in two that meet the needs."""
    found = set()
    for which in product((0, 1), repeat=len(ranks)):
        pieces = [ranks[np.array(which) == side] for side in (0, 1)]
        if all(len(one) and is_met(needs, one) for one in pieces):
            found.add(tuple(sorted(nodes_of(one, block) for one in pieces)))
    return found


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("seed", range(15))
def test_no_cut_in_two_is_better_than_those_found(seed, least):
    """Where partners have no needs (0), those whom nobody needs are left over."""
    rng = random.Random(seed)
    ranks, block = rng.choice((6, 8, 10)), rng.choice((2, 3, 4))
    needs = random_needs(rng, ranks, least)
    params, budget = Params(), Budget(60.0)
    for sets in closed_sets(needs, ranks, block):
        if not sets.needs:
            continue
        ways = Ways(sets, params)
        for way in [*ways.up_to(2, budget), *ways.up_to(3, budget)]:
            for own in sets.ranks:
                pieces = [own[way.piece == p] for p in range(-1, len(way.nodes))]
                assert all(is_met(sets_needs(needs, own), one) for one in pieces)
                taken = tuple(nodes_of(one, block) for one in pieces)
                assert (np.array(taken) <= (way.over, *way.nodes)).all()
        own = sets.ranks[0]
        tried = best_pairs(sets_needs(needs, own), own, block)
        cuts = [
            tuple(sorted(way.nodes))
            for way in Ways(sets, params).up_to(2, budget)
            if len(way.nodes) == 2 and not way.over
        ]
        for pair in tried:
            if max(pair) <= sets.nodes:
                assert any(np.less_equal(cut, pair).all() for cut in cuts)


def sets_needs(needs, own):
    return [need for need in needs if np.isin(need.ranks, own).any()]


def test_sets_that_are_alike_are_found_together():
    """Twelve pairs on nodes of four: three sets of two nodes each, and loose nodes."""
    needs = pairs(12)
    needy, loose = closed_sets(needs, 28, 4)
    assert needy.ranks.tolist() == [
        [*range(first, first + 4), *range(first + 12, first + 16)]
        for first in (0, 4, 8)
    ]
    assert needy.nodes == 2
    assert loose.ranks.tolist() == [[24, 25, 26, 27]]


def test_a_cut_amid_a_node_takes_a_node_more():
    """Four pairs on two nodes: two and two pairs are on two nodes each."""
    (sets,) = closed_sets(pairs(4), 8, 4)
    ways = Ways(sets, Params()).up_to(2, Budget(60.0))
    assert [way.nodes for way in ways] == [(2,), (2, 2)]


def test_nodes_of_partners_that_nobody_needs_are_left_over():
    """A rank that needs three of eight partners: one of their two nodes."""
    need = Need(np.array([0]), np.arange(4, 12), 3, 0)
    (sets,) = closed_sets([need], 12, 4)
    ways = Ways(sets, Params()).up_to(1, Budget(60.0))
    assert [(way.nodes, way.over) for way in ways] == [((3,), 0), ((2,), 1)]
