"""A larger job whose ranks end with a node, and its placement without the ranks added.

See docs/method.md, "Stages that do not fill their nodes". Shapes: R ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.errors import InputError
from placer.job.resize import resized

if TYPE_CHECKING:
    from placer.job.axes import Parallelism
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem


def padded_jobs(problem: Problem) -> Iterator[Job]:
    """The job with so many more replicas that stages fill the largest nodes they can.

    None for a free launch, or where stages fill such nodes already.
    """
    machine, job = problem.machine, problem.job
    if job.launcher == "free" or job.groups or job.traffic or job.roles:
        return
    gpus, axes = machine.gpus_of_node, job.parallelism
    inside, runs = _inside(axes), axes.world_size // (_inside(axes) * axes.dp)
    for node in np.unique(gpus)[::-1].tolist():
        nodes = int((gpus // node).sum())
        for dp in range(axes.dp, nodes * node // (inside * runs) + 1):
            if inside * dp % node:
                continue
            if dp == axes.dp:
                return
            try:
                yield resized(job, dp=dp)
            except InputError:
                continue
            return


def without_padding(problem: Problem, padded: Job, gpu_of_rank: IntArray) -> IntArray:
    """GPU of every rank of the job, of a placement of the padded one; shape (R,)."""
    kept = padded.parallelism.coordinates["dp"] < problem.job.parallelism.dp
    node_of_rank = problem.machine.node_of_gpu[gpu_of_rank[kept]]
    return problem.machine.gpus_on(node_of_rank)


def _inside(axes: Parallelism) -> int:
    """Ranks that follow each other before the next replica of their stage begins."""
    before = axes.order[: axes.order.index("dp")]
    return prod(axes.size(axis) for axis in before if axis != "ep")
