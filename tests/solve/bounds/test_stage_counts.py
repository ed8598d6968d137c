"""Whether domains can hold stages is told as listing all counts tells it."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer.document import document_of
from placer.job.read import decode_job
from placer.solve.bounds.gradients.crossings import Need
from placer.solve.bounds.gradients.stage_counts import may_hold
from placer.solve.problem.params import Params
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve


def is_listed(rooms: list[int], size: int, need: Need) -> bool:
    """Whether some counts of each stage in each domain come to all stages."""
    stages = len(need.ranks)
    reached = {(0,) * stages}
    for room in rooms:
        held = [
            counts
            for counts in product(
                *([0, *range(least, room + 1)] for least in need.ranks.tolist())
            )
            if sum(counts) <= room
            and all(
                np.count_nonzero(counts) <= need.longest[stage]
                for stage in np.flatnonzero(counts)
            )
        ]
        reached = {
            tuple(map(sum, zip(before, counts, strict=True)))
            for before in reached
            for counts in held
        }
    return (size,) * stages in reached


@pytest.mark.parametrize("seed", range(40))
def test_as_listed(seed: int) -> None:
    """Domains of any rooms, some of which only waste, and parts of several ranks."""
    rng = random.Random(seed)
    stages, grain = rng.choice((1, 2, 2, 3)), rng.choice((1, 1, 2, 3))
    rooms = [rng.randint(1, 6) for _ in range(rng.randint(2, 4))]
    size = max(1, sum(rooms) // stages - rng.choice((0, 0, 1)))
    need = Need(
        np.array([rng.randint(1, 4) for _ in range(stages)]),
        np.array([rng.choice((1, stages, stages)) for _ in range(stages)]),
        max(rooms),
    )
    ranks = need._replace(ranks=need.ranks * grain)
    wasted = np.array([room * grain + rng.randrange(grain) for room in rooms])
    found = may_hold(wasted, size * grain, grain, ranks, Params())
    assert found == (size * stages <= sum(rooms) and is_listed(rooms, size, need))


def test_no_claim_about_large_programs() -> None:
    """What is too large to be looked at may hold all."""
    need = Need(np.array([5, 5]), np.array([2, 2]), 9)
    rooms = np.array([9, 8, 9, 2])
    assert not may_hold(rooms, 13, 1, need, Params())
    assert may_hold(rooms, 13, 1, need, replace(Params(), stage_counts=5))


@pytest.mark.parametrize(
    ("racks", "stages", "replicas"),
    [((9, 8, 9, 2), 2, 14), ((9, 8, 9, 2), 2, 13), ((5, 4, 5), 2, 7)],
)
def test_bound_meets_the_placement_on_uneven_racks(
    racks: tuple[int, ...], stages: int, replicas: int
) -> None:
    """Two stages on racks that hold neither whole: only latency is left over."""
    tiers = [
        Tier("rack", 900e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("cluster", 50e9, 5e-6, False, 1.0, 1.0, 8.0),
    ]
    content = {
        "format": "placer/job",
        "version": 1,
        "name": "uneven",
        "parallelism": {"tp": 1, "pp": stages, "dp": replicas},
        "model": "llama3.1-405b",
        "sequence": 8192,
        "micro_batches": 4,
        "compute": {"micro_batch_time": "100ms"},
        "launcher": {"ranks": "free"},
    }
    job = decode_job(document_of(content, "job"))
    found = solve(machine_of(list(racks), [[0] * len(racks)], tiers), job)
    assert found.lower_bound <= found.value * (1 + 1e-9)
    assert found.lower_bound == pytest.approx(found.value, rel=1e-5)
