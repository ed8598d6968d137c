"""No row of `tune` needs more memory than a GPU has, by formulas written down again.

``python -m tests.degrees.test_what_is_suggested_fits`` asks every case.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import NamedTuple

import pytest

import placer
from placer.base.errors import InfeasibleError
from placer.cost.footprint.stages import footprint
from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import read_model
from placer.job.parallel import ContextParallel, ExpertParallel, Overlap
from tests.degrees.cases import GB, job
from tests.degrees.legal_by_hand import legal
from tests.degrees.memory_by_hand import ByHand


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


class Asked(NamedTuple):
    """A model, GPUs, and a batch of samples of so many tokens."""

    model: str
    gpus: int
    batch: int
    sequence: int


MODELS = (
    Asked("quickstart", 64, 128, 8192),
    Asked("quickstart", 64, 64, 131_072),
    Asked("llama3.1-405b", 256, 256, 8192),
    Asked("gpt3-175b", 128, 128, 2048),
    Asked("deepseek-v3", 256, 512, 4096),
    Asked("qwen3-235b-a22b", 128, 256, 4096),
    Asked("gpt-oss-120b", 64, 128, 8192),
    Asked("llama4-maverick", 256, 256, 8192),
)
MACHINES = {"dgx-h100-32x8": 80.0, "gb200-nvl72-8x72": 186.0}
CASES = [
    (asked, machine, framework)
    for asked in MODELS
    for machine in MACHINES
    for framework in FRAMEWORKS
]


def job_of(asked: Asked) -> Job:
    """The model in BF16; that of the first job of the documentation, or a preset."""
    small = placer.read_job("quickstart")
    return Job(
        asked.model,
        Parallelism(),
        model=small.model if asked.model == "quickstart" else read_model(asked.model),
        sequence=asked.sequence,
        micro_batches=asked.batch,
        overlap=Overlap(),
        compute=Compute(tflops_per_gpu=400.0),
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", [CASES[number] for number in (0, 21, 42, 55)])
def test_none_of_the_first_fifty_exceeds_memory(case: tuple[Asked, str, str]) -> None:
    """Fifty rows of dense and MoE models on both machines, of every framework."""
    assert rows_that_fit(*case) in (0, 50)


def rows_that_fit(asked: Asked, machine: str, framework: str) -> int:
    """How many rows there are, each checked; none where nothing can fit."""
    work, memory = job_of(asked), MACHINES[machine] * GB
    wanted = {"framework": framework, "gpus": [asked.gpus], "memory": memory}
    try:
        found = placer.tune(machine, work, top=50, **wanted)
    except InfeasibleError:
        return 0
    for row in found.found.rows:
        needed = ByHand(work, row.choice, framework).most()
        assert needed <= memory, row
        assert row.memory == pytest.approx(needed, rel=1e-9)
    return len(found.rows)


if __name__ == "__main__":
    for each in CASES:
        print(*each, rows_that_fit(*each), flush=True)
