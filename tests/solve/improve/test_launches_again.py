"""Walks of launches by nodes go on while that helps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.placement.placement import Placement
from placer.solve.improve import launches_again
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.improve.test_room_search import FEW_NICS, HOSTS, RING

if TYPE_CHECKING:
    from placer.solve.problem.params import Params


def generations(
    monkeypatch: pytest.MonkeyPatch, params: Params, gains: list[float]
) -> list[int]:
    """Seeds of the walks when each gains such a share of the cost, then nothing."""
    problem = Problem.of(HOSTS, RING, "time")
    problem = replace(problem, params=params)
    found, left, seeds = Incumbent(problem, Budget(60)), list(gains), list[int]()
    found.offer("start", Placement.on_nodes(HOSTS, np.array(FEW_NICS)).gpu_of_rank)

    def walk(variant: Problem, incumbent: Incumbent, _budget: Budget) -> None:
        seeds.append(variant.seed - problem.seed)
        incumbent.value *= 1 - (left.pop(0) if left else 0.0)

    monkeypatch.setattr(launches_again, "WALKS", (walk,))
    launches_again.launches_again(problem, found, Budget(60))
    return seeds


@pytest.mark.parametrize(
    ("most", "gains", "expected"),
    [
        (0, [0.1], []),
        (2, [0.1, 0.1, 0.1], [1, 2]),
        (9, [0.1, 0.1], [1, 2, 3]),
        (9, [0.1, 0.0005, 0.1], [1, 2]),
    ],
)
def test_the_last_generation_gains_little(
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    gains: list[float],
    expected: list[int],
) -> None:
    """Each has a seed of its own, and there are no more than the effort says."""
    params = replace(Problem.of(HOSTS, RING, "time").params, generations=most)
    assert generations(monkeypatch, params, gains) == expected


def test_nothing_is_walked_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no placement is known there is none to walk from, however long."""
    monkeypatch.setattr(launches_again, "WALKS", (lambda *_: pytest.fail("walked"),))
    problem = Problem.of(HOSTS, RING, "time")
    empty = Incumbent(problem, Budget(60))
    launches_again.launches_again(problem, empty, Budget(60))
