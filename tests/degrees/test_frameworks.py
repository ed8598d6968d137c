"""What each framework accepts, held against plain loops."""

from __future__ import annotations

from random import Random

import pytest

from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.degrees.space import Legal, Space
from tests.degrees.cases import job
from tests.degrees.legal_by_hand import legal

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


def test_deepspeed_has_ulysses_alone() -> None:
    """Whatever the job says, its context parallelism exchanges heads for tokens."""
    changed = in_framework(job(Random(0)), "deepspeed")
    assert changed.context_parallel.communication == "a2a"
    assert not changed.overlap.cp
    same = job(Random(0))
    assert in_framework(same, "megatron") == same
