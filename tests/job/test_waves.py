"""Waves of tiles, launches by the host, and logits that every rank has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from placer.errors import InputError
from placer.footprint.stages import footprint
from placer.job.axes import Parallelism
from placer.job.memory import Memory
from placer.job.model import Compute, EndStages, Job, Model
from placer.job.models import attention_flops
from placer.job.pace import (
    compute_at,
    launch_seconds,
    logit_seconds,
    memory_seconds,
    pace,
    seconds_per_flop,
    stages,
)
from placer.job.parallel import TensorParallel
from placer.job.read import read_job
from placer.job.work import micro_batch_time, product_efficiency, sample_work
from placer.job.write import to_document

if TYPE_CHECKING:
    from pathlib import Path

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


def test_queries_keys_and_values_of_bloom() -> None:
    """8 x 42 tiles are 3.1 waves of 108 and take four."""
    tiles = 2048 // 256 * (3 * 14336 // 8) // 128
    assert tiles == 336
    assert tiles / (-(-tiles // 108) * 108) == pytest.approx(0.778, abs=1e-3)


def test_more_samples_fill_more() -> None:
    """Half a wave less is empty, and writing is the same share of longer sums."""
    shares = [share(job(size)) for size in (1, 2, 4, 8)]
    assert shares == sorted(shares)
    assert shares[0] < 0.85
    assert shares[3] > 0.93


def test_writing_counts_where_its_rate_is_known() -> None:
    """Without the peak nobody knows how long it takes beside multiplying."""
    plain = replace(A100, peak_tflops=0.0)
    assert share(job(compute=plain)) > share(job())


def test_experts_keep_the_rule_by_flops() -> None:
    """How many tokens visit an expert is another question."""
    shape = replace(BLOOM, experts=8, top_k=2, moe_layers=72, expert_ffn=1024)
    by_flops = replace(A100, multiprocessors=0)
    assert share(job(model=shape)) == share(job(model=shape, compute=by_flops))


def test_a_layer_takes_no_less_than_its_launch() -> None:
    """8 ms a layer where work takes less; a third more where forward runs again."""
    slow = replace(A100, tflops_per_gpu=200.0)
    known = job(4, 1, slow)
    for again, factor in (("none", 1.0), ("full", 4 / 3)):
        launched = replace(known, compute=replace(slow, launch_time=8e-3))
        small = replace(launched, micro_batch=1, parallelism=Parallelism(tp=64, pp=72))
        small = replace(small, memory=Memory(again), stages=EndStages(0, 0))
        small = replace(small, compute=compute_at(launched, small))
        last = stages(small, BLOOM)[-1]
        flop = seconds_per_flop(known, BLOOM) * share(known) / share(small)
        assert last.layer_flops * flop < 8e-3
        time = micro_batch_time(small)
        assert time == pytest.approx(8e-3 * factor + last.end * flop)
        work = last.layer_flops * flop + memory_seconds(small, BLOOM)
        wait = small.compute.launch_wait
        assert wait == pytest.approx(launch_seconds(small) - work)
        assert pace(small, BLOOM, flop) == pytest.approx(time - wait)


def test_a_job_that_waits_for_launches_tells_its_rate() -> None:
    """The way to another shape is the same from a job that `tune` has written."""
    known = job(4, 1, replace(A100, launch_time=8e-3))
    small = replace(known, micro_batch=1, parallelism=Parallelism(tp=64))
    small = replace(small, compute=compute_at(known, small))
    assert small.compute.launch_wait > 0.0
    for size, tp in ((1, 64), (4, 1), (2, 32), (1, 8)):
        other = replace(known, micro_batch=size, parallelism=Parallelism(tp=tp))
        direct = compute_at(known, other)
        around = compute_at(small, replace(other, compute=small.compute))
        assert around.launch_wait == pytest.approx(direct.launch_wait, abs=1e-9)
        assert around.tflops_per_gpu == pytest.approx(direct.tflops_per_gpu)


def test_launches_change_nothing_where_work_takes_longer() -> None:
    """At its own shape and at any other."""
    known = job(4, 1)
    launched = replace(known, compute=replace(A100, launch_time=1e-4))
    half = replace(known, parallelism=Parallelism(tp=2))
    other = compute_at(launched, replace(half, compute=launched.compute))
    assert replace(other, launch_time=0.0) == compute_at(known, half)
    assert compute_at(launched, launched) == launched.compute


def test_gathered_logits_are_read_by_every_rank() -> None:
    """36 bytes of each on the last stage, whatever tp is."""
    for tp in (1, 8):
        gathered = job(2, tp, tensor_parallel=TensorParallel(loss="gathered"))
        seconds = 36 * 2 * 2048 * 250_880 / 1.7e12
        assert logit_seconds(gathered, BLOOM) == pytest.approx(seconds)
        assert stages(gathered, BLOOM)[-1].memory == pytest.approx(seconds)
        assert logit_seconds(job(2, tp), BLOOM) == 0.0


def test_gathered_logits_fill_every_rank() -> None:
    """Six bytes of each, rather than of an eighth."""
    own, all_ = (
        footprint(job(tensor_parallel=TensorParallel(loss=loss)))
        for loss in ("parallel", "gathered")
    )
    assert own
    assert all_
    assert all_.total - own.total == pytest.approx(6 * 2048 * 250_880 * 7 / 8)


JOB = """\
format: placer/job
version: 1
name: j
parallelism: {tp: 2, dp: 4}
model: llama3.1-405b
sequence: 8192
tensor_parallel: {loss: gathered}
compute: {tflops_per_gpu: 500, multiprocessors: 132, peak_tflops: 989, launch_time: 2ms,
          launch_wait: 1ms}
"""


def test_what_a_file_says_is_read_and_written(tmp_path: Path) -> None:
    """All five keys; what has its default is not written."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    found = read_job(str(file))
    given = found.compute
    assert (given.multiprocessors, given.peak_tflops) == (132, 989.0)
    assert (given.launch_time, given.launch_wait) == (2e-3, 1e-3)
    assert found.tensor_parallel == TensorParallel(loss="gathered")
    document = to_document(found)
    assert document["tensor_parallel"] == {"sequence": True, "loss": "gathered"}
    assert document["compute"]["launch_time"] == 2e-3
    assert document["compute"]["launch_wait"] == 1e-3
    usual = to_document(read_job("llama3-405b-8k"))
    assert usual["tensor_parallel"] == {"sequence": True}
    assert "multiprocessors" not in usual["compute"]


def test_launching_longer_than_the_work_is_refused(tmp_path: Path) -> None:
    """126 layers of 2 s are no micro-batch of half a minute."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("2ms", "2s"))
    with pytest.raises(InputError, match=r"compute\.launch_time: launching the layers"):
        read_job(str(file))


def test_no_layer_waits_longer_than_its_launch(tmp_path: Path) -> None:
    """2 ms to launch, so 3 ms of waiting are wrong."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("1ms", "3ms"))
    with pytest.raises(InputError, match=r"launch_wait: a GPU waits no longer"):
        read_job(str(file))
