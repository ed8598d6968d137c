"""What no product takes: memory, launches of experts and the host, by hand."""

from dataclasses import replace

import pytest

from placer.base.errors import InputError
from placer.documents import parse_document
from placer.job.axes import Parallelism
from placer.job.beside import (
    beside_seconds,
    elementwise_bytes,
)
from placer.job.memory import Memory
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.pace import compute_at, rates
from placer.job.parallel import TensorParallel
from placer.job.read import decode_job
from placer.job.work import micro_batch_time
from tests.job.test_work import llama

# Eight layers, half of them mixtures of 16 experts of 3 x 1,024 x 512 parameters.
MIXTURE = Model(
    "mixture", 8, 1024, 4096, 8, 8, 32_000, experts=16, top_k=2, expert_ffn=512,
    moe_layers=4,
)  # fmt: skip
RATE = 2e12


def job(**other):
    """It keeps four experts a GPU, cut in two."""
    axes = Parallelism(tp=2, ep=4, dp=4, etp=2)
    compute = Compute(micro_batch_time=1.0, memory_bandwidth=RATE)
    made = Job("j", axes, model=MIXTURE, sequence=2048, compute=compute)
    return replace(made, **other)


# Width 10, feed-forward 40, 2 heads; a sample has 6 tokens.
SHAPE = Model("tiny", 4, 10, 40, 2, 2, 100, gated=False)


def tiny(*, tp=1, sequence=True, **memory):
    return Job(
        "tiny",
        Parallelism(tp=tp),
        model=SHAPE,
        sequence=6,
        micro_batch=1,
        tensor_parallel=TensorParallel(sequence),
        memory=Memory(**memory),
    )


def moved(job):
    assert job.model
    return elementwise_bytes(job, job.model)


def test_bytes_by_hand():
    """Numbers of two bytes, read and written once by each operation.

    A token's norms: 2 (1 read, 1 write) forward, 2 (2, 1) backward, of 10 numbers.
    Residuals: 2 (2, 1) both ways. Activation function: (1, 1) and (2, 1) of 40.
    """
    norms, residuals, activation = 2 * (2 + 3), 2 * (3 + 3), 2 + 3
    token = 2 * 10 * (norms + residuals) + 2 * 40 * activation
    assert moved(tiny()) == 6 * token


def test_kernels_of_their_own():
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


def test_a_known_time_stays():
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
host_time: 2ms
compute: {tflops_per_gpu: 500, memory_bandwidth: 3.35TB/s}
data_parallel: {sm_share: 0}
"""


def job_of(old="", new=""):
    """The job of the text, or of one with a change."""
    return decode_job(parse_document(JOB.replace(old, new), "job.yaml"))


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
        job_of(old, new)
