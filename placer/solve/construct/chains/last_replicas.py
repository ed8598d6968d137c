"""Most replicas stitched of whole units, the last few out of what is left.

Where leaves hold nearly all units whole, but not all, no stitching of all replicas
exists. Some units have to be cut, and they need be of few replicas only: the others are
stitched as if they were the job, and the last ones fill the GPUs that are left. Shapes:
R ranks, N nodes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.chains.chains import replicas_too_many, stitched_chains
from placer.solve.construct.units.whole_first import whole_first_fills
from placer.solve.problem.submachine import Submachine

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent


def last_replicas(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """The last replicas out of what the others, stitched, leave over."""
    job = problem.job
    if not _is_plain(problem):
        return
    last = replicas_too_many(problem)
    # With half of all replicas or more cut, nestings and fills are the better plan.
    if not 0 < 2 * last <= job.parallelism.dp:
        return
    is_last = job.parallelism.coordinates["dp"] >= job.parallelism.dp - last
    most = problem.on(problem.machine, _with_replicas(job, job.parallelism.dp - last))
    for name, gpu_of_rank, in_time in stitched_chains(most, budget):
        incumbent.cut_short |= not in_time
        taken = problem.machine.node_of_gpu[gpu_of_rank]
        rest = _on_rest(problem, taken, last)
        if rest is not None:
            node_of_rank = np.empty(job.world_size, dtype=np.int64)
            node_of_rank[~is_last], node_of_rank[is_last] = taken, rest
            told = f"{name}, and {last} replicas of what is left"
            incumbent.offer(told, problem.machine.gpus_on(node_of_rank))


def _is_plain(problem: Problem) -> bool:
    """Whether replicas are alike, and ranks free to lie on any GPU."""
    job = problem.job
    return (
        job.launcher == "free"
        and job.parallelism.ep == 1
        and job.traffic is None
        and not (job.require or job.groups or job.rules)
    )


def _with_replicas(job: Job, dp: int) -> Job:
    return replace(job, parallelism=replace(job.parallelism, dp=dp))


def _on_rest(problem: Problem, taken: IntArray, last: int) -> IntArray | None:
    """Nodes of the ranks of so many replicas, on what others leave over."""
    machine = problem.machine
    left = machine.gpus_of_node - np.bincount(taken, minlength=machine.num_nodes)
    part = Submachine.of(machine, left > 0)
    rest = replace(part.topology, gpus_of_node=left[part.nodes], gpu_index=None)
    few = problem.on(rest, _with_replicas(problem.job, last))
    fills = islice(whole_first_fills(few), few.fills_priced)
    found = [gpu_of_rank for _, gpu_of_rank in fills]
    if not found:
        return None
    nodes: IntArray = part.nodes[rest.node_of_gpu[min(found, key=few.goal.value)]]
    return nodes
