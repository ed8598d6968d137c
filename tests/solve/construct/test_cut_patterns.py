"""What leaves may hold, against all combinations."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from placer.solve.construct.stages.cut_patterns import Run, leaf_patterns, runs_of
from placer.solve.problem.params import Params


def test_runs_between_cuts() -> None:
    """Cuts after stages 1 and 4 of six leave 2-4, and 5, 0, 1 round the ring."""
    cuts = np.array([False, True, False, False, True, False])
    assert set(runs_of(cuts)) == {Run(5, 3), Run(2, 3)}
    assert runs_of(np.zeros(6, dtype=bool)) == (Run(0, 6),)


def allowed(
    runs: list[Run], counts: tuple[int, ...], least: np.ndarray, stages: int, room: int
) -> bool:
    there = [0] * stages
    for run, count in zip(runs, counts, strict=True):
        for place in range(run.start, run.start + run.length):
            there[place % stages] += count
    held = [s for s in range(stages) if there[s]]
    return (
        0 < sum(there) <= room
        and sum(count > 0 for count in counts) <= 3
        and all(there[s] >= least[s] for s in held)
    )


@pytest.mark.parametrize("seed", range(40))
def test_all_combinations(seed: int) -> None:
    """Exactly those of up to three kinds in which every stage is there often enough."""
    rng = random.Random(seed)
    stages, room = rng.randint(2, 4), rng.randint(2, 6)
    every = [Run(s, n) for s in range(stages) for n in range(1, stages)]
    runs = sorted(rng.sample(every, min(4, len(every))))
    least = np.array([rng.choice((1, 1, 2)) for _ in range(stages)])
    counts = product(*(range(room // run.length + 1) for run in runs))
    wanted = {c for c in counts if allowed(runs, c, least, stages, room)}
    found = [tuple(row) for row in leaf_patterns(runs, least, room, Params()).tolist()]
    assert len(found) == len(set(found))
    assert set(found) == wanted
