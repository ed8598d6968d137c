"""Whether a placement obeys the job's hard rules, quickly, for use inside the search.

The independent checker (`placement.check`) judges every result again with its own code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.problem.colocation import groups_of

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]


def obeys(topology: Topology, job: Job, gpu_of_rank: IntArray) -> bool:
    """Whether every required group lies in one domain and the launcher can start it."""
    return next(violated(topology, job, gpu_of_rank), None) is None


def violated(topology: Topology, job: Job, gpu_of_rank: IntArray) -> Iterator[str]:
    """Requirements that a placement breaks, as ``tp=rack``, and ``node-contiguous``."""
    for axis, tier in job.require.items():
        domain = topology.domain_of_gpu[topology.tier_index(tier)][gpu_of_rank]
        for members in groups_of(job, axis):
            inside = domain[members]
            if (inside != inside[:, :1]).any():
                yield f"{axis}={tier}"
                break
    if job.launcher != "free" and not _node_contiguous(topology, gpu_of_rank):
        yield job.launcher


def avoided(topology: Topology, job: Job, gpu_of_rank: IntArray) -> int:
    """How many of the job's hosts to avoid a placement uses."""
    if not job.rules.avoid:
        return 0
    nodes = np.unique(topology.node_of_gpu[gpu_of_rank]).tolist()
    used = {topology.node_names[node] for node in nodes}
    return len(used.intersection(job.rules.avoid))


def _node_contiguous(topology: Topology, gpu_of_rank: IntArray) -> bool:
    """Whether every node holds consecutive ranks on ascending GPUs."""
    node = topology.node_of_gpu[gpu_of_rank]
    changes = node[1:] != node[:-1]
    ascending = gpu_of_rank[1:] > gpu_of_rank[:-1]
    runs = int(changes.sum()) + 1
    return runs == np.count_nonzero(np.bincount(node)) and bool(
        (ascending | changes).all()
    )
