"""A sweep and `tune` accept the same degrees, and price them alike."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

import placer
from placer.base.errors import InfeasibleError, InputError
from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.job.read import job_digest
from placer.sweep.inputs import job_at
from tests.degrees.cases import job, machine
from tests.degrees.legal_by_hand import legal
from tests.sweep.cases import job as small_job

if TYPE_CHECKING:
    from pathlib import Path

GPUS = BATCH = 16


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_tune_refuses_is_no_point(framework: str, seed: int) -> None:
    """A point has a placement where `tune` has one of these sizes, as fast."""
    random = Random(f"alike {seed}")
    work = in_framework(job(random), framework)
    usual = [
        choice
        for choice in legal(framework, work, GPUS, BATCH)
        if choice.etp == choice.tp and not choice.embedding + choice.loss
    ]
    own = random.choice(usual)
    work = own.applied(work)
    work = replace(work, sha256=job_digest(work))
    experts = {"ep": [random.choice([1, 2, 4])]} if work.model.experts else {}
    tp = random.choice([1, 2, 4])
    sizes = {"tp": [tp], "pp": [random.choice([1, 2, 4])], **experts}
    sizes |= {"vp": [random.choice([1, 2, 3])], "gpus": [GPUS], "cp": [1]}
    given = {"framework": framework, **sizes}
    (row,) = placer.sweep(machine(), work, global_batch=[BATCH], **given).rows
    only = {"sharding": [own.sharding], "recompute": [own.recompute]}
    only |= {"micro_batch": [own.micro_batch], "etp": [tp] if experts else [1]}
    try:
        found = placer.tune(
            machine(), work, global_batch=BATCH, memory=1e15, **given, **only
        )
    except InfeasibleError:
        assert "error" in row
        return
    same = [r for r in found.rows if not r["embedding"] + r["loss"]]
    steps = [r["step_time_s"] for r in same if r["shard_size"] == own.shard_size]
    assert row["step_time_s"] == pytest.approx(min(steps), rel=1e-9)


def test_what_the_job_breaks_itself_is_not_asked(tmp_path: Path) -> None:
    """Eight layers on three stages are refused, but not to a job that has them."""
    even = small_job(tmp_path)
    with pytest.raises(InputError, match="megatron refuses layers"):
        job_at(even, {"pp": 3})
    assert job_at(even, {"pp": 3}, "torchtitan").parallelism.pp == 3
    uneven = job_at(even, {"pp": 3}, "torchtitan")
    assert job_at(uneven, {"dp": 4}).parallelism.dp == 4
