"""Stitching, against every way to cut and join segments on tiny instances."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from placer.solve.construct.chains.segments import Segment, Stitching
from placer.solve.construct.chains.stitch import stitch
from placer.solve.problem.params import Params
from placer.solve.run.budget import Budget

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
    steps = [*pairwise(replica), *([(replica[-1], replica[0])] * problem.closed)]
    joints = [tier_of_joint(problem, a, b) for a, b in steps if a != b]
    return sum(problem.joint_cost[level - 1] for level in joints), len(joints)


def keeps_multiples(problem: Stitching, replica: tuple[int, ...]) -> bool:
    """Whether domains hold whole runs of as many stages as they must."""
    for level, multiple in enumerate(problem.multiples, start=1):
        for start in range(0, problem.length, multiple):
            domains = set(replica[start : start + multiple])
            for parent in problem.parents[:level]:
                domains = {int(parent[domain]) for domain in domains}
            if len(domains) > 1:
                return False
    return True


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
        if not keeps_multiples(problem, replica):
            continue
        taken = tuple(replica.count(leaf) for leaf in range(leaves))
        best[taken] = min(price, best.get(taken, np.inf))
    return sorted(best.items())


def least_price(
    shapes: list[tuple[tuple[int, ...], float]], room: tuple[int, ...], replicas: int
) -> float:
    """Least price of all joints, by trying all sets of replicas; infinite for none."""

    @cache
    def least(left: tuple[int, ...], wanted: int, start: int) -> float:
        if wanted == 0:
            return 0.0
        best = np.inf
        for index in range(start, len(shapes)):
            taken, price = shapes[index]
            rest = tuple(c - t for c, t in zip(left, taken, strict=True))
            if min(rest) >= 0:
                best = min(best, price + least(rest, wanted - 1, index))
        return best

    return least(room, replicas, 0)


def stages_of(replica: Segment) -> tuple[int, ...]:
    """Leaf of each stage."""
    return tuple(int(piece.leaf) for piece in replica for _ in range(piece.length))


def check(problem: Stitching) -> None:
    """Stitch and compare with the cheapest set of replicas."""
    room = tuple(problem.capacity.tolist())
    best = least_price(shapes(problem), room, problem.replicas)
    found = stitch(problem, Params(), 0, Budget(LIMIT))
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
    assert all(keeps_multiples(problem, replica) for replica in replicas)
    priced = [price_of(problem, replica) for replica in replicas]
    if problem.most_joints is not None:
        assert max(joints for _, joints in priced) <= problem.most_joints
    assert sum(price for price, _ in priced) == pytest.approx(best)
    assert found.lower_bound <= best + 1e-6


@pytest.mark.parametrize("seed", range(33))
def test_one_level(seed: int) -> None:
    """Under one domain the joints are as cheap as can be."""
    check(random_problem(random.Random(seed), levels=1))


@pytest.mark.parametrize("seed", range(33))
def test_two_levels(seed: int) -> None:
    """So they are under blocks, where a joint inside a block is cheaper."""
    check(random_problem(random.Random(seed), levels=2))


@pytest.mark.parametrize("seed", range(26))
def test_rings(seed: int) -> None:
    """A ring cut into pieces is crossed once a piece, a whole one not at all."""
    rng = random.Random(seed)
    problem = random_problem(rng, levels=rng.choice((1, 2)))
    check(replace(problem, length=rng.choice((3, 4, 5)), closed=True, most_joints=None))


@pytest.mark.parametrize("seed", range(26))
def test_runs_that_stay_in_a_block(seed: int) -> None:
    """Stages that a block must hold together are stitched inside one block."""
    rng = random.Random(seed)
    length, multiple = rng.choice(((2, 2), (3, 3), (4, 4), (4, 2)))
    problem = random_problem(rng, levels=2)
    check(replace(problem, length=length, multiples=(multiple,), most_joints=None))


def test_a_ring_over_two_leaves() -> None:
    """By hand: rings of 3 in leaves of 4 and 2 units: one whole, one crossing twice."""
    problem = Stitching(
        np.array([4, 2]), [np.zeros(2, dtype=np.int64)], [5.0], 3, 2, closed=True
    )
    found = stitch(problem, Params(), 0, Budget(LIMIT))
    assert found is not None
    assert sorted(len(replica) for replica in found.replicas) == [1, 2]
    assert found.lower_bound == pytest.approx(10.0)


def test_whole_replicas_need_no_joints() -> None:
    """Leaves that hold whole replicas are not cut."""
    problem = Stitching(np.array([8, 8, 5]), [np.zeros(3, dtype=np.int64)], [1.0], 4, 5)
    found = stitch(problem, Params(), 0, Budget(LIMIT))
    assert found is not None
    assert [len(replica) for replica in found.replicas] == [1] * 5


def test_two_remainders_make_one_replica() -> None:
    """Three leaves of 6 units hold four replicas of 4 with one joint in one of them."""
    problem = Stitching(np.array([6, 6, 6]), [np.zeros(3, dtype=np.int64)], [1.0], 4, 4)
    found = stitch(problem, Params(), 0, Budget(LIMIT))
    assert found is not None
    assert sorted(len(replica) for replica in found.replicas) == [1, 1, 1, 2]


def random_halves(rng: random.Random) -> Stitching:
    """A few leaves with room for halves of units beside whole ones."""
    leaves = rng.randint(1, 3)
    blocks = sorted(rng.randrange(2) for _ in range(leaves))
    blocks = [block - blocks[0] for block in blocks]
    return Stitching(
        capacity=np.array([rng.randint(0, 3) for _ in range(leaves)]),
        parents=[np.array(blocks), np.zeros(max(blocks) + 1, dtype=np.int64)],
        joint_cost=[1.0, 4.0],
        length=rng.choice((1, 2, 3)),
        replicas=rng.randint(1, 3),
        most_joints=rng.choice((None, None, 1)),
        spare_halves=np.array([rng.randint(0, 1) for _ in range(leaves)]),
        half_cost=[10.0, 30.0],
    )


def level_of(problem: Stitching, leaves: set[int]) -> int:
    """Level of the smallest domain that holds all leaves; 0 for one leaf."""
    level = 0
    while len(leaves) > 1:
        leaves = {int(problem.parents[level][d]) for d in leaves}
        level += 1
    return level


def half_shapes(problem: Stitching) -> list[tuple[tuple[int, ...], float]]:
    """(units, then halves, taken from each leaf; least price) of every replica."""
    count = len(problem.capacity)
    assert problem.spare_halves is not None
    whole: list[tuple[int, ...]] = [(leaf,) for leaf in range(count)]
    twins = list(combinations(range(count), 2))
    best: dict[tuple[int, ...], float] = {}
    for stages in product([*whole, *twins], repeat=problem.length):
        price, joints = 0.0, 0
        for stage in stages:
            if len(stage) == 2:
                price += problem.half_cost[max(level_of(problem, set(stage)), 1) - 1]
        for first, second in pairwise(stages):
            if first != second or len(first) == 2:
                joints += 1
                level = max(level_of(problem, {*first, *second}), 1)
                price += problem.joint_cost[level - 1]
        if problem.most_joints is None or joints <= problem.most_joints:
            taken = tuple(stages.count((leaf,)) for leaf in range(count))
            halves = tuple(
                sum(stage.count(leaf) for stage in stages if len(stage) == 2)
                for leaf in range(count)
            )
            key = taken + halves
            best[key] = min(price, best.get(key, np.inf))
    return sorted(best.items())


@pytest.mark.parametrize("seed", range(26))
def test_units_made_of_halves(seed: int) -> None:
    """Where whole units run out, halves are paired at the least price."""
    problem = random_halves(random.Random(seed))
    assert problem.spare_halves is not None
    room = (*problem.capacity.tolist(), *problem.spare_halves.tolist())
    best = least_price(half_shapes(problem), room, problem.replicas)
    found = stitch(problem, Params(), 0, Budget(LIMIT))
    if np.isinf(best):
        assert found is None
        return
    assert found is not None
    assert found.lower_bound == pytest.approx(best)
    assert len(found.replicas) == problem.replicas
    units, halves = Counter[int](), Counter[int]()
    for replica in found.replicas:
        assert sum(piece.length for piece in replica) == problem.length
        for piece in replica:
            if piece.leaf == piece.twin:
                units[piece.leaf] += piece.length
            else:
                halves[piece.leaf] += piece.length
                halves[piece.twin] += piece.length
    assert all(count <= problem.capacity[leaf] for leaf, count in units.items())
    assert all(count <= problem.spare_halves[leaf] for leaf, count in halves.items())
