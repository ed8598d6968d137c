"""Tp groups that are whole beside gradient groups with many members on a node."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.bounds.gradients.tensor_parts import largest_parts
from placer.solve.bounds.network.limit import gradient_groups
from tests.marks import slow
from tests.solve.machines import MODEL

SHAPES = ((2, 1, 2), (2, 1, 3), (2, 2, 2), (3, 1, 2), (2, 1, 4), (3, 2, 1), (2, 3, 1))


def job(tp: int, cp: int, dp: int, pp: int = 1) -> Job:
    return Job("j", Parallelism(tp=tp, cp=cp, pp=pp, dp=dp), MODEL, 4096)


@pytest.mark.parametrize("seed", [*range(6), *slow(range(6, 40))])
def test_no_placement_has_larger_parts(seed: int) -> None:
    """Every placement with so many members has a tp group in parts no larger.

    In every slot, for all numbers of members that are asked for.
    """
    rng = random.Random(f"tensor parts {seed}")
    tp, cp, dp = rng.choice(SHAPES)
    made, world = job(tp, cp, dp), tp * cp * dp
    rooms = [rng.randint(1, 5) for _ in range(3)]
    rooms[0] += max(0, world - sum(rooms))
    groups, axes = gradient_groups(made), made.parallelism
    tensor = axes.ranks_of_group["tp"]
    slot = axes.coordinates["dp"][tensor[:, 0]]
    placed = np.array([*product(range(3), repeat=world)])
    counts = np.stack([(placed == node).sum(axis=1) for node in range(3)], axis=1)
    placed = placed[(counts <= rooms).all(axis=1)]
    held = np.stack([(placed[:, groups] == node).sum(2) for node in range(3)], axis=2)
    fewest = np.where(held, held, world).min(axis=(1, 2))
    parts = np.stack([(placed[:, tensor] == node).sum(2) for node in range(3)], axis=2)
    largest = parts.max(axis=2)
    for members in range(1, groups.shape[1] + 1):
        of_slots = largest[fewest >= members]
        most = largest_parts(made, groups, max(rooms), np.array([members]))[0]
        for one in range(dp):
            assert (of_slots[:, slot == one].min(axis=1, initial=tp) <= most).all()


def test_pairs_on_nodes_of_seven() -> None:
    """With three members of a group of 8 on each node no slot has all pairs whole."""
    made = job(2, 4, 2, pp=3)
    groups = gradient_groups(made)
    assert largest_parts(made, groups, 7, np.array([2, 3, 4])) == (2, 1, 1)
    assert largest_parts(made, groups, 8, np.array([2, 3, 5])) == (2, 2, 1)
