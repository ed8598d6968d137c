"""Work of a micro-batch: attention at its own rate, products by their size."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import TYPE_CHECKING

import pytest

from placer.cost.work import micro_batch_time
from placer.job.models import attention_flops, flops_per_sample
from placer.job.read import read_job
from placer.job.resize import resized
from placer.job.work import micro_batch_work, product_efficiency

if TYPE_CHECKING:
    from placer.job.model import Job


def llama(**compute: float) -> Job:
    job = read_job("llama3-405b-8k")
    return replace(job, compute=replace(job.compute, **compute))


def test_attention_takes_longer() -> None:
    """At half the rate each FLOP of attention counts twice; at the same rate, once."""
    job = llama(attention_rate=1.0)
    assert job.model is not None
    gpus = 8 * 16
    flops = flops_per_sample(job.model, 8192, causal=False) / gpus
    attention = attention_flops(job.model, 8192, causal=False) / gpus
    assert micro_batch_work(job) == pytest.approx(flops)
    slow = llama(attention_rate=0.5)
    assert micro_batch_work(slow) == pytest.approx(flops + attention)
    seconds = micro_batch_work(slow) / (slow.compute.tflops_per_gpu * 1e12)
    assert micro_batch_time(slow) == pytest.approx(seconds)


def test_a_measured_time_is_taken_as_it_is() -> None:
    """The rate of attention is in a measured time already."""
    measured = llama(micro_batch_time=0.5, tflops_per_gpu=0.0, attention_rate=0.5)
    assert micro_batch_time(measured) == 0.5


# GPT-3 175B, one sample of 2,048 tokens: scores of all heads are the smallest product.
@pytest.mark.parametrize(
    ("tp", "gflops", "efficiency"),
    [(1, 103.1, 0.9448), (4, 25.8, 0.9115), (8, 12.9, 0.8766), (128, 0.805, 0.5766)],
)
def test_small_products_are_less_efficient(
    tp: int, gflops: float, efficiency: float
) -> None:
    """On lines through 0.60 at 1, 0.90 at 16 and 0.95 at 128 GFLOP (Calculon)."""
    job = read_job("gpt3-175b-mlperf-v3.1")
    assert 2 * 2048 * 2048 * 12288 / tp == pytest.approx(gflops * 1e9, rel=2e-3)
    found = product_efficiency(job, tp=tp, cp=1)
    assert found == pytest.approx(efficiency, abs=2e-4)


def test_wide_models_lose_nothing() -> None:
    """Llama 405B at 8,192 tokens: products stay above 128 GFLOP up to tp 8."""
    assert product_efficiency(llama(), tp=8, cp=1) == 0.95


def test_rates_hold_at_the_sizes_of_the_job() -> None:
    """Other sizes change a rate and a time; the job's own, and back again, do not."""
    job = read_job("gpt3-175b-mlperf-v3.1")
    compute = replace(job.compute, micro_batch_time=0.0, tflops_per_gpu=500.0)
    by_rate = replace(job, compute=compute)
    for given in (job, by_rate):
        assert resized(given, tp=given.parallelism.tp).compute == given.compute
        wider = resized(given, tp=8)
        assert micro_batch_time(wider) > micro_batch_time(given) / 2
        back = resized(wider, tp=4)
        assert micro_batch_time(back) == pytest.approx(micro_batch_time(given))


def test_experts_of_few_tokens_use_a_gpu_badly() -> None:
    """Qwen3 235B by hand: 256 tokens an expert with ep 1, 8,192 with ep 32."""
    job = read_job("qwen3-235b-256")
    assert job.model
    visited = 94 * 8 * 3 * 4096 * 1536
    share = visited * 6 * 4096 / flops_per_sample(job.model, 4096, causal=False)

    def reached(ep: int) -> float:
        axes = replace(job.parallelism, ep=ep)
        return product_efficiency(replace(job, parallelism=axes), tp=1, cp=1)

    flops = 2 * 256 * 4096 * 1536
    alone = 0.60 + 0.30 * log(flops / 1e9) / log(16)
    many = 0.90 + 0.05 * log(32 * flops / 16e9) / log(8)
    dense = 0.95
    assert reached(1) == pytest.approx(1 / ((1 - share) / dense + share / alone))
    assert reached(32) == pytest.approx(1 / ((1 - share) / dense + share / many))
    assert reached(32) > 1.15 * reached(1)
