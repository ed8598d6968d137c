"""Gradients that must be fast keep parts of a stage together."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from placer.job.model import Compute, DataParallel
from placer.solve.bounds.experts.expert_parts import StageParts, stage_parts
from placer.solve.bounds.experts.expert_units import Units
from placer.solve.bounds.experts.level_boxes import Boxes
from placer.solve.bounds.experts.part_company import Company
from placer.solve.bounds.experts.part_prices import Packing, PartPrices, Shares
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from tests.marks import slow
from tests.solve.construct.test_whole_first import job, machine
from tests.solve.oracle import distinct, gpus_of, legal_placements


def test_largest_parts_by_hand() -> None:
    """Two members of a group a domain: at most half of what lies there is one part.

    With pieces of two ranks that share their group, a piece keeps itself company.
    """
    case = Company(0.0, np.array([2, 1, 2]))
    assert case.sort.tolist() == [1, 0, 1]
    eights = Units(4, 8, 1, 1, 4, 1, 1, shared=1)
    (limit,) = case.limits(eights, 8)
    assert limit.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4]
    (limit,) = case.limits(eights._replace(ranks=2, shared=2), 4)
    assert limit.tolist() == [0, 1, 2, 3, 4]


def test_dearest_shares_by_hand() -> None:
    """Five pieces, parts of two at most: 2 + 2 + 1; two pieces are two parts of one."""
    limit = np.array([0, 0, 1, 1, 2, 2])
    shares = Shares(np.array([0.0, 1.0, 3.0, 9.0]), limit)
    assert shares.prices.tolist() == [0, -np.inf, 2, 3, 6, 7]
    assert shares.parts(5) == {2: 2, 1: 1}
    assert shares.parts(2) == {1: 2}


class Case(NamedTuple):
    """Sets of replicas on domains, the members that each stage asks for, and times."""

    rooms: list[int]
    size: int
    replicas: int
    members: list[int]
    lows: list[int]
    times: np.ndarray


def drawn(seed: int) -> Case:
    rng = random.Random(f"company {seed}")
    while True:
        size, (replicas, stages) = (
            rng.randint(2, 4),
            rng.choice(((2, 2), (3, 1), (2, 1))),
        )
        rooms = [rng.randint(2, 8) for _ in range(rng.randint(2, 3))]
        if sum(rooms) >= size * replicas * stages:
            break
    largest = min(size, max(rooms))
    lows = list(range(1, size // max(2, -(-size // largest)) + 1))
    lows += [size] if largest == size else []
    times = np.sort(np.array([rng.random() for _ in lows]))[::-1]
    members = [rng.choice((1, 2, 2, 3)) for _ in range(stages)]
    return Case(rooms, size, replicas, members, lows, times)


def bound(case: Case, members: list[int]) -> float:
    company = Company(0.0, np.array(members))
    units = Units(1, case.size, 1, 1, 1, 1, 1, shared=1)
    packing = Packing.of(np.array(case.rooms), case.size)
    assert packing is not None
    packing = replace(packing, limits=company.limits(units, max(case.rooms)))

    def value(_low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return case.times[high].sum(axis=1)

    boxes = Boxes(len(members), len(case.lows), value, 1000)
    prices = PartPrices(packing, case.lows, boxes, case.replicas, company.sort)
    return prices.climb(40)


def least(case: Case) -> float:
    """The slowest set of replicas at the best, of every way to lay their units."""
    stages = len(case.members)
    ways = [
        way
        for way in product(*(range(min(room, case.size) + 1) for room in case.rooms))
        if sum(way) == case.size
    ]
    time = {}
    for way in ways:
        part = min(pieces for pieces in way if pieces)
        level = [
            i
            for i, low in enumerate(case.lows)
            if low == part or low <= part < case.size
        ]
        time[way] = case.times[level[-1]]
    found = np.inf
    for laid in product(ways, repeat=case.replicas * stages):
        used = np.array(laid).reshape(case.replicas, stages, -1)
        if (used.sum(axis=(0, 1)) > case.rooms).any():
            continue
        alone = used.sum(axis=0) < np.array(case.members)[:, None] * used.max(axis=0)
        if not alone.any():
            times = [time[way] for way in laid]
            slowest = np.reshape(times, (case.replicas, stages)).sum(axis=1).max()
            found = min(found, float(slowest))
    return found


@pytest.mark.parametrize("seed", [*range(20), *slow(range(20, 100))])
def test_no_way_to_lay_units_is_faster(seed: int) -> None:
    """Against every way to lay a few units on two or three domains."""
    case = drawn(seed)
    best = least(case)
    if best < np.inf:
        assert bound(case, case.members) <= best * (1 + 1e-9)


def test_halves_are_what_company_leaves() -> None:
    """Two units of 4 on hosts of 4 would be alone if whole; in halves they are not."""
    case = Case([4, 4], 4, 2, [2], [1, 2, 4], np.array([3.0, 2.0, 1.0]))
    assert bound(case, [1]) == 1
    assert bound(case, [2]) == least(case) == 2


@pytest.mark.slow
def test_no_placement_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients in the open, groups of two on hosts of 4, 3 and 2, two stages.

    One group lies in parts, as hosts of odd sizes make it, and all others would be
    alone.
    """
    topology = machine([4, 3, 2], [0, 0, 0])
    shown = DataParallel(overlap_reduce=False, overlap_gather=False)
    made = replace(
        job(tp=1, ep=2, pp=2, dp=4), compute=Compute(1e-5), data_parallel=shown
    )
    problem = Problem.of(topology, made, "time")
    colocation = colocation_of(topology, made, 1)
    parts = stage_parts(problem.model, colocation)
    assert parts is not None
    value = parts.least(problem.params)
    members = made.parallelism.ranks_of_group["ep"]
    steps = [
        problem.goal.value(np.array(gpus_of(topology, nodes)))
        for nodes in distinct(topology, legal_placements(topology, made))
        if (np.array(nodes)[members].std(axis=1) > 0).any()
    ]
    assert value <= min(steps) * (1 + 1e-9)
    monkeypatch.setattr(StageParts, "_in_company", lambda _, known, *__: known)
    assert parts.least(problem.params) < value * (1 - 1e-3)
