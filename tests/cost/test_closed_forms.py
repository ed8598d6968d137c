"""Bytes and passes of a step, and what hides behind work, worked out by hand."""

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
LAYER = 2 * 512**2 + 2 * 512 * 4 * 64 + 3 * 512 * 1024 + 2 * 512
VOCABULARY = 1000 * 512
HELD = 4 * LAYER + 2 * VOCABULARY  # parameters of the whole model


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
    ("sharding", "more", "passes"),
    [
        ("ddp", {}, 2),
        ("zero1", {}, 2),
        ("zero1", {"sync_every": 4}, 2 / 4),
        ("zero2", {}, 6),
        ("zero2", {"reduce_once": True}, 2),
        ("zero3", {}, 15),
        ("zero3", {"keep_parameters": True}, 2),
    ],
)
def test_passes_of_gradients_and_gathers(sharding, more, passes):
    """Of five micro-batches nothing hides any: rings of four in a rack, by hand."""
    usual = DataParallel(sharding, overlap_reduce=False, overlap_gather=False)
    found = job(DP, data_parallel=replace(usual, **more), micro_batches=5)
    one = 3 / 4 * 2 * HELD / 900e9 + 3 * 0.5e-6
    seen = step(found, [0, 1, 2, 3]).exposed_s()["dp"]
    assert seen == pytest.approx(passes * one)


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


def test_what_is_hidden_behind_a_chunk():
    """A gather longer than a chunk's forward is seen in each of five micro-batches.

    Forward 1 ms, gather 3 + reduction 3 behind a backward of 2 ms: 4 x 4 + 4 x 2 in
    between, and 0.12 of the 1 and 2 that are hidden; one bucket before the first
    forward; after the last backward all 6 of its gather and reduction, for a single
    bucket hides nothing.
    """
    rate = 0.75 * 2 * HELD / 3e-3
    tiers = tuple(replace(t, bandwidth=rate, latency=0.0) for t in racks(4).tiers)
    found = job(
        DP,
        data_parallel=DataParallel("zero3", bucket_parameters=10**9),
        micro_batches=5,
        compute=Compute(micro_batch_time=3e-3),
    )
    model = StepModel(replace(racks(4), tiers=tiers), found)
    seen = model.step(np.arange(4)).exposed_s()["dp"]
    assert seen == pytest.approx(4 * 4.24e-3 + 4 * 2.12e-3 + 3e-3 + 6e-3)


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
