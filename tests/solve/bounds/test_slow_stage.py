"""The least pipeline time with one slow stage, against walking each place alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import placer
from placer.solve.bounds.network.limit import slow_pipelines_s
from placer.solve.problem.compiled import Problem


@pytest.mark.parametrize("pp", [1, 2, 8])
def test_the_cheapest_place_of_a_slow_stage(pp: int) -> None:
    """Each stage in turn waits longer for tp; the least of the pipeline times."""
    job = placer.read_job("quickstart")
    axes = replace(job.parallelism, tp=2, etp=2, pp=pp, dp=16 // (2 * pp), vp=1)
    job = replace(job, parallelism=axes, micro_batches=12)
    problem = Problem.of(placer.read_topology("node:4 gpu:4"), job, "time")
    step = problem.model.step(np.arange(16))
    usual = step.stage_times["tp"]
    slow = replace(usual, forward=usual.forward + 0.1, backward=usual.backward + 0.2)
    alone = []
    for stage in range(pp):
        forward, backward = usual.forward.copy(), usual.backward.copy()
        forward[0, stage] += 0.1
        backward[0, stage] += 0.2
        time = replace(usual, forward=forward, backward=backward)
        slowed = replace(step, stage_times={**step.stage_times, "tp": time})
        alone.append(slowed.pipeline_s(tuple(step.stage_times)))
    found = slow_pipelines_s(step, "tp", slow)
    assert found.tolist() == pytest.approx(alone, rel=1e-12)
    assert found.min() > step.pipeline_s(tuple(step.stage_times))
