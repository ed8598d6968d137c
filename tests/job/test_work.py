"""Work of a micro-batch: products by size and in waves, and what no product takes."""

from dataclasses import replace
from math import log

import pytest

from placer.base.errors import InputError
from placer.documents import parse_document
from placer.job.axes import Parallelism
from placer.job.beside import beside_seconds
from placer.job.model import Compute, Job
from placer.job.models import Model, attention_flops, flops_per_sample
from placer.job.pace import compute_at, logit_seconds, rates, share_of
from placer.job.parallel import EndStages, TensorParallel
from placer.job.read import decode_job, read_job
from placer.job.resize import resized
from placer.job.work import micro_batch_time, product_efficiency, sample_work
from tests.texts import table


def llama(**compute):
    job = read_job("llama3-405b-8k")
    return replace(job, compute=replace(job.compute, **compute))


# GPT-3 175B, one sample of 2,048 tokens: queries, keys and values have 3 h^2, outputs
# h^2, up and down 4 h^2 each.
@pytest.mark.parametrize(*table("job/work.yaml", "small_products_are_less_efficient"))
def test_small_products_are_less_efficient(tp, size, least, efficiency):
    """On lines through 0.60 at 1, 0.90 at 16 and 0.95 at 128 GFLOP of an H100."""
    axes = Parallelism(tp=tp)
    job = replace(read_job("gpt3-175b-mlperf-v3.1"), micro_batch=size, parallelism=axes)
    flops = [2 * 2048 * size * part * 12288**2 / tp for part in (3, 1, 4, 4)]
    assert flops[1] == pytest.approx(least * 1e9, rel=2e-3)
    by_hand = sum(flops) / sum(one / line(one) for one in flops)
    found = product_efficiency(job)
    assert found == pytest.approx(by_hand)
    assert found == pytest.approx(efficiency, abs=2e-4)


def line(flops):
    """Efficiency between 1, 16 and 128 GFLOP."""
    if flops >= 128e9:
        return 0.95
    if flops >= 16e9:
        return 0.90 + 0.05 * log(flops / 16e9) / log(8)
    return 0.60 + 0.30 * log(flops / 1e9) / log(16)


def cut(stages, chunks, embedding, loss):
    """Llama 405B, all FLOPs at one rate, in so many stages."""
    job = llama(attention_rate=1.0)
    axes = replace(job.parallelism, pp=stages, vp=chunks)
    return replace(job, parallelism=axes, stages=EndStages(embedding, loss))


def in_layers(job):
    """Work of the slowest stage, when that of one stage of all is 126.608."""
    whole = cut(1, 1, 0, 0)
    longer = micro_batch_time(replace(job, compute=compute_at(whole, job)))
    return 126.608 * longer / micro_batch_time(whole)


# The output layer is 0.608 of a layer: 2.10e9 parameters' FLOPs of 3.19e9 and scores.
@pytest.mark.parametrize(*table("job/work.yaml", "the_slowest_stage_sets_the_pace"))
def test_the_slowest_stage_sets_the_pace(stages, chunks, ends, slowest):
    """By hand: the work of the slowest stage, in that of a layer."""
    job = cut(stages, chunks, *ends)
    assert job.model is not None
    sample = flops_per_sample(job.model, 8192)
    head = 6 * 8192 * 128_256 * 16_384
    assert head / ((sample - head) / 126) == pytest.approx(0.608, abs=1e-3)
    assert in_layers(job) == pytest.approx(slowest, rel=1e-4)


def test_times_at_other_stages_follow_the_slowest():
    """Two stages take longer than half of one; back again nothing has changed."""
    one = cut(1, 1, 0, 0)
    two = resized(one, pp=2)
    time = micro_batch_time(one)
    assert micro_batch_time(two) == pytest.approx(
        time / 2 * 127.216 / 126.608, rel=1e-4
    )
    assert micro_batch_time(resized(two, pp=1)) == pytest.approx(time)
    assert resized(two, micro_batches=64).compute == two.compute


A100 = Compute(
    tflops_per_gpu=150.0,
    memory_bandwidth=1.7e12,
    multiprocessors=108,
    peak_tflops=312.0,
)
BLOOM = Model("bloom", 72, 14336, 57344, 64, 64, 250_880, gated=False)


def bloom(size=1, tp=8, compute=A100, **other):
    """BLOOM's layers, 2,048 tokens a sample."""
    axes = Parallelism(tp=tp)
    made = Job("j", axes, model=BLOOM, sequence=2048, micro_batch=size, compute=compute)
    return replace(made, **other)


def share(of):
    return product_efficiency(of)


def waves_by_hand(tokens, tp):
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
def test_products_fill_waves(size, tp):
    """As worked out beside it; attention proper has a rate of its own."""
    found = bloom(size, tp)
    rest = attention_flops(BLOOM, 2048) / 0.83 / sample_work(found)
    longer = (1 - rest) * waves_by_hand(2048 * size, tp) + rest
    assert share(found) == pytest.approx(1 / longer)


def test_gathered_logits_are_read_by_every_rank():
    """36 bytes of each on the last stage, whatever tp is."""
    for tp in (1, 8):
        gathered = bloom(2, tp, tensor_parallel=TensorParallel(loss="gathered"))
        seconds = 36 * 2 * 2048 * 250_880 / 1.7e12
        assert logit_seconds(gathered, BLOOM) == pytest.approx(seconds)
        assert share_of(gathered, BLOOM).end_s == pytest.approx(seconds)
        assert logit_seconds(bloom(2, tp), BLOOM) == 0.0


def test_a_known_time_stays():
    """Memory takes its part of the time, and the job itself is as long as before."""
    job, plain = llama(memory_bandwidth=3.35e12), llama()
    assert compute_at(job, job) == job.compute
    part = 1 - rates(job, job.model).flop / rates(plain, plain.model).flop
    layers = 126 / 16
    time = layers * beside_seconds(job, job.model) / micro_batch_time(job)
    assert part == pytest.approx(time, rel=0.02)
    assert 0.01 < part < 0.1


JOB = """\
format: placer/job
version: 1
name: j
parallelism: {tp: 2, dp: 4}
model: llama3.1-405b
sequence: 8192
host_time: 2ms
compute: {tflops_per_gpu: 500, memory_bandwidth: 3.35TB/s}
data_parallel: {sm_share: 0}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2ms", "2s", r"7:12: host_time: the host would take 252 s"),
        ("3.35TB/s", "3GB/s", r"8:50: compute\.memory_bandwidth: norms"),
    ],
)
def test_what_leaves_no_time_is_refused(old, new, message):
    """126 layers of 2 s, or norms at 3 GB/s, are no micro-batch of half a minute."""
    with pytest.raises(InputError, match=message):
        decode_job(parse_document(JOB.replace(old, new), "job.yaml"))
