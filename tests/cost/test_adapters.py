"""What is reduced and gathered where adapters alone are trained."""

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.explain.score import score
from placer.job.adapters import Adapters
from placer.job.axes import Parallelism
from placer.job.models import total_parameters
from placer.job.parallel import DataParallel
from placer.placement.placement import Placement
from tests.cost.two_racks import JOB, two_racks

PLAIN = replace(JOB, parallelism=Parallelism(tp=2, dp=4))
ALL = 4 * (512 * (2 * 512 + 2 * 256) + 3 * 512 * 1024 + 2 * 512) + 2 * 1000 * 512


def sent(job):
    """Bytes of gradients and parameters that all ranks send in a step."""
    found = score(two_racks(), job, Placement(np.arange(8)))
    return sum(found["traffic_bytes"]["dp"].values())


@pytest.mark.parametrize(
    ("sharding", "reductions", "gathers", "frozen"),
    [("ddp", 2, 0, 0), ("zero1", 1, 1, 0), ("zero2", 4, 1, 0), ("zero3", 4, 8, 8)],
)
def test_bytes_by_hand(
    sharding: str, reductions: int, gathers: int, frozen: int
) -> None:
    """Gradients are those of adapters; only ZeRO-3 gathers weights that are frozen.

    Rank 8 on a width of 512 with 4 of 8 key-value heads. Four micro-batches, of two
    bytes each; every rank of four sends three quarters of its half, eight ranks in all.
    """
    sides = 2 * 1024 + 2 * (512 + 256) + 3 * (512 + 1024)
    few = 8 * 4 * sides
    job = replace(
        PLAIN, adapters=Adapters(rank=8), data_parallel=DataParallel(sharding)
    )
    expected = (reductions + gathers) * few + frozen * ALL
    assert sent(job) == pytest.approx(expected * 2 * 3 / 4 / 2 * 8)


@pytest.mark.parametrize("sharding", ["ddp", "zero1", "zero2"])
def test_all_parameters_send_what_full_training_does(sharding: str) -> None:
    """Adapters of as many parameters as the model reduce as many bytes, to 1e-4."""
    job = replace(PLAIN, data_parallel=DataParallel(sharding))
    everything = Adapters(parameters=total_parameters(job.model))
    assert sent(replace(job, adapters=everything)) == pytest.approx(sent(job), rel=1e-4)


def test_experts_without_adapters_are_gathered_and_not_reduced() -> None:
    """With ZeRO-3 experts that have no adapters are still gathered to be used."""
    model = replace(
        JOB.model, experts=4, top_k=2, expert_ffn=256, moe_layers=4, gated=True
    )
    job = replace(
        PLAIN,
        model=model,
        parallelism=Parallelism(tp=2, ep=2, dp=4, etp=1),
        data_parallel=DataParallel("zero3"),
        adapters=Adapters(rank=8, experts=False),
    )
    sizes = StepModel(two_racks(), job).volumes
    assert not sizes.expert_parameters(1, 1).any()
    expected = 4 * 4 * 3 * 512 * 256 / 2
    assert sizes.expert_parameters(1, 1, frozen=True).item() == expected
    assert score(two_racks(), job, Placement(np.arange(8)))["step_time_s"] > 0
