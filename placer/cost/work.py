"""Time of the work itself: one chunk of one micro-batch, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from placer.cost.data_parallel import Window, Windows
from placer.cost.volumes import Volumes, volumes
from placer.job.beside import host_passes
from placer.job.memory import PEAK_OF
from placer.job.model import Job
from placer.job.models import attention_widths, layer_parameters
from placer.job.pace import waiting_share
from placer.job.paces import Paces, paces
from placer.job.work import flops_again, forward_work, micro_batch_time, sample_work
from placer.topology.gpu_kinds import Gpu

# Of a data sheet's rate of memory, what long reads and writes reach: Calculon takes
# 0.75 to 0.90 by their size (caa4b11f, ``systems/``).
MEMORY_SHARE = 0.83
# Of the peak in BF16, what the best products reach: GB200 0.73, B200, B300 0.78, H100
# 0.80, A100 0.87 (stas00/ml-engineering, ``compute/accelerator``, measured).
OUTPUT_SHARE = 0.78


@dataclass(frozen=True)
class Work:
    """Compute times of a job."""

    # s: one micro-batch on the slowest stage, all chunks, forward and backward.
    micro_batch_s: float
    # forward_s and backward_s, s: one chunk of one micro-batch there, the mean.
    forward_s: float
    backward_s: float
    # s: forward of one layer, or of what counts as one, without what its GPU waits for
    # the host: nothing is sent then.
    layer_forward_s: float
    # Share of a layer's work that is attention proper (scores and values), behind which
    # a context-parallel ring hides.
    attention_share: float
    # host_forward_s and host_backward_s, s: least time of a full chunk's passes, with
    # all that travels in them: launches.
    host_forward_s: float = 0.0
    host_backward_s: float = 0.0

    def times(self, factor: float) -> Work:
        """Work that takes so many times as long, part by part."""
        names = ("micro_batch_s", "forward_s", "backward_s", "layer_forward_s")
        return replace(self, **{name: getattr(self, name) * factor for name in names})


class Content(NamedTuple):
    """What the stages of a job hold and work on, whatever the rates of links."""

    volumes: Volumes
    work: Work
    paces: Paces
    first_chunk_parameters: float  # that one GPU gathers, or reduces

    @classmethod
    def of(cls, job: Job, gpu: Gpu) -> Content:
        """That of a job whose GPUs are of a kind."""
        sizes, known = volumes(job), on_gpu(job, gpu)
        frozen = job.data_parallel.shards_weights
        held = sizes.dense_parameters(frozen=frozen)
        held = held + sizes.expert_parameters(frozen=frozen)
        return cls(sizes, work(known, sizes), paces(known), float(held[0, 0]))


def on_gpu(job: Job, gpu: Gpu) -> Job:
    """The job, with the rates of a GPU where it does not say them.

    Outputs are products as all others where layers are dense and multiply in BF16 too.
    """
    if job.model is None:
        return job
    compute, gemm = job.compute, job.memory.gemm
    rate = compute.memory_bandwidth or MEMORY_SHARE * gpu.memory_bandwidth
    peak = compute.peak_tflops or gpu.peak.get(PEAK_OF[gemm], 0.0) / 1e12
    out = compute.output_tflops
    if not out and (gemm != "bf16" or job.model.moe_layers):
        out = OUTPUT_SHARE * gpu.peak.get("bf16", 0.0) / 1e12
    known = replace(compute, memory_bandwidth=rate, peak_tflops=peak, output_tflops=out)
    return job if known == compute else replace(job, compute=known)


def work(job: Job, sizes: Volumes) -> Work:
    """The job's compute times; those of a layer are zero without a model."""
    total = micro_batch_time(job)
    share_of_forward = forward_share(job)
    forward = total * share_of_forward / job.parallelism.vp
    backward = total * (1 - share_of_forward) / job.parallelism.vp
    if job.model is None:
        return Work(total, forward, backward, 0.0, 0.0)
    # Per token, a layer multiplies 6 parameters' worth of FLOPs and attends over the
    # sequence for 3 s times both widths more (causal), as in the FLOP count of
    # `job.models`, at attention's own rate.
    width = sum(attention_widths(job.model)) / 2
    scores = width * job.sequence / job.compute.attention_rate
    share = scores / (layer_parameters(job.model) + scores)
    waits = waiting_share(job, job.model)
    layer = (1 - waits) * forward / sizes.layers_per_chunk
    ahead = (s * sizes.layers_per_chunk for s in host_passes(job, job.model))
    return Work(total, forward, backward, layer, share, *ahead)


def forward_share(job: Job) -> float:
    """Forward's share of a micro-batch.

    Two products of three are backward's, one of two of a weight that is not trained,
    and so is what it computes again.
    """
    if job.model is None:
        return 1 / 3
    return forward_work(job, job.model) / (sample_work(job) + flops_again(job))


def windows(job: Job, times: Work, first_chunk_parameters: float) -> Windows:
    """The compute that data-parallel traffic hides behind."""
    mode, in_a_row = job.data_parallel, min(job.micro_batches, job.parallelism.pp)
    reduce, gather = (
        Window(chunk_s, 1 if each else in_a_row, overlap, each)
        for chunk_s, overlap, each in (
            (times.backward_s, mode.overlap_reduce, mode.reduces_each),
            (times.forward_s, mode.overlap_gather, mode.gathers_each),
        )
    )
    buckets = max(1.0, first_chunk_parameters / mode.bucket_parameters)
    return Windows(reduce, gather, buckets, mode, job.micro_batches)
