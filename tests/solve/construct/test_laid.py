"""Chains laid along the tree."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.instances import load
from placer.solve import search
from placer.solve.construct.chains.laid import laid
from placer.solve.construct.chains.segments import price_of_joints
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from tests.solve.construct.test_stitch import (
    keeps_multiples,
    random_halves,
    random_problem,
    shapes,
    stages_of,
)
from tests.solve.construct.test_windows import check_room

if TYPE_CHECKING:
    from placer.solve.run.solution import Improvement


@pytest.mark.parametrize("seed", range(40))
def test_all_replicas_are_complete(seed: int) -> None:
    """Whenever units suffice, every replica is laid and no leaf is too full."""
    problem = random_problem(random.Random(seed), levels=1 + seed % 2)
    fits = problem.capacity.sum() >= problem.replicas * problem.length
    found = laid(problem)
    assert (found is not None) == fits
    if found is not None:
        replicas = [stages_of(replica) for replica in found]
        assert len(replicas) == problem.replicas
        for leaf, room in enumerate(problem.capacity):
            assert sum(replica.count(leaf) for replica in replicas) <= room
        assert all(len(replica) == problem.length for replica in replicas)
        assert all(keeps_multiples(problem, replica) for replica in replicas)


@pytest.mark.parametrize("seed", range(40))
def test_halves_complete_what_units_cannot(seed: int) -> None:
    """Two halves make a unit where whole ones run out."""
    problem = random_halves(random.Random(seed))
    assert problem.spare_halves is not None
    room = problem.capacity.sum() + problem.spare_halves.sum() // 2
    found = laid(problem)
    assert (found is not None) == (room >= problem.replicas * problem.length)
    if found is not None:
        check_room(problem, found)


@pytest.mark.parametrize("seed", range(30))
def test_price_of_joints(seed: int) -> None:
    """It is the least price of any order of the units, as a listing of all has it."""
    problem = random_problem(random.Random(seed), levels=1 + seed % 2)
    problem = replace(problem, most_joints=None, closed=seed % 3 == 0)
    least = dict(shapes(problem))
    for replica in laid(problem) or []:
        leaves = stages_of(replica)
        taken = tuple(leaves.count(leaf) for leaf in range(len(problem.capacity)))
        assert price_of_joints(problem, [replica]) == least[taken]


def test_laid_before_the_bound() -> None:
    """Chains laid along the tree are told before there is a lower bound."""
    topology, job = load("B")
    told: list[Improvement] = []
    stop = Budget(60.0, lambda: bool(told) and told[-1].value <= 35_997_376)
    search.solve(Problem.of(topology, job), stop, told.append)
    first = next(one for one in told if one.value <= 35_997_376)
    assert first.lower_bound == 0.0
