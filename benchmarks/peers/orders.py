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
# Hosts as given, by name as text, or those of the fullest domains first; ranks as they
# come (tp-cp-ep-dp-pp), or replica by replica.
VARIANTS = (
    "megatron-default",
    "replica-major",
    "sorted-hosts",
    "sorted-hosts, replica-major",
    "fullest-first",
    "fullest-first, replica-major",
)


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
    """Nodes filled in turn with whole units; None if those do not fit."""
    start = perf_counter()
    size = unit_size(job.parallelism, unit)
    if (topology.gpus_of_node // size).sum() * size < job.world_size:
        return None
    nodes = np.arange(topology.num_nodes)
    if variant.startswith("sorted-hosts"):
        nodes = np.array(sorted(nodes, key=lambda n: topology.node_names[n]))
    if variant.startswith("fullest-first"):
        nodes = _fullest_first(topology)
    is_replica_major = variant.endswith("replica-major")
    ranks = replica_major_order(job) if is_replica_major else np.arange(job.world_size)
    machine = topology.select(nodes)
    placement = place_in_order(machine, ranks, unit=size)
    leaf_of_rank = nodes[machine.node_of_gpu[placement.gpu_of_rank]]
    return Answer(leaf_of_rank, perf_counter() - start, 0)


def _fullest_first(topology: Topology) -> IntArray:
    """Nodes by the GPUs that are left in their domains, outermost first."""
    keys = []
    for domain_of_node in topology.domain_of_node:
        gpus = np.bincount(domain_of_node, topology.gpus_of_node)
        keys += [domain_of_node, -gpus[domain_of_node]]
    return np.lexsort(keys)
