"""Stitching window by window, against the cheapest set of replicas."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.instances import load
from placer.placement.placement import Placement
from placer.solve.construct.chains import stitch as whole
from placer.solve.construct.chains.laid import laid
from placer.solve.construct.chains.segments import (
    Fragment,
    Segment,
    Stitched,
    Stitching,
)
from placer.solve.construct.chains.stitch_program import stitch_at_once
from placer.solve.problem.objective import objective_of
from placer.solve.problem.params import Params
from placer.solve.run.budget import Budget
from tests.solve.construct.test_stitch import (
    LIMIT,
    half_shapes,
    least_price,
    price_of,
    random_halves,
    random_problem,
    shapes,
    stages_of,
)
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.solve.count.engine import Limits

GAP = 0.02  # that a window's program may leave


def windows(problem: Stitching, joints: int) -> list[Segment] | None:
    """Replicas stitched in windows of some sorts of joints, however small."""
    params = Params(joints_at_once=0, window_joints=joints)
    found = whole.stitch(problem, params, 0, Budget(LIMIT))
    return None if found is None else found.replicas


def check_room(problem: Stitching, replicas: list[Segment]) -> None:
    """All replicas are complete and no leaf holds more than it has room for."""
    assert len(replicas) == problem.replicas
    units, halves = Counter[int](), Counter[int]()
    for replica in replicas:
        assert sum(piece.length for piece in replica) == problem.length
        if problem.most_joints is not None:
            assert len(replica) - 1 <= problem.most_joints
        for piece in replica:
            if piece.leaf == piece.twin:
                units[piece.leaf] += piece.length
            else:
                halves.update((piece.leaf, piece.twin))
    spare = problem.spare_halves
    assert all(count <= problem.capacity[leaf] for leaf, count in units.items())
    assert not halves or spare is not None
    if spare is not None:
        assert all(count <= spare[leaf] for leaf, count in halves.items())


@pytest.mark.parametrize("seed", range(20))
def test_one_window_is_the_whole_program(
    seed: int,
) -> None:
    """A window of all domains is solved to within its gap."""
    problem = random_problem(random.Random(seed), levels=2)
    room = tuple(problem.capacity.tolist())
    best = least_price(shapes(problem), room, problem.replicas)
    found = windows(problem, 10**6)
    if np.isinf(best):
        assert found is None
        return
    assert found is not None
    check_room(problem, found)
    price = sum(price_of(problem, stages_of(replica))[0] for replica in found)
    assert best - 1e-6 <= price <= best / (1 - GAP) + 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_narrow_windows(seed: int) -> None:
    """Windows of one domain find replicas whenever the units suffice."""
    problem = random_problem(random.Random(seed), levels=2)
    found = windows(problem, 1)
    fits = int(problem.capacity.sum()) >= problem.replicas * problem.length
    if problem.most_joints is None:
        assert (found is not None) == fits
    if found is not None:
        check_room(problem, found)
        room = tuple(problem.capacity.tolist())
        best = least_price(shapes(problem), room, problem.replicas)
        price = sum(price_of(problem, stages_of(replica))[0] for replica in found)
        assert price >= best - 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_halves_in_windows(seed: int) -> None:
    """Halves are paired within the spare room, and never where nothing fits."""
    problem = random_halves(random.Random(seed))
    assert problem.spare_halves is not None
    found = windows(problem, 1)
    if found is not None:
        check_room(problem, found)
        room = (*problem.capacity.tolist(), *problem.spare_halves.tolist())
        assert np.isfinite(least_price(half_shapes(problem), room, problem.replicas))


def uneven_machine(rng: random.Random) -> Stitching:
    """Sixty leaves of 2 to 4 units in twelve blocks and three zones, all of it used."""
    capacity = np.array([rng.randint(2, 4) for _ in range(60)])
    length = 6
    return Stitching(
        capacity=capacity,
        parents=[
            np.arange(60) // 5,
            np.arange(12) // 4,
            np.zeros(3, dtype=np.int64),
        ],
        joint_cost=[10.0, 12.0, 15.0],
        length=length,
        replicas=int(capacity.sum()) // length,
    )


@pytest.mark.parametrize("seed", range(4))
def test_windows_do_not_beat_the_bound(
    seed: int,
) -> None:
    """Over three tiers, the price lies above the bound of the whole program."""
    problem = uneven_machine(random.Random(seed))
    exact = whole.stitch(problem, Params(), 0, Budget(LIMIT))
    assert exact is not None
    found = windows(problem, 40)
    assert found is not None
    check_room(problem, found)
    price = sum(price_of(problem, stages_of(replica))[0] for replica in found)
    assert price >= exact.lower_bound - 1e-6


def test_same_seed_same_replicas() -> None:
    """Stitching twice with one seed gives the same replicas."""
    problem = uneven_machine(random.Random(7))
    first = windows(problem, 40)
    assert first is not None
    assert windows(problem, 40) == first


def test_stop_ends_the_work() -> None:
    """Asked to stop before the third program, the rest is laid along the tree."""
    params = Params(joints_at_once=0, window_joints=1)
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(True)
        return len(asked) > 4  # twice a window: whether to go on, and to solve

    problem = uneven_machine(random.Random(1))
    found = whole.stitch(problem, params, 0, Budget(LIMIT, stop))
    assert found is not None
    assert found.cut_short
    check_room(problem, found.replicas)
    assert len(asked) <= 12  # and twice at the end of each walk


def test_what_the_clock_cuts_off_is_laid_along_the_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No window keeps the poor answer that a program has when its time is up."""

    def cut_off(problem: Stitching, limits: Limits) -> Stitched | None:
        found = stitch_at_once(problem, limits)
        return found and replace(found, cut_short=True)

    monkeypatch.setattr(whole, "stitch_at_once", cut_off)
    problem = uneven_machine(random.Random(1))
    params = Params(joints_at_once=0, window_joints=1)
    found = whole.stitch(problem, params, 0, Budget(LIMIT))
    assert found is not None
    assert found.cut_short
    assert found.replicas == laid(problem)


def test_poor_answers_give_way_to_chains_along_the_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A window whose programs come nowhere near their bound is laid along the tree."""

    def scattered(problem: Stitching, _limits: Limits) -> Stitched:
        units = np.repeat(np.arange(len(problem.capacity)), problem.capacity).tolist()
        replicas = [
            tuple(Fragment(leaf, 1, leaf) for leaf in units[first :: problem.replicas])
            for first in range(problem.replicas)
        ]
        cut = [replica[: problem.length] for replica in replicas]
        return Stitched(cut, 0.0, 0.0, proved=False, cut_short=False)

    monkeypatch.setattr(whole, "stitch_at_once", scattered)
    problem = uneven_machine(random.Random(1))
    params = Params(joints_at_once=0, window_joints=10**6)
    found = whole.stitch(problem, params, 0, Budget(LIMIT))
    assert found is not None
    assert found.replicas == laid(problem)


@pytest.mark.parametrize("seed", range(2))
def test_workers_change_nothing(seed: int) -> None:
    """Walks side by side, and one after the other, make the same replicas."""
    problem = uneven_machine(random.Random(seed))
    params = Params(joints_at_once=0, window_joints=1, windows_a_walk=1)
    alone, together = (
        whole.stitch(problem, params, 0, Budget(LIMIT, workers=workers))
        for workers in (1, 3)
    )
    assert alone is not None
    assert together is not None
    assert alone.replicas == together.replicas
    check_room(problem, alone.replicas)


def made(problem: Stitching, **changes: Any) -> int:
    """Replicas that programs of narrow windows make, by themselves."""
    params = replace(Params(joints_at_once=0, window_joints=1), **changes)
    windows = whole.Windows(problem, params, 0, Budget(LIMIT))
    windows.stitch()
    return len(windows.replicas)


def scarce_halves(rng: random.Random) -> Stitching:
    """Eight blocks whose units fit only with nearly all halves."""
    capacity = np.array([rng.randint(2, 4) for _ in range(40)])
    halves = np.array([rng.randint(0, 1) for _ in range(40)])
    length = 4
    return Stitching(
        capacity=capacity,
        parents=[np.arange(40) // 5, np.zeros(8, dtype=np.int64)],
        joint_cost=[10.0, 15.0],
        length=length,
        replicas=int(capacity.sum() + halves.sum() // 2) // length,
        spare_halves=halves,
        half_cost=[100.0, 150.0],
    )


@pytest.mark.parametrize("seed", range(4))
def test_halves_are_handed_on(seed: int) -> None:
    """Where halves are scarce, windows leave none behind that a later one needs."""
    problem = scarce_halves(random.Random(seed))
    assert made(problem, taken_back=()) == problem.replicas


@pytest.mark.parametrize("seed", range(4))
def test_no_more_halves_than_are_needed(seed: int) -> None:
    """Where a unit of halves costs more than any joint, windows make the fewest."""
    problem = scarce_halves(random.Random(seed))
    problem = replace(problem, replicas=problem.replicas - 1)
    missing = problem.replicas * problem.length - int(problem.capacity.sum())
    assert missing > 0
    found = whole.stitch(problem, Params(joints_at_once=0), 0, Budget(LIMIT))
    assert found is not None
    pieces = [piece for replica in found.replicas for piece in replica]
    assert sum(piece.leaf != piece.twin for piece in pieces) == missing


@pytest.mark.parametrize("seed", range(4))
def test_replicas_are_taken_back(seed: int) -> None:
    """A window without a solution costs nothing when replicas are made again."""
    problem = scarce_halves(random.Random(seed))
    uncounted = {"scarce_halves": 9.0}  # so that windows leave too little behind
    assert made(problem, **uncounted, taken_back=()) < problem.replicas
    assert made(problem, **uncounted) == problem.replicas


@pytest.mark.slow
def test_hundred_thousand_ranks() -> None:
    """98,304 ranks on 1,792 uneven racks lie within 0.2 % of the lower bound."""
    topology, job = load("G")
    solution = solve(topology, job, objective="hop-cost", time_limit=300.0)
    assert solution.value <= 440_716_256
    assert solution.lower_bound >= solution.value * (1 - 0.002)
    goal = objective_of(topology, job, "hop-cost")
    gpu_of_rank = Placement(solution.placement.gpu_of_rank).gpu_of_rank
    assert len(np.unique(gpu_of_rank)) == job.world_size
    assert goal.value(gpu_of_rank) == solution.value
