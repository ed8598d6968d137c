"""The memory that `tune` counts is that of formulas which are written down again."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from placer.cost.footprint.stages import footprint
from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.job.parallel import ContextParallel, ExpertParallel
from tests.degrees.cases import job
from tests.degrees.legal_by_hand import legal
from tests.degrees.memory_by_hand import ByHand

if TYPE_CHECKING:
    from placer.job.model import Job


def varied(seed: int) -> Job:
    """A small job: dense, or with experts or latent attention or both."""
    random = Random(f"memory {seed}")
    work = job(random)
    assert work.model
    shape = work.model
    if random.random() < 0.4:
        shape = replace(
            shape,
            kv_heads=shape.heads,
            q_lora_rank=random.choice([0, 192]),
            kv_lora_rank=128,
            qk_head_dim=64,
            rope_head_dim=32,
            v_head_dim=64,
            mtp_layers=random.choice([0, 1]),
        )
    if shape.experts:
        dense = random.choice([0, 1])
        shape = replace(
            shape,
            shared_experts=random.choice([0, 1]),
            moe_layers=shape.layers - dense,
        )
    return replace(
        work,
        model=shape,
        context_parallel=ContextParallel(random.choice(["p2p", "all_gather", "a2a"])),
        expert_parallel=ExpertParallel(random.choice([1.0, 1.3])),
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("seed", range(6))
def test_memory_is_what_published_formulas_say(framework: str, seed: int) -> None:
    """Of any legal choice: both count the same bytes."""
    work = in_framework(varied(seed), framework)
    choices = list(legal(framework, work, 16, 16))
    for choice in Random(seed).sample(choices, min(40, len(choices))):
        needs = footprint(choice.applied(work))
        assert needs
        expected = ByHand(work, choice, framework).most()
        assert needs.total == pytest.approx(expected, rel=1e-9), choice
