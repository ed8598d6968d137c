"""What each framework accepts, held against plain loops."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

import placer
from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.degrees.space import Legal, Space
from tests.degrees.cases import job, machine
from tests.degrees.legal_by_hand import legal

if TYPE_CHECKING:
    from placer.job.model import Job

GPUS = BATCH = 16


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_what_a_framework_accepts(name: str, seed: int) -> None:
    """No legal choice is left out, none that it refuses is there, each is counted."""
    work = in_framework(job(Random(seed)), name)
    assert work.model is not None
    space = Space((GPUS,), BATCH, framework=name)
    accepted = Legal(work, work.model, space)
    shapes = list(accepted.shapes())
    found = [choice for shape in shapes for choice in accepted.variants(shape)]
    assert sum(map(accepted.count, shapes)) == len(found)
    assert set(found) == set(legal(name, work, GPUS, BATCH))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_chunks_that_are_asked_for_need_stages(name: str) -> None:
    """None without a pipeline, and none of DeepSpeed's, which does not interleave."""
    work = in_framework(job(Random(0)), name)
    assert work.model is not None
    for pp in (1, 2):
        space = Space((GPUS,), BATCH, framework=name, vp=(2,), pp=(pp,))
        found = Legal(work, work.model, space)
        assert bool([*found.shapes()]) == (pp == 2 and name != "deepspeed")
        is_named = any("interleaving" in reason for reason in found.refused)
        assert is_named or pp == 2


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_best_choice_of_each_framework(name: str) -> None:
    """It is one that the framework accepts; flags are there where they are known."""
    work = replace(job(Random(3)), micro_batches=8)
    few = {"tp": [1, 2], "cp": [1], "pp": [1, 2], "micro_batch": [1]}
    found = placer.tune(machine(), work, gpus=[GPUS], framework=name, top=3, **few)
    assert found.is_proved
    assert {row["sharding"] for row in found.rows} <= set(FRAMEWORKS[name].shardings)
    assert bool(found.rows[0]["flags"]) == (name != "jax")


def test_hsdp_of_megatron_divides_replicas_of_experts_too() -> None:
    """Its instances divide dp x cp and edp (``parallel_state.py`` asserts both)."""
    work = next(one for one in map(job, map(Random, range(99))) if has_experts(one))
    assert work.model is not None
    space = Space((GPUS,), BATCH, sharding=("hsdp",), tp=(1,), cp=(1,), ep=(4,))
    accepted = Legal(work, work.model, space)
    found = {c.shard_size for s in accepted.shapes() for c in accepted.variants(s)}
    assert found == {4, 8}  # 4 and 2 copies of the 4 replicas of an expert


def has_experts(work: Job) -> bool:
    """Whether a job has four experts or more, in a power of two."""
    return work.model is not None and work.model.experts % 4 == 0 < work.model.experts


def test_deepspeed_has_ulysses_alone() -> None:
    """Whatever the job says, its context parallelism exchanges heads for tokens."""
    changed = in_framework(job(Random(0)), "deepspeed")
    assert changed.context_parallel.communication == "a2a"
    assert not changed.overlap.cp
    same = job(Random(0))
    assert in_framework(same, "megatron") == same
