"""Expert groups in parts that a program chooses."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.job.model import Compute
from placer.solve.bounds.certificate import lower_bound, prove_at_first
from placer.solve.construct.experts import chosen_parts
from placer.solve.construct.experts.chosen_parts import (
    chosen_fills,
    coarsely_chosen_parts,
)
from placer.solve.construct.experts.parts_program import Chosen, Question
from placer.solve.construct.units.in_parts import in_parts_fills
from placer.solve.construct.units.whole_first import whole_first_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.marks import slow
from tests.solve.construct.test_whole_first import job, machine

if TYPE_CHECKING:
    from placer.solve.construct.experts.replica_levels import Replicas
    from placer.solve.count.engine import Limits

# Fifteen hosts of 9 hold 15 of 16 groups of 8 whole, the last one in eight parts.
NINES = machine([9] * 15, [0] * 15)
SIXTEEN_GROUPS = replace(
    job(tp=1, ep=8, pp=4, dp=32, vp=2), compute=Compute(micro_batch_time=0.005)
)


def chosen(problem: Problem) -> list[np.ndarray]:
    incumbent = Incumbent(problem, Budget(60))
    incumbent.prove(lower_bound(problem, 1).value, "")
    fills = chosen_fills(problem, incumbent, Budget(60))
    return [gpu_of_rank for _, gpu_of_rank in fills]


def test_a_few_halves_beat_one_group_in_crumbs() -> None:
    """Neither as many whole groups as can be nor parts as even as can be are best."""
    problem = Problem.of(NINES, SIXTEEN_GROUPS)
    step = min(map(problem.goal.value, chosen(problem)))
    for others in (whole_first_fills(problem), in_parts_fills(problem)):
        assert step < 0.95 * min(problem.goal.value(gpus) for _, gpus in others)
    assert step < 1.03 * lower_bound(problem, 1).value


def test_the_first_programs_leave_walks_little() -> None:
    """They come near the bound before any walk, with the bound that is known then."""
    problem = Problem.of(NINES, SIXTEEN_GROUPS, "time")
    incumbent = Incumbent(problem, Budget(60))
    incumbent.offer_all(in_parts_fills(problem))
    prove_at_first(problem, incumbent)
    before = incumbent.value
    coarsely_chosen_parts(problem, incumbent, Budget(600))
    assert incumbent.value < 0.95 * before
    assert incumbent.is_within(problem.params.parts_gap)


def test_programs_that_are_too_large_are_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With another seed they are as large; what time is left is for others."""
    asked = []

    def graded(question: Question, _choices: Replicas, limits: Limits) -> Chosen:
        asked.append((question.size, limits.seed))
        return Chosen(None, is_proved=False, is_refused=True)

    monkeypatch.setattr(chosen_parts, "graded", graded)
    problem = Problem.of(NINES, SIXTEEN_GROUPS)
    incumbent = Incumbent(problem, Budget(60))
    incumbent.offer_all(in_parts_fills(problem))
    assert not list(chosen_fills(problem, incumbent, Budget(60)))
    assert len(asked) == len(set(asked)) > 0


def test_programs_that_did_not_end_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """From other seeds, as many as may be asked."""
    asked: list[tuple[int, int]] = []

    def graded(_question: Question, choices: Replicas, limits: Limits) -> Chosen:
        asked.append((limits.seed, len(choices.seconds)))
        return Chosen(None, is_proved=False)

    monkeypatch.setattr(chosen_parts, "graded", graded)
    problem = Problem.of(NINES, SIXTEEN_GROUPS, "time")
    problem = problem.with_params(chosen_programs=(2, 18))
    assert chosen(problem) == []
    assert len(asked) == problem.params.chosen_programs[True]
    first = [count for seed, count in asked if seed == problem.seed]
    second = [count for seed, count in asked if seed == problem.seed + 1]
    assert first == second != []


@pytest.mark.parametrize("seed", [0, *slow(range(1, 4))])
def test_every_rank_has_a_gpu(seed: int) -> None:
    """Any expert layout on any nodes: nobody lost, nobody twice."""
    rng = random.Random(f"chosen parts {seed}")
    nodes = rng.randint(16, 30)
    gpus = [rng.choice((8, 7, 6, 5, 4)) for _ in range(nodes)]
    topology = machine(gpus, sorted(rng.randrange(3) for _ in range(nodes)))
    tp, pp = rng.choice((1, 2)), rng.choice((1, 2, 4))
    ep, etp = rng.choice((4, 8)), rng.choice((1, tp))
    whole = ep * etp // tp if etp == 1 else ep
    dp = sum(gpus) * 9 // 10 // (pp * tp) // whole * whole
    sparse = job(tp=tp, ep=ep, etp=etp, pp=pp, dp=dp)
    problem = Problem.of(topology, sparse, "time")
    for gpu_of_rank in chosen(problem):
        assert len(np.unique(gpu_of_rank)) == sparse.world_size


def test_groups_that_fit_are_left_alone() -> None:
    """On hosts that hold every group whole there is nothing to choose."""
    problem = Problem.of(machine([8] * 16, [0] * 16), SIXTEEN_GROUPS)
    assert all(
        problem.goal.value(gpus) <= 1.01 * lower_bound(problem, 1).value
        for gpus in chosen(problem)
    )
