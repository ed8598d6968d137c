"""Waves of tiles, and logits that every rank has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model, attention_flops
from placer.job.pace import logit_seconds, share_of
from placer.job.parallel import TensorParallel
from placer.job.work import product_efficiency, sample_work

A100 = Compute(
    tflops_per_gpu=150.0,
    memory_bandwidth=1.7e12,
    multiprocessors=108,
    peak_tflops=312.0,
)
BLOOM = Model("bloom", 72, 14336, 57344, 64, 64, 250_880, gated=False)


def job(size: int = 1, tp: int = 8, compute: Compute = A100, **other: object) -> Job:
    """BLOOM's layers, 2,048 tokens a sample."""
    axes = Parallelism(tp=tp)
    made = Job("j", axes, model=BLOOM, sequence=2048, micro_batch=size, compute=compute)
    return replace(made, **other)  # type: ignore[arg-type]


def share(of: Job) -> float:
    return product_efficiency(of, tp=of.parallelism.tp, cp=1)


def by_hand(tokens: int, tp: int) -> float:
    """Terms that all tiles have room for, in those of the products."""
    h, useful, taken = 14336, 0, 0.0
    for a, b in ((h, 3 * h // tp), (h // tp, h), (h, 4 * h // tp), (4 * h // tp, h)):
        for m, n, k in ((tokens, b, a), (tokens, a, b), (a, b, tokens)):
            # All of these are multiples of 256.
            waves = -(-(m // 256 * n // 128) // 108)
            useful += m * n * k
            taken += waves * 108 * 256 * 128 * (k + 312e12 / 1.7e12)
    return taken / useful


@pytest.mark.parametrize(("size", "tp"), [(1, 8), (2, 8), (4, 8), (8, 8), (1, 1)])
def test_products_fill_waves(size: int, tp: int) -> None:
    """As worked out beside it; attention proper has a rate of its own."""
    found = job(size, tp)
    rest = attention_flops(BLOOM, 2048, causal=False) / 0.83 / sample_work(found)
    longer = (1 - rest) * by_hand(2048 * size, tp) + rest
    assert share(found) == pytest.approx(1 / longer)


def test_gathered_logits_are_read_by_every_rank() -> None:
    """36 bytes of each on the last stage, whatever tp is."""
    for tp in (1, 8):
        gathered = job(2, tp, tensor_parallel=TensorParallel(loss="gathered"))
        seconds = 36 * 2 * 2048 * 250_880 / 1.7e12
        assert logit_seconds(gathered, BLOOM) == pytest.approx(seconds)
        assert share_of(gathered, BLOOM).end_s == pytest.approx(seconds)
        assert logit_seconds(job(2, tp), BLOOM) == 0.0
