"""Expert groups in parts that are annealed."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from placer.cost.network import PlacedNetwork
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.construct.experts.parts_asked import Asked, asked_of
from placer.solve.construct.experts.parts_order import OrderSteps, RingOrder
from placer.solve.construct.experts.parts_pace import Pace
from placer.solve.construct.experts.parts_program import Made
from placer.solve.construct.experts.parts_walk import PartsWalk
from placer.solve.construct.experts.walked_parts import (
    arranged,
    walked_fills,
)
from placer.solve.construct.units.in_parts import in_parts_fills
from placer.solve.construct.units.whole_first import whole_first_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.marks import slow
from tests.solve.construct.test_chosen_parts import NINES, SIXTEEN_GROUPS
from tests.solve.construct.test_whole_first import job, machine


def drawn(seed: int) -> tuple[Problem, Asked]:
    """A job whose groups do not all fit uneven hosts, behind thin uplinks or not."""
    rng = random.Random(f"walked parts {seed}")
    while True:
        gpus = [rng.choice((9, 8, 7, 6, 5)) for _ in range(rng.randint(12, 20))]
        topology = machine(gpus, sorted(rng.randrange(3) for _ in gpus))
        *inner, last = topology.tiers
        thin = replace(last, oversubscription=rng.choice((1.0, 2.0, 4.0)))
        topology = replace(topology, tiers=(*inner, thin))
        tp, pp, ep = rng.choice(((1, 2, 8), (1, 4, 8), (2, 2, 8), (1, 1, 4)))
        dp = sum(gpus) * 9 // 10 // (pp * tp) // ep * ep
        if dp:
            problem = Problem.of(topology, job(tp=tp, ep=ep, pp=pp, dp=dp), "time")
            for asked in asked_of(problem):
                return problem, asked


def walk_of(asked: Asked, seed: int) -> PartsWalk:
    """From pieces anywhere."""
    rng = np.random.default_rng(seed)
    links, units = asked.links(), asked.parts.units
    seats = rng.permutation(np.repeat(np.arange(len(links.room)), links.room))
    held = np.zeros((units.number, len(links.room)), dtype=np.int64)
    count = units.number * units.pieces
    np.add.at(held, (np.arange(count) // units.pieces, seats[:count]), 1)
    near = asked.parts.seconds(asked.ground.floor.tier + 1).values()
    pace = Pace.of(asked.parts, min(near), 1.1 * max(near))
    return PartsWalk(links, pace, asked.slot(), held, rng)


def laid(problem: Problem, asked: Asked, held: np.ndarray) -> np.ndarray:
    placed = []
    for row in held:
        at = np.flatnonzero(row)
        placed.append((Made(tuple(row[at].tolist()), -1, 0.0), at.tolist()))
    nodes = asked.ground.node_of_rank(1, range(len(held)), placed)
    return Placement.on_nodes(problem.machine, nodes).gpu_of_rank


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 60))])
def test_units_take_what_the_cost_model_says(seed: int) -> None:
    """Ports, shared uplinks of either tier and latencies, wherever pieces lie."""
    problem, asked = drawn(seed)
    walk = walk_of(asked, seed)
    walk.go(seed % 4 * 10, Budget(60))
    gpu_of_rank = laid(problem, asked, walk.held)
    assert (asked.ground.held(gpu_of_rank) == walk.held).all()
    network = PlacedNetwork(problem.model.fabric, gpu_of_rank)
    groups = problem.job.parallelism.ranks_of_group["ep"]
    cost = network.all_to_all(groups, problem.model.volumes.ep_buffer)
    for ranks, seconds in zip(asked.ground.units.ranks, walk.seconds, strict=True):
        own = np.isin(groups, ranks).all(axis=1)
        assert seconds == pytest.approx(cost.seconds[own].max(), rel=1e-9)


@pytest.mark.parametrize("seed", [*range(3), *slow(range(3, 30))])
def test_a_change_is_priced_as_if_it_were_made(seed: int) -> None:
    """No domain gets too full, no piece is lost, and steps are those told before."""
    _, asked = drawn(seed)
    walk = walk_of(asked, seed)
    changes = walk._propose()
    steps = walk._priced(changes)
    held = walk.held.copy()
    assert len(steps) > 20
    for at in range(len(steps)):
        walk.held = held.copy()
        walk._make(changes, at)
        walk._set_up()
        assert walk.steps == pytest.approx(steps[at], rel=1e-9)
        assert (walk.free >= 0).all()
        assert (walk.held >= 0).all()
        assert (walk.held.sum(axis=1) == walk.links.size).all()


@pytest.mark.parametrize("seed", range(3))
def test_paths_are_the_pipeline(seed: int) -> None:
    """The longest of them takes as long as the pipeline of the cost model."""
    _, asked = drawn(seed)
    walk = walk_of(asked, seed)
    times = walk.seconds[walk.slot].max(axis=-1)
    assert walk.steps == pytest.approx(asked.parts.step_times(times), rel=1e-3)


def test_walks_beat_parts_that_are_even() -> None:
    """A few halves beat one group in crumbs; a second run ends the same."""
    problem = Problem.of(NINES, SIXTEEN_GROUPS, "time")
    problem = problem.with_params(parts_walks=((1, 400),), parts_order_tries=100)
    found = []
    for _ in range(2):
        incumbent = Incumbent(problem, Budget(60))
        incumbent.offer_all(islice(in_parts_fills(problem), 8))
        before = incumbent.value
        incumbent.prove(lower_bound(problem, 1).value, "")
        incumbent.offer_all(walked_fills(problem, incumbent, Budget(60)))
        found.append(incumbent.gpu_of_rank)
        assert incumbent.value < 0.95 * before
        assert incumbent.value < 1.03 * incumbent.bound
    assert (found[0] == found[1]).all()
    whole = min(problem.goal.value(gpus) for _, gpus in whole_first_fills(problem))
    assert incumbent.value < 0.95 * whole


def test_a_walk_that_time_cuts_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first of several walks has found is told when time is up."""
    problem = Problem.of(NINES, SIXTEEN_GROUPS, "time")
    problem = problem.with_params(parts_walks=((4, 400),), parts_order_tries=100)
    incumbent = Incumbent(problem, Budget(60))
    incumbent.offer_all(islice(in_parts_fills(problem), 8))
    before, walked = incumbent.value, []
    go = PartsWalk.go

    def last(walk: PartsWalk, batches: int, budget: Budget) -> None:
        go(walk, batches, budget)
        walked.append(walk)

    monkeypatch.setattr(PartsWalk, "go", last)
    budget = Budget(60, lambda: bool(walked))
    incumbent.offer_all(walked_fills(problem, incumbent, budget))
    assert len(walked) == 1
    assert incumbent.value < 0.95 * before


@pytest.mark.parametrize("seed", range(3))
def test_rings_leave_fewer_domains(seed: int) -> None:
    """Uplinks are less busy, and no replica waits longer."""
    _, asked = drawn(seed)
    walk = walk_of(asked, seed)
    rng = np.random.default_rng(seed)
    order = RingOrder(walk.links, walk.pace, walk.held, walk.seconds, rng)
    slot = order.improved(walk.slot, 500)
    assert sorted(slot.ravel()) == sorted(walk.slot.ravel())
    assert order.busy(slot) < order.busy(walk.slot)
    after = walk.pace.steps(walk.seconds[slot].max(axis=-1))
    assert after.max() <= walk.step_s * (1 + 1e-6)


def test_a_stopped_search_tries_no_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a walk ends with is laid as it is; past the clock it is put right."""
    problem, asked = drawn(0)
    walk = walk_of(asked, 0)
    tried = []
    changed = RingOrder.changed

    def counted(order: RingOrder, *given: Any) -> Any:
        tried.append(given)
        return changed(order, *given)

    monkeypatch.setattr(RingOrder, "changed", counted)
    arranged(problem, asked, walk, Budget(60, lambda: True))
    assert not tried
    arranged(problem, asked, walk, Budget(0))
    assert tried


def test_orders_make_the_step_shorter() -> None:
    """By what the cost model says of the placement, with every unit once."""
    problem, asked = drawn(0)
    walk = walk_of(asked, 0)
    order = RingOrder(walk.links, walk.pace, walk.held, walk.seconds, walk.rng)
    steps = OrderSteps(problem, asked, order, walk.held)
    start = steps.of(walk.slot)
    assert start.seconds == problem.goal.value(laid(problem, asked, walk.held))
    best = steps.improved(start, 200)
    assert best.seconds == problem.goal.value(best.gpu_of_rank)
    assert best.seconds < start.seconds
    assert sorted(best.slot.ravel()) == sorted(walk.slot.ravel())


def test_stages_of_the_only_replica_change_places() -> None:
    """Nothing else can, and no more than two do."""
    _, asked = drawn(1)
    walk = walk_of(asked, 1)
    order = RingOrder(walk.links, walk.pace, walk.held, walk.seconds, walk.rng)
    one = walk.slot[:1]
    changed = order.changed(one)
    assert changed is not None
    assert sorted(changed.ravel()) == sorted(one.ravel())
    assert (changed != one).any(axis=-1).sum() == 2
