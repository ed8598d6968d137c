"""What a search keeps of the placements offered to it."""

from __future__ import annotations

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.front import Front
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of


def pair() -> Problem:
    """Two ranks on five nodes of two GPUs, each a tier further from the first."""
    distances = {"node": 1.0, "rack": 3.0, "block": 4.0, "pod": 5.0, "cluster": 9.0}
    tiers = [
        Tier(name, 1e9, 1e-6, name == "node", 1.0, 1.0, distance)
        for name, distance in distances.items()
    ]
    rows = [[0, 0, 1, 2, 3], [0, 0, 0, 1, 2], [0, 0, 0, 0, 1], [0] * 5]
    job = Job("pair", Parallelism(dp=2), weights={"dp": 1.0}, launcher="free")
    return Problem.of(machine_of([2] * 5, rows, tiers), job)


def test_the_elite_are_the_best_of_different_values() -> None:
    """Of many placements the four of least value stay, one a value, the best first."""
    problem = pair()
    incumbent = Incumbent(problem, Budget(60.0))
    offered = [(0, 6), (0, 2), (1, 3), (0, 8), (0, 1), (0, 4)]
    values = [problem.goal.value(np.array(gpus)) for gpus in offered]
    assert values == [5.0, 3.0, 3.0, 9.0, 1.0, 4.0]
    for gpus in offered:
        incumbent.offer("test", np.array(gpus))
    elite = [problem.goal.value(gpu_of_rank) for gpu_of_rank in incumbent.elite]
    assert elite == [1, 3, 4, 5]
    assert incumbent.value == 1


def test_a_part_that_the_clock_ended_counts() -> None:
    """A search in parts is as far done as they are, and counts their moves."""
    problem = pair()
    gpus = np.array([0, 2])
    part = Incumbent(problem, Budget(60.0))
    part.offer("test", gpus)
    part.moves.count("swap", helped=1, tried=3)
    part.cut_short, part.launch_bound = True, 0.5
    whole = Incumbent(problem, Budget(60.0))
    whole.offer("test", gpus)
    assert whole.solution().stop_reason == "searched"
    whole.include(part.solution())
    found = whole.solution()
    assert found.stop_reason == "time-limit"
    assert found.launch_bound == 0.5
    assert found.moves == {"swap": {"tried": 3, "helped": 1}}
    whole.prove(found.value, "test")
    assert whole.solution().stop_reason == "proved"
    assert not whole.solution().deterministic


def test_a_front_keeps_the_cheapest_for_every_number_of_moves() -> None:
    """Placements that another beats in both are left out, and one of few moves wins."""
    problem = pair()
    front = Front(problem, Budget(0.0), lambda gpus: int(np.sum(gpus != [0, 6])))
    assert front.offer("illegal", np.array([1, 1])) == float("inf")
    for gpus in ((1, 8), (0, 6), (0, 4), (1, 0), (2, 3)):
        front.offer("test", np.array(gpus))
    assert [(p.moves, p.value) for p in front.points] == [(0, 5), (1, 4), (2, 1)]
    chosen = [front.choose(cost, most) for cost, most in ((4.5, None), (1, 1), (9, 0))]
    assert [point and point.moves for point in chosen] == [1, 1, 0]
    assert front.solution().value == 5


def test_a_search_ends_where_too_little_is_left() -> None:
    """Value 4 over a bound of 3.9: 2.5 % are left, and are no proof."""
    for enough, ends in ((0.0, False), (0.02, False), (0.03, True)):
        incumbent = Incumbent(pair().with_params(enough_gap=enough), Budget(60.0))
        assert not incumbent.ends()
        incumbent.offer("test", np.array([0, 4]))
        incumbent.prove(3.9, "by hand")
        assert incumbent.ends() == ends
        assert incumbent.solution().stop_reason == "searched"
