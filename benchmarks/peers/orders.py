"""Orders that need no tool: ranks in some order on hosts in some order."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.instances import place_in_order, replica_major_order
from benchmarks.peers.answer import Answer
from benchmarks.peers.problem import unit_size

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

NAME = "orders"
VARIANTS = ("megatron-default", "replica-major", "sorted-hosts")


def version() -> str | None:
    """Nothing to install."""
    return ""


def place(
    topology: Topology,
    job: Job,
    *,
    unit: str = "rank",
    variant: str = "replica-major",
    seed: int = 0,  # noqa: ARG001 - peers are called alike
) -> Answer | None:
    """Nodes filled in turn with whole units; None if those do not fit.

    ``megatron-default`` takes ranks and nodes as they come, ``replica-major`` ranks
    replica by replica, ``sorted-hosts`` nodes by name as text.
    """
    start = perf_counter()
    size = unit_size(job.parallelism, unit)
    if (topology.gpus_of_node // size).sum() * size < job.world_size:
        return None
    nodes = np.arange(topology.num_nodes)
    if variant == "sorted-hosts":
        nodes = np.array(sorted(nodes, key=lambda n: topology.node_names[n]))
    is_replica_major = variant == "replica-major"
    ranks = replica_major_order(job) if is_replica_major else np.arange(job.world_size)
    machine = topology.select(nodes)
    placement = place_in_order(machine, ranks, unit=size)
    leaf_of_rank = nodes[machine.node_of_gpu[placement.gpu_of_rank]]
    return Answer(leaf_of_rank, perf_counter() - start, 0)
