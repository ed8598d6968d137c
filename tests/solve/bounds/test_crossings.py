"""Cuts of pipelines: how few there may be, and what they cost at the least."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.solve.bounds import nics
from placer.solve.bounds.case import Case
from placer.solve.bounds.nics import fewest_runs, lane_seconds
from placer.solve.problem.colocation import colocation_of
from tests.solve.bounds.test_nics import model_on


def runs(cuts: tuple[bool, ...]) -> list[list[int]]:
    """Stages of every run of a closed ring."""
    stages = len(cuts)
    ends = [s for s in range(stages) if cuts[s]]
    if not ends:
        return [list(range(stages))]
    return [
        [s % stages for s in range(before + 1, end + 1)]
        for before, end in zip([ends[-1] - stages, *ends[:-1]], ends, strict=True)
    ]


def test_four_stages_of_two_ranks() -> None:
    """Rooms of 8, 4 and 3 ranks need 0, 2 and 4 runs; stages of 2 never fit 1."""
    for room, fewest in ((8, 0), (4, 2), (3, 4), (1, 5)):
        assert fewest_runs(np.array([2, 2, 2, 2]), room) == fewest


@pytest.mark.parametrize("seed", range(40))
def test_runs_are_as_few_as_in_the_best_of_all_sets_of_cuts(seed: int) -> None:
    rng = random.Random(seed)
    stages = rng.randint(2, 6)
    ranks = np.array([rng.choice((1, 1, 2, 3)) for _ in range(stages)])
    room = rng.randint(2, 6)
    numbers = [
        sum(cuts)
        for cuts in product((False, True), repeat=stages)
        if all(ranks[run].sum() <= room for run in runs(cuts))
    ]
    assert fewest_runs(ranks, room) == min(numbers, default=stages + 1)


@pytest.mark.parametrize("chunks", [1, 2])
def test_lanes_with_so_many_runs_take_no_less(
    chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every set of cuts is timed; where few are, the bound is lower, never higher."""
    model = model_on([2] * 4, 1.0, stages=4)
    axes = replace(model.job.parallelism, vp=chunks)
    model = StepModel(model.topology, replace(model.job, parallelism=axes))
    step = Case.of(model, colocation_of(model.topology, model.job, 1)).step
    hops, best = step.stage_times["pp"], np.full(6, np.inf)
    for cuts in product((False, True), repeat=4):
        if chunks == 1 and not cuts[-1] and any(cuts):
            continue  # a chain ends a run at its last stage
        pays = np.array(cuts) & (np.arange(4) < 3 + (chunks > 1))
        hop = np.where(pays, 3e-3, 0.0)
        slow = replace(hops, forward=np.maximum(hops.forward, hop))
        seconds = replace(step, stage_times={**step.stage_times, "pp": slow})
        best[: sum(cuts) + 1] = np.minimum(
            best[: sum(cuts) + 1], seconds.pipeline_s(tuple(step.stage_times))
        )
    known = lane_seconds(step, 3e-3)
    some = np.arange(6) != 1  # no lane has a single run
    assert known[some] == pytest.approx(best[some])
    monkeypatch.setattr(nics, "MOST_SETS", 3)
    assert (lane_seconds(step, 3e-3) <= known).all()
