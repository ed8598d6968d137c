"""Runs laid on leaves: all replicas whole, no leaf too full, near each other."""

from __future__ import annotations

import random
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.solve.construct.stages import cut_patterns
from placer.solve.construct.stages.cut_patterns import (
    Need,
    Question,
    count,
    leaf_patterns,
    runs_of,
)
from placer.solve.construct.stages.cut_stages import Stages, evenly, leaf_of_stage
from placer.solve.count.engine import Answer, Limits, solve
from placer.solve.problem.params import Params

if TYPE_CHECKING:
    from placer.solve.count.model import Program

STAGES = 4
PARAMS = Params()
LIMITS = Limits(work=1.0, seconds=60.0, seed=0)


def question(least: list[int], room: int) -> Question:
    """Four stages, cut in two anywhere but inside nothing."""
    cuts = np.array([[a, b, c, True] for a, b, c in np.eye(3, dtype=bool).tolist()])
    sets = [runs_of(row) for row in cuts]
    runs = sorted({run for way in sets for run in way})
    need = Need(np.array(least), np.full(STAGES, np.inf))
    uses = np.array([[way.count(run) for run in runs] for way in sets])
    return Question(runs, sets, leaf_patterns(runs, need, room, PARAMS), uses)


def stages_on(capacity: list[int], blocks: list[int], replicas: int) -> Stages:
    """Leaves of a node each with a GPU a stage, in blocks."""
    room = np.array(capacity)
    ranks = np.arange(replicas * STAGES).reshape(replicas, STAGES, 1)
    whole = np.zeros(max(blocks) + 1, dtype=np.int64)
    domains = [np.array(blocks), whole]
    return Stages(ranks, 1, 1, np.arange(len(room)), domains, room, room, 1.0)


def test_evenly() -> None:
    """Three of one and one of another: the odd one in the middle."""
    assert evenly(np.array([3, 0, 1])) == [0, 0, 2, 0]


def test_pairs_stay_in_their_block() -> None:
    """Two blocks of two leaves that hold two halves each: no replica leaves a block."""
    asked = question([2, 2, 2, 2], 4)
    stages = stages_on([4, 4, 4, 4], [0, 0, 1, 1], 4)
    found = count(asked, stages.capacity, 4, LIMITS)
    assert found is not None
    leaf = leaf_of_stage(asked, found, stages)
    block = stages.domain_of_leaf[0][leaf]
    assert (block == block[:, :1]).all()
    assert block[:, 0].tolist() == [0, 0, 1, 1]
    for stage in range(STAGES):
        assert set(np.bincount(leaf[:, stage], minlength=4).tolist()) == {0, 2}


def test_too_little_room() -> None:
    """Leaves of three hold no two halves of two, so the program has no solution."""
    asked = question([2, 2, 2, 2], 3)
    found = count(asked, np.array([3, 3, 3, 3, 3]), 3, LIMITS)
    assert found is None


def test_program_is_as_small_as_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """No term counts nothing, and leaves with the same room make one row."""
    asked: list[Program] = []

    def kept(program: Program, limits: Limits) -> Answer:
        asked.append(program)
        return solve(program, limits)

    monkeypatch.setattr(cut_patterns, "solve", kept)
    of = question([1, 1, 1, 1], 6)
    count(of, np.array([6, 6, 6, 4, 4, 4]), 5, LIMITS)
    (program,) = asked
    assert all(all(row.times.values()) for row in program.rows)
    rooms = [row.most for row in program.rows if 0 < row.most < inf]
    assert rooms == [5, 6, 3]  # replicas, leaves with any room, and with six


@pytest.mark.parametrize("seed", range(20))
def test_random_leaves(seed: int) -> None:
    """Every replica has all stages, leaves keep their room and their least counts."""
    rng = random.Random(seed)
    capacity = [rng.randint(3, 6) for _ in range(12)]
    least = [rng.choice((1, 2)) for _ in range(STAGES)]
    replicas = sum(capacity) // STAGES - 3
    stages = stages_on(capacity, [i // 3 for i in range(12)], replicas)
    asked = question(least, 6)
    found = count(asked, stages.capacity, replicas, LIMITS)
    if found is None:
        return
    leaf = leaf_of_stage(asked, found, stages)
    assert leaf.shape == (replicas, STAGES)
    assert (np.bincount(leaf.ravel(), minlength=12) <= capacity).all()
    for stage in range(STAGES):
        counts = np.bincount(leaf[:, stage])
        assert (counts[counts > 0] >= least[stage]).all()
    changes = (leaf != np.roll(leaf, -1, axis=1)).sum(axis=1)
    assert (changes <= 2).all()
