"""What no product takes: memory, launches of experts and the host, by hand."""

from dataclasses import replace

import pytest

from placer.base.errors import InputError
from placer.documents import parse_document
from placer.job.adapters import Adapters
from placer.job.axes import Parallelism
from placer.job.beside import (
    beside_seconds,
    elementwise_bytes,
    expert_bytes,
    host_passes,
    host_seconds,
    host_wait,
)
from placer.job.memory import Memory
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.pace import compute_at, rates
from placer.job.parallel import ContextParallel, DataParallel, TensorParallel
from placer.job.read import decode_job, read_job
from placer.job.work import micro_batch_time
from placer.job.write import to_document
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


@pytest.mark.parametrize(
    ("other", "each"),
    [
        ({}, 2 * 2 + 2 * 2),
        ({"memory": Memory(gemm="fp8")}, 2 * 1 + 2 * 2),
        ({"memory": Memory(gemm="fp8", gradient_bytes=4.0)}, 2 * 1 + 2 * 4),
        ({"memory": Memory("selective", recompute_modules=("moe",))}, 3 * 2 + 2 * 2),
        ({"data_parallel": DataParallel("zero3")}, 2 * 2 + 2 * 4 + 2 * 2),
        ({"data_parallel": DataParallel("zero3", keep_parameters=True)}, 4 + 2 * 4),
        ({"adapters": Adapters(rank=8)}, 2 * 2),
    ],
)
def test_bytes_of_an_expert_s_parameter(other, each):
    """Read each pass, its gradient read and added to; shards written by two gathers."""
    assert expert_bytes(job(**other)) == each


def test_layers_of_a_mixture_wait_for_their_host():
    """2.5 ms each where nothing says it, nothing where graphs hold whole steps."""
    assert host_wait(job(), MIXTURE) == pytest.approx(0.5 * 2.5e-3)
    assert host_wait(job(host_time=6e-3), MIXTURE) == pytest.approx(3e-3)
    assert host_wait(job(host_time=0.0), MIXTURE) == 0.0
    again = job(memory=Memory("full"))
    assert host_seconds(again, MIXTURE) == pytest.approx(2.5e-3 * 4 / 3)
    assert host_passes(job(), MIXTURE) == (0.0, 0.0)


# Width 10, feed-forward 40, 2 heads; a sample has 6 tokens.
SHAPE = Model("tiny", 4, 10, 40, 2, 2, 100, gated=False)
OTHER_WAYS = ("all_gather", "a2a")


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


def test_pieces_of_a_ring_are_merged():
    """Of three ranks with 2 of 6 tokens each the last one merges three whole pieces.

    Outputs, and gradients of queries: one copied (1 read, 1 write), two added (2, 1).
    Gradients of keys and values: half are copied, half zeroed, half added, then all
    added: 1 + 1/2 + 3/2 + 3 of two of 5, one head's. Other ways to send have no pieces.
    """
    shape = replace(SHAPE, kv_heads=1)
    ring = replace(tiny(), model=shape, parallelism=Parallelism(cp=3))
    others = (replace(ring, context_parallel=ContextParallel(k)) for k in OTHER_WAYS)
    (plain,) = {moved(other) for other in others}
    assert plain == moved(tiny()) / 3
    merged = (2 + 2 * 3) * (10 + 10) + 6 * 2 * 5
    assert moved(ring) - plain == 2 * 2 * merged
    again = Memory("selective", recompute_modules=("core_attn",))
    assert moved(replace(ring, memory=again)) - moved(ring) == 2 * 2 * 8 * 10


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


def test_what_a_file_says_is_read_and_written():
    """All three keys, a 0 too; what is not said is not written."""
    found = job_of()
    assert found.compute == Compute(tflops_per_gpu=500, memory_bandwidth=3.35e12)
    assert (found.host_time, found.data_parallel.sm_share) == (2e-3, 0.0)
    document = to_document(found)
    assert document["host_time"] == 2e-3
    assert document["data_parallel"]["sm_share"] == 0.0
    assert "host_time" not in to_document(read_job("llama3-405b-8k"))
    assert to_document(job_of("2ms", "0s"))["host_time"] == 0.0


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
