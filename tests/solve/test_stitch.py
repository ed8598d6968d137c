"""Stitching, against every way to cut and join segments on tiny instances."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest

from placer.solve.stitch import Segment, Stitching, stitch

LIMIT = 20.0  # s, far above what these need
Tree = list[list[int]]  # parent of each domain, level by level


def random_problem(rng: random.Random, *, levels: int) -> Stitching:
    """Up to six leaves of up to six units, one or two levels above them."""
    leaves = rng.randint(1, 5)
    capacity = [rng.randint(0, 5) for _ in range(leaves)]
    if levels == 1:
        parents = [[0] * leaves]
        price = [float(rng.randint(1, 4))]
    else:
        blocks = rng.randint(1, 3)
        first: dict[int, int] = {}
        drawn = [rng.randrange(blocks) for _ in range(leaves)]
        parents = [[first.setdefault(b, len(first)) for b in drawn]]
        parents.append([0] * len(first))
        price = sorted(float(rng.randint(1, 9)) for _ in range(2))
    length = rng.randint(2, 4)
    most = sum(capacity) // length
    return Stitching(
        capacity=np.array(capacity),
        parents=[np.array(level) for level in parents],
        joint_cost=price,
        length=length,
        replicas=rng.randint(1, max(1, min(most, 4))),
        most_joints=rng.choice((None, None, 0, 1, 2)),
    )


def tier_of_joint(problem: Stitching, first: int, second: int) -> int:
    """Level of the smallest domain that holds both leaves; 0 for one leaf."""
    level = 0
    while first != second:
        first, second = (int(problem.parents[level][d]) for d in (first, second))
        level += 1
    return level


def price_of(problem: Stitching, replica: tuple[int, ...]) -> tuple[float, int]:
    """Price and number of the joints of a replica given as the leaf of each stage."""
    joints = [
        tier_of_joint(problem, a, b)
        for a, b in zip(replica, replica[1:], strict=False)
        if a != b
    ]
    return sum(problem.joint_cost[level - 1] for level in joints), len(joints)


def shapes(problem: Stitching) -> list[tuple[tuple[int, ...], float]]:
    """(units taken from each leaf, least price) of every replica there can be."""
    best: dict[tuple[int, ...], float] = {}
    leaves = len(problem.capacity)

    def extend(replica: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(replica) == problem.length:
            yield replica
            return
        for leaf in range(leaves):
            yield from extend((*replica, leaf))

    for replica in extend(()):
        price, joints = price_of(problem, replica)
        if problem.most_joints is not None and joints > problem.most_joints:
            continue
        taken = tuple(replica.count(leaf) for leaf in range(leaves))
        best[taken] = min(price, best.get(taken, np.inf))
    return sorted(best.items())


def cheapest(problem: Stitching) -> float:
    """Least price of all joints, by trying all sets of replicas; infinite for none."""
    found = shapes(problem)

    @lru_cache(maxsize=None)
    def least(left: tuple[int, ...], replicas: int, start: int) -> float:
        if replicas == 0:
            return 0.0
        best = np.inf
        for index in range(start, len(found)):
            taken, price = found[index]
            rest = tuple(c - t for c, t in zip(left, taken, strict=True))
            if min(rest) >= 0:
                best = min(best, price + least(rest, replicas - 1, index))
        return best

    return least(tuple(problem.capacity.tolist()), problem.replicas, 0)


def stages_of(replica: Segment) -> tuple[int, ...]:
    """Leaf of each stage."""
    return tuple(int(piece.leaf) for piece in replica for _ in range(piece.length))


def check(problem: Stitching) -> None:
    """Stitch and compare with the cheapest set of replicas."""
    best = cheapest(problem)
    found = stitch(problem, LIMIT, 0)
    if np.isinf(best):
        assert found is None
        return
    assert found is not None
    assert found.proved
    replicas = [stages_of(replica) for replica in found.replicas]
    assert len(replicas) == problem.replicas
    assert all(len(replica) == problem.length for replica in replicas)
    held = Counter(leaf for replica in replicas for leaf in replica)
    assert all(count <= problem.capacity[leaf] for leaf, count in held.items())
    priced = [price_of(problem, replica) for replica in replicas]
    if problem.most_joints is not None:
        assert max(joints for _, joints in priced) <= problem.most_joints
    assert sum(price for price, _ in priced) == pytest.approx(best)
    assert found.lower_bound <= best + 1e-6


@pytest.mark.parametrize("seed", range(100))
def test_one_level(seed: int) -> None:
    """Under one domain the joints are as cheap as can be."""
    check(random_problem(random.Random(seed), levels=1))


@pytest.mark.parametrize("seed", range(100))
def test_two_levels(seed: int) -> None:
    """So they are under blocks, where a joint inside a block is cheaper."""
    check(random_problem(random.Random(seed), levels=2))


def test_whole_replicas_need_no_joints() -> None:
    """Leaves that hold whole replicas are not cut."""
    problem = Stitching(
        np.array([8, 8, 5]), [np.zeros(3, dtype=np.int64)], [1.0], 4, 5
    )
    found = stitch(problem, LIMIT, 0)
    assert found is not None
    assert [len(replica) for replica in found.replicas] == [1] * 5


def test_two_remainders_make_one_replica() -> None:
    """Three leaves of 6 units hold four replicas of 4 with one joint in one of them."""
    problem = Stitching(
        np.array([6, 6, 6]), [np.zeros(3, dtype=np.int64)], [1.0], 4, 4
    )
    found = stitch(problem, LIMIT, 0)
    assert found is not None
    assert sorted(len(replica) for replica in found.replicas) == [1, 1, 1, 2]
