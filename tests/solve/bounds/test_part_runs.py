"""Parts on nodes that hold runs of ranks: a walk along the units, node by node."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from placer.arrays import IntArray
from placer.job.model import Compute
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.experts import part_runs
from placer.solve.bounds.experts.expert_parts import stage_parts
from placer.solve.bounds.experts.part_counts import Counts
from placer.solve.bounds.experts.part_runs import MOST_TOLD, NodeRuns, step_in_runs
from placer.solve.count.blocks import solved_in_blocks
from placer.solve.count.engine import Limits, solve
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS
from tests.marks import slow
from tests.solve.construct.test_whole_first import SPARSE, job, machine

NEAR = {1: 0.5, 2: 0.4, 3: 0.3, 4: 0.2, 8: 0.1}
# Units of 8, one in each of three stages of a replica.
COUNTS = Counts(
    rooms={(0, 7): 4},
    size=8,
    number=3,
    replicas=1,
    together=1,
    alike=1,
    near=NEAR,
    apart=lambda part, _share: NEAR[part],
    uplinks={},
    latency={},
)


def is_hopeless(
    counts: Counts,
    rooms: dict[int, int],
    *levels: list[int],
    stages: tuple[int, ...] = (),
) -> bool:
    """Whether no replicas have stages of these levels or faster ones."""
    program = NodeRuns(counts, rooms, stages).program(np.array(levels))
    assert program is not None
    answer = solve(program, Limits(1.0))
    assert answer.is_proved
    return answer.counts is None


def test_nodes_hold_an_end_beside_a_beginning() -> None:
    """Four nodes of 7: (4, 4) (3, 5) (2, 6) is a walk; 4 + 4, 4 + 4, 3 + 3 + 2 none."""
    slow, third, half = 1, 2, 3
    assert not is_hopeless(COUNTS, {7: 4}, [third, half, third])
    assert is_hopeless(COUNTS, {7: 4}, [slow, half, half])
    stated = COUNTS.stated(np.array([[slow, half, half]]), [1.0] * 3)
    assert stated is not None
    assert solved_in_blocks(stated.program, Limits(1.0)).counts is not None


def test_a_node_may_hold_several_units() -> None:
    """Of ten pieces of units of 4, a node of 9 holds two units and one piece more."""
    counts = replace(COUNTS, size=4, near={1: 0.3, 2: 0.2, 4: 0.1})
    assert not is_hopeless(counts, {9: 1, 3: 1}, [0, 2, 2])
    assert is_hopeless(counts, {9: 1, 3: 1}, [1, 2, 2])
    assert not is_hopeless(counts, {10: 1, 2: 1}, [1, 2, 2])


def walks(rooms: list[int], left: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to lay so many pieces on nodes: room of each and what it holds."""
    if not left:
        yield []
    for room in sorted(set(rooms)):
        others = list(rooms)
        others.remove(room)
        for held in range(1, min(room, left) + 1):
            for rest in walks(others, left - held):
                yield [(room, held), *rest]


@pytest.mark.parametrize("seed", range(12))
def test_every_walk_solves_the_program(seed: int) -> None:
    """By plain loops: what the best walks have, the program has too."""
    rng = random.Random(f"runs {seed}")
    size, number = rng.choice(((3, 3), (4, 2), (4, 3), (5, 2)))
    rooms = [rng.randint(1, size + 2) for _ in range(4)]
    while sum(rooms) < size * number:
        rooms.append(rng.randint(1, size + 2))
    largest = min(size, max(rooms))
    lows = list(range(1, size // max(2, -(-size // largest)) + 1))
    lows += [size] if largest == size else []
    near = {low: 1.0 - place / 10 for place, low in enumerate(lows)}
    counts = replace(COUNTS, size=size, number=number, near=near)
    met = set()
    for walk in walks(rooms, size * number):
        unit = np.arange(size * number) // size
        node = np.repeat(np.arange(len(walk)), [held for _, held in walk])
        least = [min(Counter(node[unit == one]).values()) for one in range(number)]
        levels = sorted(lows.index(low) for low in least)
        if tuple(levels) not in met:
            met.add(tuple(levels))
            assert not is_hopeless(counts, dict(Counter(rooms)), levels)
    assert met


def test_a_stage_in_which_groups_must_be_whole() -> None:
    """Hosts of 6 hold three units of 4 in 4, 2 + 2, 4, and not the middle one whole.

    Where stages are not told apart it may be the one that is whole.
    """
    counts = replace(COUNTS, size=4, near={1: 0.3, 2: 0.2, 4: 0.1})
    half, whole = 1, 2
    for levels in ([whole, half, whole], [half, whole, whole]):
        asked = (counts, {6: 2}, levels)
        assert not is_hopeless(*asked)
        assert is_hopeless(*asked, stages=(0, 1, 2)) == (levels[1] == whole)


@pytest.mark.parametrize("seed", [*range(12), *slow(range(12, 60))])
def test_every_walk_solves_the_program_of_stages(seed: int) -> None:
    """Random walks with replicas of several stages, in either order of ranks."""
    rng = random.Random(f"stages {seed}")
    size, stages, replicas = rng.randint(2, 5), rng.randint(2, 3), rng.randint(1, 3)
    number = stages * replicas
    of_unit = [unit % stages for unit in range(number)]
    if rng.random() < 0.5:
        of_unit.sort()
    rooms = [rng.randint(1, size + 3) for _ in range(3)]
    while sum(rooms) < size * number + 3:
        rooms.append(rng.choice(rooms))
    lows = [*range(1, size // 2 + 1), size]
    near = {low: 1.0 - place / 10 for place, low in enumerate(lows)}
    counts = replace(COUNTS, size=size, number=number, replicas=replicas, near=near)
    met = set()
    for _ in range(60):
        left, held = size * number, []
        for room in rng.sample(rooms, len(rooms)):
            held.append(min(left, rng.choice((room, rng.randint(0, room)))))
            left -= held[-1]
        if left:
            continue
        unit = np.arange(size * number) // size
        node = np.repeat(np.arange(len(held)), held)
        least = [min(Counter(node[unit == one]).values()) for one in range(number)]
        level = [lows.index(low) for low in least]
        rows = [
            [u for u in range(number) if of_unit[u] == stage] for stage in range(stages)
        ]
        levels = [[level[row[r]] for row in rows] for r in range(replicas)]
        if str(levels) not in met:
            met.add(str(levels))
            in_order = tuple(of_unit)
            found = is_hopeless(counts, Counter(rooms), *levels, stages=in_order)
            assert not found, (seed, held)


def test_nodes_of_too_many_units_are_not_counted() -> None:
    """A host of 71 may pass from stage to stage after any of its eight units."""
    stages = tuple(stage for stage in range(8) for _ in range(40))
    counts = replace(COUNTS, size=8, number=len(stages), replicas=40)
    assert NodeRuns(counts, {71: 50}, stages).program(np.zeros((1, 8), int)) is None
    assert NodeRuns(counts, {71: 50}).program(np.zeros((1, 8), int)) is not None


def test_replicas_of_many_stages_are_told_apart_in_few_boxes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is compared with all others: of 200,000 that took hours."""
    experts = job(tp=1, ep=8, pp=8, dp=32, vp=1)
    hosts = machine([7] * 37, [0] * 37)
    by_nodes = replace(experts, launcher="node-contiguous")
    params = {"expert_choices": 20_000, "expert_count_work": 1e-9}
    problem = Problem.of(hosts, by_nodes, "time").with_params(**params)
    told: list[tuple[bool, int]] = []

    def counted(self: NodeRuns, levels: IntArray) -> None:
        told.append((bool(self.stages), len(levels)))

    monkeypatch.setattr(NodeRuns, "program", counted)
    lower_bound(problem, 0)
    assert max(boxes for apart, boxes in told if not apart) > MOST_TOLD
    assert 100 < max(boxes for apart, boxes in told if apart) <= MOST_TOLD


@pytest.mark.parametrize("seed", range(8))
def test_no_launch_on_uneven_hosts_is_below(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A slow last stage, GPUs to spare; nor with lists that are cut."""
    rng = random.Random(f"hosts {seed}")
    pp, ep = rng.choice(((2, 4), (3, 3), (2, 6), (3, 4)))
    sizes = [rng.choice((5, 5, 7, 3)) for _ in range(2)]
    while sum(sizes) < pp * ep + rng.randint(0, 2):
        sizes.append(rng.choice((*sizes, 2)))
    hosts = machine(sizes, [0] * len(sizes))
    sparse = replace(SPARSE, experts=ep, layers=2 * pp, moe_layers=2 * pp)
    experts = replace(
        job(tp=1, ep=ep, pp=pp, dp=ep),
        model=replace(sparse, vocab=rng.choice((32_000, 256_000))),
        compute=Compute(micro_batch_time=rng.choice((1e-4, 1e-2))),
        launcher="node-contiguous",
    )
    problem = Problem.of(hosts, experts, "time")
    parts = stage_parts(problem.model, colocation_of(hosts, experts, 0))
    assert parts is not None
    best = inf
    for walk in walks(sizes, pp * ep):
        of_size = {n: [h for h, m in enumerate(sizes) if m == n] for n, _ in walk}
        nodes = np.repeat([of_size[n].pop() for n, _ in walk], [h for _, h in walk])
        gpus = Placement.on_nodes(hosts, nodes).gpu_of_rank
        best = min(best, problem.goal.value(gpus))
    known = parts.step.step_time_s
    for choices, columns, rungs in ((300_000, 20_000, 7_000), (2, 20_000, 50)):
        monkeypatch.setattr(part_runs, "MOST_COLUMNS", columns)
        monkeypatch.setattr(part_runs, "RUNGS", rungs)
        params = replace(problem.params, expert_choices=choices)
        found = step_in_runs(parts, known, params, ENDLESS)
        assert known <= found <= best * (1 + 1e-9)


def test_launches_by_nodes_raise_the_bound() -> None:
    """Three groups of 8 on four hosts of 7: no launch by nodes has two in halves."""
    hosts = machine([7, 7, 7, 7, 1], [0] * 5)
    experts = job(tp=1, ep=8, pp=3, dp=8, vp=1)
    by_nodes = replace(experts, launcher="node-contiguous")
    problem = Problem.of(hosts, by_nodes, "time")
    assert problem.forced_block == 0
    bound = lower_bound(problem, 0).value
    best = inf
    for walk in walks(hosts.gpus_of_node.tolist(), 24):
        free = {
            room: [n for n in range(5) if (n == 4) == (room == 1)] for room in (1, 7)
        }
        nodes = np.repeat([free[room].pop() for room, _ in walk], [h for _, h in walk])
        gpus = Placement.on_nodes(hosts, nodes).gpu_of_rank
        best = min(best, problem.goal.value(gpus))
    of_any_launch = lower_bound(problem, 1).value
    assert of_any_launch < bound <= best * (1 + 1e-9)
    # No replica is below a hundredth of it.
    parts = stage_parts(problem.model, colocation_of(hosts, by_nodes, 0))
    assert parts is not None
    found = step_in_runs(parts, bound / 100, problem.params, ENDLESS)
    assert bound / 100 < found <= best * (1 + 1e-9)
