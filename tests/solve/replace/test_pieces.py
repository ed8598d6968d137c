"""The pieces of a repair: covers, knapsacks, rooms, seats and ways back."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.previous import PreviousPlan
from placer.solve.problem.compiled import Problem
from placer.solve.replace.affected import most_damaged
from placer.solve.replace.candidates import led_back
from placer.solve.replace.fewest import fewest_moves, least_cover
from placer.solve.replace.repair import Exit, Repairs, choices
from placer.solve.replace.search import Terms, replaced
from placer.solve.replace.seating import Seating
from placer.solve.replace.state import repair_state
from placer.solve.run.budget import Budget
from tests.solve.rearrange.test_align import machine

MAJOR = ("tp", "cp", "ep", "pp", "dp")


def test_least_cover_against_all_subsets() -> None:
    """No choice of items whose sizes reach the need costs less."""
    rng = random.Random(1)
    for _ in range(200):
        count = rng.randint(1, 6)
        size = np.array([rng.choice((1, 2, 3)) for _ in range(count)])
        price = np.array([rng.randint(0, 5) for _ in range(count)])
        need = rng.randint(-1, int(size.sum()))
        best = min(
            int(price[list(chosen)].sum()) if chosen else 0
            for n in range(count + 1)
            for chosen in combinations(range(count), n)
            if (size[list(chosen)].sum() if chosen else 0) >= need
        )
        assert least_cover(size, price, need) == best


def test_choices_against_all_products() -> None:
    """Every choice is the cheapest of its moves, and cheaper than those of fewer."""
    rng = random.Random(2)
    for _ in range(100):
        exits = [
            [Exit(m, float(rng.randint(0, 30)), ()) for m in rng.sample(range(6), 3)]
            for _ in range(rng.randint(0, 4))
        ]
        found = [
            (sum(one.moves for one in chosen), sum(one.cost for one in chosen))
            for chosen in choices(exits)
        ]
        every = [
            (sum(one.moves for one in chosen), sum(one.cost for one in chosen))
            for chosen in product(*exits)
        ]
        front = [
            (moves, cost)
            for moves, cost in sorted(set(every))
            if not any(
                m <= moves and c <= cost for m, c in every if (m, c) != (moves, cost)
            )
        ]
        assert found == front


def test_seats_of_a_plan_on_what_is_left() -> None:
    """Known domains keep their numbers, lost nodes and racks have new ones."""
    topology = machine([("b0", [2, 2]), ("b1", [2])])
    job = Job("j", Parallelism(tp=2, dp=3, etp=2), weights={"dp": 1})
    plan = build_plan(topology, job, Placement(np.arange(6)))
    left = topology.select(np.array([1]))
    before = PreviousPlan(plan, left).seats(job)
    assert before.gpu_of_rank.tolist() == [-1, -1, 0, 1, -1, -1]
    nodes, racks, blocks, all_of_it = before.domain.tolist()
    assert nodes[2:4] == [0, 0]
    assert len(set(nodes)) == 3
    assert racks == [0, 0, 0, 0, 1, 1]
    assert blocks == [0, 0, 0, 0, 1, 1]
    assert all_of_it == [0] * 6


def test_spare_in_the_rack_first() -> None:
    """A lost tray's ranks go to a free tray of the rack, wherever others are free."""
    topology = machine([("b0", [2, 2]), ("b0", [2, 2, 2]), ("b1", [2, 2])])
    job = Job(
        "j",
        Parallelism(tp=2, pp=2, dp=2, etp=2, order=MAJOR),
        weights={"tp": 9, "pp": 3},
    )
    seats = topology.first_gpu_of_node[[2, 3, 5, 6]]
    plan = build_plan(topology, job, Placement((seats[:, None] + [0, 1]).ravel()))
    left = topology.select(np.array([0, 1, 2, 4, 5, 6]))
    state = repair_state(Problem.of(left, job), PreviousPlan(plan, left))
    repairs = Repairs(state, Seating(state, np.ones(6, dtype=bool)), 1.0)
    (chosen,) = repairs.choices(Budget(60.0))
    found = repairs.placement(chosen)
    assert found is not None
    names = [left.node_names[n] for n in left.node_of_gpu[found]]
    assert names == [topology.node_names[n] for n in (2, 2, 4, 4, 5, 5, 6, 6)]


@pytest.mark.parametrize("spares", [0, 1])
def test_a_required_group_leaves_as_a_whole(spares: int) -> None:
    """Without a spare tray the whole pipeline of a rack must go, as the bound says."""
    topology = machine([("b0", [2] * (2 + spares)), ("b0", [2, 2]), ("b1", [2, 2])])
    job = Job(
        "j",
        Parallelism(tp=2, pp=2, dp=2, etp=2, order=MAJOR),
        weights={"pp": 3, "dp": 1},
        require={"tp": "node", "pp": "rack"},
    )
    nodes = [0, 1, 2 + spares, 3 + spares]
    seats = topology.first_gpu_of_node[nodes]
    plan = build_plan(topology, job, Placement((seats[:, None] + [0, 1]).ravel()))
    left = topology.select(np.arange(1, topology.num_nodes))
    state = repair_state(Problem.of(left, job), PreviousPlan(plan, left))
    assert fewest_moves(state, 8).moves == (2 if spares else 4)
    assert most_damaged(state, 1, 1) == [0]


def test_led_back_ends_at_home() -> None:
    """Each step moves fewer ranks, and the last leaves all that have seats at home."""
    topology = machine([("b0", [1, 1, 1]), ("b1", [1, 1, 1])])
    job = Job("j", Parallelism(dp=5), weights={"dp": 1}, launcher="free")
    plan = build_plan(topology, job, Placement(np.arange(5)))
    left = topology.select(np.arange(1, 6))
    problem = Problem.of(left, job)
    state = repair_state(problem, PreviousPlan(plan, left))
    fresh = np.array([1, 3, 0, 4, 2])
    moved = [
        state.before.moved(found) for found in led_back(state, fresh, Budget(60.0))
    ]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] == 1


def test_a_rack_of_many_move_groups() -> None:
    """A rack of hundreds of nodes, half of them lost, is mended in a moment."""
    topology = machine([("b0", [1] * 300), ("b1", [1] * 300)])
    near = tuple(replace(tier, distance=1.0) for tier in topology.tiers[:2])
    topology = replace(topology, tiers=(*near, *topology.tiers[2:]))
    job = Job("j", Parallelism(dp=300), weights={"dp": 1}, launcher="free")
    plan = build_plan(topology, job, Placement(np.arange(300)))
    left = topology.select(np.arange(150, 600))
    found = replaced(
        Problem.of(left, job), PreviousPlan(plan, left), Terms(0.5), Budget(60.0)
    )
    assert found.chosen.moves == found.fewest.moves == 150
