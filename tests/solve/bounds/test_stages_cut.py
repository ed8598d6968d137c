"""Stages that may have groups that are cut: no launch by nodes does with fewer."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from placer.solve.bounds.groups.stages_cut import least_room, may_cut_only
from tests.marks import slow
from tests.solve.bounds.test_cut_runs import runs


@pytest.mark.parametrize("seed", [*range(40), *slow(range(40, 400))])
def test_no_launch_cuts_only_groups_that_may_not_do(seed: int) -> None:
    """Every set of groups that contains those cut by some launch may be cut."""
    rng = random.Random(f"stages {seed}")
    size, groups = rng.choice([(2, 3), (3, 2), (3, 3), (4, 2), (2, 4), (2, 5)])
    rooms = [rng.randint(1, 7) for _ in range(rng.choice((2, 3, 4)))]
    rooms[0] += max(0, size * groups - sum(rooms))
    placed = np.array(list(runs(rooms, size * groups))).reshape(-1, groups, size)
    cut = np.unique((placed != placed[:, :, :1]).any(axis=2), axis=0)
    for number in range(groups + 1):
        for chosen in combinations(range(groups), number):
            is_cut = np.isin(np.arange(groups), chosen)
            if not (cut & ~is_cut).any(axis=1).all():
                assert may_cut_only(np.array(rooms), size, is_cut)


def test_a_third_stage_has_a_group_that_is_cut() -> None:
    """Two stages of four have too few nodes once 13 are full of the other two."""
    room, stage = np.array([8] * 19 + [7] * 5), np.repeat(np.arange(4), 14)
    assert not may_cut_only(room, 3, stage < 2)
    assert may_cut_only(room, 3, stage < 3)


def test_least_room_takes_the_nodes_that_waste_least() -> None:
    """Two groups of 3 take a node of 7 rather than one of 8; five are too many."""
    assert least_room(np.array([8, 7, 2]), 3, 5).tolist() == [
        0,
        7,
        7,
        15,
        15,
        np.inf,
    ]
