"""How even the parts of groups can be: never less than what some packing has."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.groups.even_parts import most_even
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 11.0),
]


def shares(size: int, rooms: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every way to share the ranks of a group out."""
    if not rooms:
        yield from [()] if size == 0 else []
        return
    for here in range(min(size, rooms[0]) + 1):
        for others in shares(size - here, rooms[1:]):
            yield (here, *others)


def packings(
    size: int, groups: int, rooms: Sequence[int]
) -> Iterator[list[tuple[int, ...]]]:
    """Every way to share the ranks of all groups out."""
    if not groups:
        yield []
        return
    for share in shares(size, rooms):
        left = [room - here for room, here in zip(rooms, share, strict=True)]
        for others in packings(size, groups - 1, left):
            yield [share, *others]


def least_part(size: int, packing: list[tuple[int, ...]]) -> int:
    """The least part of a group that is not whole, half a group at the most."""
    parts = [part for share in packing for part in share if 0 < part < size]
    return min(parts, default=size // 2)


@pytest.mark.parametrize("seed", [*range(20), *slow(range(20, 100))])
def test_no_packing_is_more_even(seed: int) -> None:
    """Nor is a step shorter than the bound, whose tp groups lie so."""
    rng = random.Random(f"even {seed}")
    size, groups = rng.choice([(4, 1), (4, 2), (6, 1), (6, 2), (8, 1), (5, 2)])
    rooms = [rng.randint(1, size + 1) for _ in range(3)]
    rooms[0] += max(0, size * groups - sum(rooms))
    placed = list(packings(size, groups, rooms))
    evenest = max(least_part(size, packing) for packing in placed)
    assert evenest <= most_even(np.array(rooms), size, size * groups)

    axes = Parallelism(tp=size, dp=groups)
    compute = Compute(micro_batch_time=0.02)
    job = Job("j", axes, MODEL, 4096, compute=compute, launcher="free")
    problem = Problem.of(machine_of(rooms, [[0] * len(rooms)], TIERS), job)
    bound = lower_bound(problem, 1)
    for packing in rng.sample(placed, min(len(placed), 60)):
        node = np.concatenate([np.repeat(np.arange(3), share) for share in packing])
        gpu_of_rank = Placement.on_nodes(problem.machine, node).gpu_of_rank
        assert bound.value <= problem.goal.value(gpu_of_rank) * (1 + 1e-9)


def test_nodes_of_seven_hold_a_half_of_eight_each() -> None:
    """Four such nodes hold two groups in halves; three hold them with a part of 3."""
    assert most_even(np.array([7] * 4), 8, 16) == 4
    assert most_even(np.array([7] * 3), 8, 16) == 3


def test_parts_make_up_whole_groups() -> None:
    """Nodes of seven hold 4 and 3 each, and 5 + 3 leave two idle: 3 is too much."""
    assert most_even(np.array([7] * 24), 8, 160) == 2
    assert most_even(np.array([7] * 24), 8, 144) == 3
