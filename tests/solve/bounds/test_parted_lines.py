"""Parts of lines in two tiers at once: tighter where those say so, never false."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.bounds.hops.hop_cuts import counted_hop_cost, least_hop_cost
from placer.solve.bounds.hops.parted_lines import PartedLines
from placer.solve.count.engine import Limits
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from tests.solve.bounds.hop_bound import cut_bound
from tests.solve.bounds.test_cut_against_brute_force import machine, optimum

ALONE = Params(line_columns=(0, 0), parted_columns=0)
TOGETHER = Params(parted_columns=0)


def lines(size: int, number: int, rooms: dict[tuple[int, int], int]) -> PartedLines:
    """Rings of which only the edges inside count, at rises of 2 and 1."""
    across = np.zeros(1 + min(number, max(room for _, room in rooms)))
    far = np.zeros(1 + number)
    costs = np.array([0.0, *[1.0] * (size - 1), 0.0])
    one = Fraction(1)
    return PartedLines(size, number, costs, (across, far), 0.0, (2.0, 1.0), one, rooms)


def test_racks_and_blocks_want_different_parts() -> None:
    """Two rings of three (w = 4), nodes of 1 and 1 in a block, of 2 and 2 in another.

    For the nodes 2 + 1 twice is best, four parts. For the blocks one whole ring is, and
    the other 1 + 2: two shares. Then the first has 2 + 1 on nodes and the other three
    single ranks, five parts. 4 * (2 * 4 + 2) alone; 4 * (2 * 4 + 4) and
    4 * (2 * 5 + 2) are both 48.
    """
    rows = [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]]
    topology = machine([1, 1, 2, 2], rows, [0, 2, 3])
    job = Job("rings", Parallelism(cp=3, pp=2), weights={"cp": 4})
    assert cut_bound(topology, job, params=ALONE).value == 40
    assert cut_bound(topology, job, params=TOGETHER).value == 48
    assert optimum(topology, job) == 48


def test_cliques_are_lines_too() -> None:
    """Two groups of four on nodes of two, three and three, the first in its own block.

    Six pairs of ranks between nodes, or four between blocks, but never both at once.
    """
    topology = machine([2, 3, 3], [[0, 1, 2], [0, 1, 1], [0, 0, 0]], [0, 2, 3])
    axes = Parallelism(ep=4, dp=8, order=("tp", "cp", "ep", "dp", "pp"))
    job = Job("experts", axes, weights={"ep": 2})
    assert cut_bound(topology, job, params=ALONE).value == 2 * (2 * 6 + 4)
    assert cut_bound(topology, job, params=TOGETHER).value == 2 * (2 * 7 + 4)


def test_both_tiers_are_paid_by_one_placement() -> None:
    """A ring of three on nodes of one and two, each in a block: two edges are cut."""
    assert lines(3, 1, {(0, 1): 1, (1, 2): 1}).least(Limits(1.0), 100) == 2 * 2 + 2


@pytest.mark.parametrize("seed", range(12))
def test_patterns_are_all_parts_that_fit(seed: int) -> None:
    """Each with what its parts cost and what lies across, as plain loops have it."""
    rng = random.Random(seed)
    size, number, room = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 6)
    parted = lines(size, number, {(0, room): 1})
    near = np.array([0, *(rng.randint(0, 9) for _ in parted.across[0][1:])])
    parted.across[0][:] = near
    expected = {}
    for counts in product(range(number + 1), repeat=size):
        ranks = sum(k * times for k, times in enumerate(counts, 1))
        if ranks <= room and sum(counts) <= number:
            held = [sum(counts[x:]) for x in range(size)]
            cost = float(near[held].sum() + parted.costs[1:] @ np.array(counts))
            largest_first = reversed(list(enumerate(counts, 1)))
            key = tuple((part, times) for part, times in largest_first if times)
            expected[key] = 2 * cost
    found = parted.patterns(10_000)
    assert found is not None
    assert dict(found[room]) == expected
    assert len(found[room]) == len(expected)


def test_racks_of_72_single_ranks_are_left_out() -> None:
    """Millions of patterns: no more are listed than may be counted."""
    assert lines(32, 48, {(0, 72): 20, (1, 68): 4}).least(Limits(1.0), 20_000) == 0
    assert lines(20_000, 1, {(0, 72): 300}).least(Limits(1.0), 20_000) == 0


def test_experts_beside_dense_axes_are_left_out() -> None:
    """Their edges are two products of axes, of which lines are in one alone."""
    topology = machine([2, 3, 3], [[0, 1, 2], [0, 1, 1], [0, 0, 0]], [0, 2, 3])
    axes = Parallelism(cp=2, ep=4, dp=4, order=("tp", "cp", "ep", "dp", "pp"))
    job = Job("experts", axes, weights={"ep": 2, "cp": 3})
    alone = cut_bound(topology, job, params=ALONE)
    assert cut_bound(topology, job, params=TOGETHER).value == alone.value


def random_machine(rng: random.Random, ranks: int) -> tuple[list[int], list[list[int]]]:
    """GPUs of four nodes, often with some to spare, and their blocks."""
    gpus = [rng.randint(1, 4) for _ in range(4)]
    gpus[0] += max(0, ranks - sum(gpus))
    blocks = rng.choice(([0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1], [0, 1, 1, 2]))
    return gpus, [[0, 1, 2, 3], blocks, [0] * 4]


@pytest.mark.parametrize("seed", range(30))
def test_no_placement_costs_less(seed: int) -> None:
    """Random rings, pipelines and rooms: every placement costs the bound or more."""
    rng = random.Random(seed)
    cp, pp, dp = rng.choice(
        ((3, 2, 1), (2, 2, 2), (4, 2, 1), (2, 1, 3), (3, 1, 2), (2, 3, 1), (1, 2, 4))
    )
    weights = {"cp": rng.choice((3, 10, 40)), "pp": rng.choice((0, 1, 4, 30))}
    axes = Parallelism(cp=cp, pp=pp, dp=dp)
    job = Job("rings", axes, weights={**weights, "dp": rng.choice((0, 1, 20))})
    gpus, rows = random_machine(rng, job.world_size)
    topology = machine(gpus, rows, [0, rng.choice((1, 2, 9)), 10])
    bound = cut_bound(topology, job, params=TOGETHER)
    assert bound.value <= optimum(topology, job) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_no_placement_of_whole_groups_costs_less(seed: int) -> None:
    """The same of pairs that a rule keeps on a node, dearer than all else."""
    rng = random.Random(seed)
    cp, pp, dp = rng.choice(((3, 1, 1), (2, 2, 1), (4, 1, 1), (2, 1, 2), (1, 1, 4)))
    axes = Parallelism(tp=2, cp=cp, pp=pp, dp=dp)
    weights = {"tp": 1000, "cp": 10, "pp": rng.choice((0, 1, 30)), "dp": 1}
    job = Job("pairs", axes, weights=weights, require={"tp": "t0"}, launcher="free")
    gpus, rows = random_machine(rng, job.world_size + 2)
    topology = machine(gpus, rows, [0, rng.choice((1, 2, 9)), 10])
    if sum(count // 2 * 2 for count in gpus) >= job.world_size:
        bound = cut_bound(topology, job, params=TOGETHER)
        assert bound.value <= optimum(topology, job) * (1 + 1e-9)


def test_larger_programs_wait_for_placements() -> None:
    """The first try leaves out what the second counts, whatever the gap is."""
    rows = [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]]
    topology = machine([1, 1, 2, 2], rows, [0, 2, 3])
    job = Job("rings", Parallelism(cp=3, pp=2), weights={"cp": 4}, launcher="free")
    problem = replace(
        Problem.of(topology, job, "hop-cost"), params=Params(line_columns=(20, 500))
    )
    first = least_hop_cost(problem, 1, inf)
    again = counted_hop_cost(problem, inf, Limits(1.0), is_wide=False)
    assert first is not None
    assert again is not None
    assert (first.value, again.value) == (40, 48)


@pytest.mark.parametrize("columns", [(0, 0), (500, 500)])
def test_nothing_is_tried_twice_in_vain(columns: tuple[int, int]) -> None:
    """Neither where no program counts nor where all that count were tried at first."""
    rows = [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]]
    topology = machine([1, 1, 2, 2], rows, [0, 2, 3])
    job = Job("rings", Parallelism(cp=3, pp=2), weights={"cp": 4}, launcher="free")
    problem = replace(
        Problem.of(topology, job, "hop-cost"), params=Params(line_columns=columns)
    )
    assert counted_hop_cost(problem, inf, Limits(1.0), is_wide=False) is None
