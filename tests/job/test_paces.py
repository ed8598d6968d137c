"""Stages that differ: what each takes, and what a pipeline of them takes at least."""

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.schedule import Stages, pipeline_time
from placer.cost.work import on_gpu
from placer.job.axes import Parallelism
from placer.job.least_pipeline import ChunkTimes, least_pipeline, least_with_slow_rank
from placer.job.memory import Memory
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.topology.gpu_kinds import Gpu
from tests.marks import slow

MODEL = Model(
    "m", layers=12, hidden=64, ffn=3456, heads=1, kv_heads=1, vocab=73728, gated=False
)


def job(pp):
    """A job of so many stages."""
    axes, compute = Parallelism(pp=pp), Compute(micro_batch_time=1.0)
    return Job("j", axes, MODEL, 1, micro_batches=2 * pp, compute=compute)


def walked(times, micro_batches, chunks):
    """The pipeline walked, without messages."""
    forward, backward = (tuple(row) for row in times.full.tolist())
    ends = (*times.first.tolist(), *times.last.tolist())
    stages = Stages(forward, backward, (0.0,) * len(forward), ends)
    return pipeline_time(stages, micro_batches, chunks, True)


def drawn(draw, p):
    """Times of chunks: any, of few values, even, or nearly; ends that differ."""
    full = np.array([[1.0], [2.0]]) * np.ones((2, p))
    style = int(draw.integers(5))
    if style == 0:
        full = draw.uniform(0, 3, (2, p))
    elif style == 1:
        full *= draw.choice([1.0, 1.25, 0.5], p)
    elif style == 2:
        full = draw.choice([0.0, 1.0, 10.0], (2, p))
    elif style == 3:
        full = full * draw.uniform(0.9, 1.1, p)
    first, last = full[:, 0] * draw.uniform(0, 3), full[:, -1] * draw.uniform(0, 3)
    return ChunkTimes(full, *((first, last) if draw.random() < 0.7 else full[:, :2].T))


@pytest.mark.parametrize(
    ("gemm", "experts", "share"),
    [("bf16", 0, 0.0), ("fp8", 0, 0.78), ("bf16", 4, 0.78), ("nvfp4", 4, 0.78)],
)
def test_outputs_multiply_in_bf16(gemm, experts, share):
    """At 0.78 of the GPU's peak, unless dense layers multiply in BF16 as they do."""
    mixture = replace(MODEL, experts=experts, moe_layers=12 if experts else 0)
    given = replace(job(2), model=mixture, memory=Memory(gemm=gemm))
    gpu = Gpu(peak={"bf16": 1e15, "fp8": 2e15})
    assert on_gpu(given, gpu).compute.output_tflops == pytest.approx(1e3 * share)
    said = replace(given, compute=replace(given.compute, output_tflops=500.0))
    assert on_gpu(said, gpu).compute.output_tflops == 500.0


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 20))])
def test_no_walk_is_shorter(seed):
    """Any times of up to seven stages and five chunks, any number of micro-batches.

    Nor where one rank takes longer for each of its chunks, whichever it is.
    """
    draw = np.random.default_rng([seed, 1])
    for _ in range(40):
        p, v = int(draw.integers(2, 8)), int(draw.integers(1, 6))
        m, times = int(draw.integers(1, 5 * p + 3)), drawn(draw, p)
        assert least_pipeline(times, m, v) <= walked(times, m, v) * (1 + 1e-9) + 1e-12
        by = draw.uniform(0, 3, 2)
        slow = ChunkTimes(times.full + by[:, None], times.first + by, times.last + by)
        found = least_with_slow_rank(times, slow, m, v)
        for rank in range(p):
            full = times.full.copy()
            full[:, rank] = slow.full[:, rank]
            first = slow.first if rank == 0 else times.first
            last = slow.last if rank == p - 1 else times.last
            step = walked(ChunkTimes(full, first, last), m, v)
            assert found <= step * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("p", [4, 8, 16])
@pytest.mark.parametrize("v", [1, 2, 4])
@pytest.mark.parametrize("counted", [0, 1])
def test_pipelines_that_are_run(p, v, counted):
    """Even chunks but for an output layer of any size: nothing is lost."""
    for groups in (1, 2, 4):
        for head in (0.0, 0.1, 0.6, 1.9):
            layer = np.array([1.0, 2.0])
            full = np.outer(4 * layer, np.ones(p))
            ends = (4 - counted) * layer, (4 - counted + head) * layer
            times = ChunkTimes(full, *ends)
            found = least_pipeline(times, groups * p, v)
            assert found == pytest.approx(walked(times, groups * p, v), rel=1e-9)
