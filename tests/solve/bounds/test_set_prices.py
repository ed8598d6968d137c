"""Prices of pieces of closed sets: never a refusal where some placement meets needs."""

import random
from collections import Counter
from itertools import product
from math import inf

import numpy as np
import pytest
from ortools.sat.python import cp_model

from placer.solve.bounds.transfers.closed_sets import closed_sets
from placer.solve.bounds.transfers.partners import Kind
from placer.solve.bounds.transfers.rack_ranks import RackRanks, needs_of
from placer.solve.bounds.transfers.set_cuts import SetCuts, charge_of, node_charge
from placer.solve.bounds.transfers.set_prices import SetPrices
from placer.solve.bounds.transfers.transfers import transfers_of
from placer.solve.count.engine import Limits, cp_sat
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from tests.solve.bounds.test_rack_ranks import kind_of
from tests.solve.test_transfers import transfers
from tests.solve.test_workloads import machine_of, workload_of


def can_be_placed(kinds, ranks, racks, block):
    """Whether runs of so many ranks on racks of so many nodes meet all needs."""
    model = cp_model.CpModel()
    begins = [model.new_bool_var("") for _ in range(ranks)]
    held = [[model.new_bool_var("") for _ in racks] for _ in range(ranks)]
    model.add(begins[0] == 1)
    for rank in range(ranks):
        model.add_exactly_one(held[rank])
        model.add_bool_or(begins[max(rank - block + 1, 0) : rank + 1])
    for rack, nodes in enumerate(racks):
        begun = [model.new_bool_var("") for _ in range(ranks)]
        for rank in range(ranks):
            here = held[rank][rack]
            model.add_bool_or(begun[rank], ~begins[rank], ~here)
            if rank:
                model.add_bool_or(~here, held[rank - 1][rack], begins[rank])
        model.add(sum(begun) <= nodes)
        for kind, rank in product(kinds, range(ranks)):
            if kind.ranks[rank]:
                near = sum(held[other][rack] for other in np.flatnonzero(kind.partners))
                model.add(near >= kind.needs).only_enforce_if(held[rank][rack])
    return cp_sat(Limits(inf)).solve(model) != cp_model.INFEASIBLE


def random_components(rng, places):
    """Both sides of each, with the needs of either; some ranks are in none."""
    number, how = rng.randrange(1, 5), rng.randrange(3)
    used = [place for place in range(places) if rng.random() < 0.93]
    if rng.random() < 0.5:
        rng.shuffle(used)
    of: dict[int, list[int]] = {}
    for at, place in enumerate(used):
        own = (at % number, rng.randrange(number), at * number // len(used))[how]
        of.setdefault(own, []).append(place)
    for members in of.values():
        middle = rng.randrange(1, len(members)) if len(members) > 1 else 0
        one, other = members[:middle], members[middle:]
        if one:
            back = rng.randrange(1, min(len(one), 3) + 1)
            back *= rng.random() < 0.75
            yield one, other, rng.randrange(1, min(len(other), 3) + 1), back


def random_case(rng, between=0):
    """Alike sets, whose stretches lie side by side by role, and racks.

    After each role but the last come up to ``between`` ranks without needs.
    """
    block, sets = rng.choice((2, 2, 3, 4)), rng.randrange(1, 5)
    lengths = [block * rng.randrange(1, 3) for _ in range(rng.randrange(1, 4))]
    while sum(lengths) * sets > 24 and sets > 1:
        sets -= 1
    first = np.cumsum([0, *lengths]) * sets
    if between:
        more = [rng.randrange(between + 1) for _ in lengths[1:]]
        first[1:-1] += np.cumsum(more, dtype=np.int64)
        first[-1] += sum(more)
    ranks = int(first[-1]) - rng.choice((0, 0, 0, 0, 1))
    kinds = []
    components = list(random_components(rng, sum(lengths)))
    for number in range(sets):
        rank = np.concatenate(
            [
                a + number * n + np.arange(n)
                for a, n in zip(first, lengths, strict=False)
            ]
        )
        for one, other, needs, back in components:
            a, b = (rank[of][rank[of] < ranks] for of in (one, other))
            if len(a) >= max(back, 1) and len(b) >= needs:
                kinds.append(kind_of(ranks, a, b, needs))
                kinds += [kind_of(ranks, b, a, back)] if back else []
    nodes = -(-ranks // block) + rng.choice((0, 0, 1, 1, 2, 3))
    cuts = sorted(rng.sample(range(1, nodes), min(rng.randrange(1, 4), nodes - 1)))
    return kinds, ranks, np.diff([0, *cuts, nodes]).tolist(), block


def refused(seed, between=0):
    kinds, ranks, racks, block = random_case(random.Random(seed), between)
    if not kinds or SetPrices(Counter(racks), block, Params()).may_hold(kinds):
        return False
    assert not can_be_placed(kinds, ranks, racks, block), seed
    return True


def test_no_needs_are_refused_that_some_placement_meets():
    assert sum(map(refused, range(100))) > 10


@pytest.mark.slow
def test_nor_in_many_cases():
    assert sum(map(refused, range(1000, 1600))) > 80


@pytest.mark.slow
def test_nor_where_roles_begin_amid_nodes():
    assert sum(refused(seed, 3) for seed in range(3000, 3300)) > 25


def wider(gpus):
    roles, keys = next(of for name, *of in transfers(gpus) if name == "wider")
    sent = {"from": "a", "to": "b", "bytes": "80GB"} | keys
    job = workload_of(roles, [sent], launcher={"ranks": "node-contiguous"})
    return transfers_of(Problem.of(machine_of([8, 8], 4, "900GB/s"), job, "time"))


@pytest.mark.slow
def test_sets_are_refused_where_each_rack_by_itself_could_hold_enough():
    """Four sets of eight nodes: what suits a rack leaves what suits none."""
    kinds, racks = wider(128).kinds(1e-3), [13, 12, 9]
    assert SetPrices(Counter([16, 16]), 4, Params()).may_hold(kinds)
    assert not SetPrices(Counter(racks), 4, Params()).may_hold(kinds)
    alone = RackRanks(Counter((4,) * nodes for nodes in racks), Params())
    assert alone.may_hold(kinds)


@pytest.mark.slow
def test_half_of_512_ranks_near_is_too_much_for_racks_that_others_left():
    kinds = wider(512).kinds(0.03)
    racks = [6, 13, 8, 11, 12, 11, 15, 12, 18, 8, 9, 9, 2]
    assert not SetPrices(Counter(racks), 4, Params()).may_hold(kinds)


@pytest.mark.parametrize("block", [2, 3, 4, 8])
def test_a_node_that_two_sets_share_is_charged_once(block):
    for one in range(1, block):
        other = block - one
        both = charge_of(one, 1, block) + charge_of(other, 1, block)
        assert both <= node_charge(block)


def test_pieces_share_nodes_at_the_ends_of_a_stretch_only():
    """Pairs 0 and 2, 1 and 3 on two nodes of two: whole, or each on one and a half.

    A pair has an end of the stretch, whose node it shares, and a rank amid it.
    """
    pairs = [Kind(*np.eye(4, dtype=bool)[[a, b]], 1) for a, b in ((0, 2), (1, 3))]
    back = [Kind(kind.partners, kind.ranks, 1) for kind in pairs]
    (sets,) = closed_sets(needs_of([*pairs, *back]), 4, 2)
    cuts, node = SetCuts.of(sets, Params()), node_charge(2)
    assert cuts.cheapest(np.arange(2 * node + 1)).charges == (2 * node,)
    half = charge_of(1, 1, 2) + node
    assert half == node * 3 // 2
    price = np.repeat([1, 9], [half + 1, 2 * node - half])
    assert cuts.cheapest(price) == (2, (half, half))
