"""What a GPU holds outside the framework's allocator: context and communicators."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.job.model import Job

_GIB = 2.0**30
# Context and kernels, 0.5 to 1.8 GiB by framework and GPU: stas00/ml-engineering
# 744d01e1, training/performance/README.md. A communicator of NCCL, 0.5 to 1.6 GB by its
# size: NVIDIA/nccl issues 864, 964 and 1685.
_CONTEXT = 1.0 * _GIB
_COMMUNICATOR = 0.7 * _GIB


def outside(job: Job) -> float:
    """Bytes outside the allocator: as the job says, or 1 GiB and 0.7 a communicator."""
    if job.memory.reserve is not None:
        return job.memory.reserve
    axes = job.parallelism
    sizes = [axes.tp, axes.cp, axes.pp, axes.dp * axes.cp]
    if axes.divides_experts:
        sizes += [axes.ep, axes.etp, axes.edp]
    communicators = sum(size > 1 for size in sizes) + len(job.groups)
    return _CONTEXT + _COMMUNICATOR * communicators
