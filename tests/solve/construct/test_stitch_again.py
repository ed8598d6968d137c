"""Windows made again halfway between those before."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.solve.construct.chains.segments import Stitched, price_of_joints
from placer.solve.construct.chains.stitch import stitch
from placer.solve.construct.chains.stitch_again import stitch_again
from placer.solve.problem.params import Params
from placer.solve.run.budget import Budget
from tests.solve.construct.test_stitch import LIMIT
from tests.solve.construct.test_windows import check_room, uneven_machine

PARAMS = Params(joints_at_once=0, window_joints=30)


def test_never_dearer_and_some_cheaper() -> None:
    """No machine's replicas cost more than before, and some machines' cost less."""
    cheaper = 0
    for seed in range(8):
        problem = uneven_machine(random.Random(seed))
        before = stitch(problem, PARAMS, 0, Budget(LIMIT))
        assert before is not None
        assert before.in_windows
        after = stitch_again(problem, PARAMS, 0, Budget(LIMIT), before)
        check_room(problem, after.replicas)
        assert not after.cut_short
        saved = price_of_joints(problem, before.replicas) - price_of_joints(
            problem, after.replicas
        )
        assert saved >= 0
        assert saved > 0 or after.replicas is before.replicas
        cheaper += saved > 0
    assert cheaper


def test_halves_stay_within_their_room() -> None:
    """Units made of halves are taken back and made again like others."""
    for seed in range(4):
        whole = uneven_machine(random.Random(seed))
        missing = 2
        capacity = whole.capacity.copy()
        capacity[[3, 17, 31, 45]] -= 1
        needed = (int(capacity.sum()) + missing) // whole.length
        problem = replace(
            whole,
            capacity=capacity,
            replicas=needed,
            spare_halves=np.ones_like(capacity),
            half_cost=[50.0, 60.0, 75.0],
        )
        before = stitch(problem, PARAMS, 0, Budget(LIMIT))
        assert before is not None
        after = stitch_again(problem, PARAMS, 0, Budget(LIMIT), before)
        check_room(problem, after.replicas)


@pytest.mark.parametrize("seed", range(3))
def test_workers_change_nothing(seed: int) -> None:
    """Windows side by side, and one after the other, make the same replicas."""
    problem = uneven_machine(random.Random(seed))
    before = stitch(problem, PARAMS, 0, Budget(LIMIT))
    assert before is not None
    alone, together = (
        stitch_again(problem, PARAMS, 0, Budget(LIMIT, workers=workers), before)
        for workers in (1, 3)
    )
    assert alone.replicas == together.replicas


def test_no_time_leaves_everything_as_it_was() -> None:
    """When the time is over, the replicas before are kept, and that is said."""
    problem = uneven_machine(random.Random(0))
    before = stitch(problem, PARAMS, 0, Budget(LIMIT))
    assert before is not None
    after = stitch_again(problem, PARAMS, 0, Budget(0.0), before)
    assert after.replicas is before.replicas
    assert after.cut_short


def test_a_limit_on_joints_is_left_alone() -> None:
    """Where a replica may have so many joints only, nothing is made again."""
    problem = replace(uneven_machine(random.Random(0)), most_joints=2)
    before = Stitched([], 0.0, 0.0, False, False, in_windows=True)
    assert stitch_again(problem, PARAMS, 0, Budget(LIMIT), before) is before
