"""Time of what multiplies nothing: bytes by hand, and what they change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from placer.base.errors import InputError
from placer.job.axes import Parallelism
from placer.job.beside import beside_seconds, elementwise_bytes
from placer.job.memory import Memory
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.pace import compute_at, rates
from placer.job.parallel import ContextParallel, DataParallel, TensorParallel
from placer.job.read import read_job
from placer.job.work import micro_batch_time
from tests.job.test_work import llama

if TYPE_CHECKING:
    from pathlib import Path

# Width 10, feed-forward 40, 2 heads; a sample has 6 tokens.
SHAPE = Model("tiny", 4, 10, 40, 2, 2, 100, gated=False)
OTHER_WAYS = ("all_gather", "a2a")


def tiny(*, tp: int = 1, sequence: bool = True, **memory: object) -> Job:
    return Job(
        "tiny",
        Parallelism(tp=tp),
        model=SHAPE,
        sequence=6,
        micro_batch=1,
        tensor_parallel=TensorParallel(sequence),
        memory=Memory(**memory),  # type: ignore[arg-type]
    )


def moved(job: Job) -> float:
    assert job.model
    return elementwise_bytes(job, job.model)


def test_bytes_by_hand() -> None:
    """Numbers of two bytes, read and written once by each operation.

    A token's norms: 2 (1 read, 1 write) forward, 2 (2, 1) backward, of 10 numbers.
    Residuals: 2 (2, 1) both ways. Activation function: (1, 1) and (2, 1) of 40.
    """
    norms, residuals, activation = 2 * (2 + 3), 2 * (3 + 3), 2 + 3
    token = 2 * 10 * (norms + residuals) + 2 * 40 * activation
    assert moved(tiny()) == 6 * token


def test_kernels_of_their_own() -> None:
    """An unfused norm moves nine times as much; an unfused softmax moves scores."""
    fused, unfused = 2 * 10 * 2 * 2, 2 * 10 * (6 + 8 + 4 + 8 + 6 + 4)
    more = unfused * 3 - fused - 2 * 10 * 3 * 2
    assert moved(tiny(norm="unfused")) - moved(tiny()) == 6 * more
    scores = 2 * 6 * 2 * (2 + 3)
    assert moved(tiny(attention="unfused")) - moved(tiny()) == 6 * scores
    # Dropout reads 2 bytes and a mask, or writes it, and writes 2; added to a residual
    # it costs forward the mask alone.
    masks = 2 * 6 * (5 + 5) + 2 * 10 * (1 + 5)
    more = moved(tiny(attention="unfused", dropout=True))
    assert more - moved(tiny(attention="unfused")) == 6 * masks


def test_pieces_of_a_ring_are_merged() -> None:
    """Of three ranks with 2 of 6 tokens each the last one merges three whole pieces.

    Outputs, and gradients of queries: one copied (1 read, 1 write), two added (2, 1).
    Gradients of keys and values: half are copied, half zeroed, half added, then all
    added: 1 + 1/2 + 3/2 + 3 of two of 10. Other ways to send have no pieces.
    """
    ring = replace(tiny(), parallelism=Parallelism(cp=3))
    others = (replace(ring, context_parallel=ContextParallel(k)) for k in OTHER_WAYS)
    (plain,) = {moved(other) for other in others}
    assert plain == moved(tiny()) / 3
    merged = (2 + 2 * 3) * (10 + 10) + 6 * 2 * 10
    assert moved(ring) - plain == 2 * 2 * merged
    again = Memory("selective", recompute_modules=("core_attn",))
    assert moved(replace(ring, memory=again)) - moved(ring) == 2 * 2 * 8 * 10


def test_a_known_time_stays() -> None:
    """Memory takes its part of the time, and the job itself is as long as before."""
    job = llama(memory_bandwidth=3.35e12)
    assert compute_at(job, job) == job.compute
    assert job.model
    plain = llama()
    assert plain.model
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
compute: {tflops_per_gpu: 500, memory_bandwidth: 3GB/s}
"""


def test_a_rate_that_leaves_no_time_is_refused(tmp_path: Path) -> None:
    """At 3 GB/s norms alone take longer than the micro-batch."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    with pytest.raises(InputError, match=r"7:50: compute\.memory_bandwidth: norms"):
        read_job(str(file))
    file.write_text(JOB.replace("3GB/s", "3.35TB/s"))
    job = read_job(str(file))
    assert job.compute == Compute(tflops_per_gpu=500, memory_bandwidth=3.35e12)
    assert job.data_parallel == DataParallel()
