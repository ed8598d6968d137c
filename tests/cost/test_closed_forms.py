"""Bytes that a step sends, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.explain.score import score
from placer.job.adapters import Adapters
from placer.job.axes import Parallelism
from placer.job.model import Collectives, Compute, ExpertParallel, Job
from placer.job.models import Model
from placer.job.parallel import (
    DataParallel,
    Overlap,
    TensorParallel,
)
from placer.placement.placement import Placement
from tests.cost.machines import racks
from tests.cost.two_racks import JOB, two_racks

MODEL = Model("toy", layers=4, hidden=512, ffn=1024, heads=8, kv_heads=4, vocab=1000)
EXPERTS = replace(MODEL, experts=8, top_k=4, expert_ffn=256, moe_layers=4)


def job(axes, **changes):
    """A job of one micro-batch of a second, with nothing hidden."""
    usual = Job(
        "toy",
        axes,
        MODEL,
        sequence=2048,
        compute=Compute(micro_batch_time=1.0),
        overlap=Overlap(False, False, False, False),
        data_parallel=DataParallel(overlap_reduce=False, overlap_gather=False),
        collectives=Collectives("ring"),
    )
    return replace(usual, **changes)


def step(found, gpus):
    return StepModel(racks(4), found).step(np.array(gpus))


TP, DP, EP = Parallelism(tp=4), Parallelism(dp=4), Parallelism(dp=4, ep=4)
WHOLE = {"tensor_parallel": TensorParallel(sequence=False)}


@pytest.mark.parametrize(
    ("axis", "axes", "usual", "change", "share"),
    [
        # Backward repeats gathers with sequence parallelism alone.
        ("tp", TP, {}, WHOLE, 8 / 10),
        ("tp", TP, {}, {"host_time": 1.0}, 1),
        # The busiest rank sets the time, not the bytes of all.
        ("ep", EP, {"model": EXPERTS},
         {"expert_parallel": ExpertParallel(imbalance=1.5)}, 1),
    ],
)  # fmt: skip
def test_bytes_sent(
    axis,
    axes,
    usual,
    change,
    share,
):
    """How many more or fewer bytes of an axis a change of the job sends."""
    before, after = (
        step(job(axes, **usual | more), [0, 1, 2, 3]).traffic()[axis].bytes_by_tier
        for more in ({}, change)
    )
    assert after == pytest.approx(before * share)


ALL = 4 * (512 * (2 * 512 + 2 * 256) + 3 * 512 * 1024 + 2 * 512) + 2 * 1000 * 512


@pytest.mark.parametrize(
    ("sharding", "reductions", "gathers", "frozen"),
    [("ddp", 2, 0, 0), ("zero1", 1, 1, 0), ("zero2", 4, 1, 0), ("zero3", 4, 8, 8)],
)
def test_bytes_of_adapters(sharding, reductions, gathers, frozen):
    """Gradients are those of adapters; only ZeRO-3 gathers weights that are frozen.

    Rank 8 on a width of 512 with 4 of 8 key-value heads. Four micro-batches, of two
    bytes each; every rank of four sends three quarters of its half, eight ranks in all.
    """
    few = 8 * 4 * (2 * 1024 + 2 * (512 + 256) + 3 * (512 + 1024))
    found = replace(
        JOB,
        parallelism=Parallelism(tp=2, dp=4),
        adapters=Adapters(rank=8),
        data_parallel=DataParallel(sharding),
    )
    result = score(two_racks(), found, Placement(np.arange(8)))
    expected = (reductions + gathers) * few + frozen * ALL
    sent = sum(result["traffic_bytes"]["dp"].values())
    assert sent == pytest.approx(expected * 2 * 3 / 4 / 2 * 8)
