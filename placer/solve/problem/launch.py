"""How many consecutive ranks nodes hold, and what then fits together."""

from __future__ import annotations

import numpy as np

from placer.base.arrays import IntArray
from placer.job.model import Job
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.problem.packing import pack
from placer.solve.tree.capacity import node_capacity, whole_sets
from placer.topology.machine import Machine


def launch_blocks(topology: Machine, job: Job) -> list[int]:
    """Ranks a node may hold, best first: the block sizes a launch may use.

    A free launch places single ranks. A node-contiguous one gives every node the same
    number of consecutive ranks (torchrun's ``--nproc-per-node``): any divisor of the
    world for which enough nodes are large enough. Blocks that cut no tp group come
    first, then large ones.
    """
    if job.launcher == "free":
        return [1]
    gpus = topology.gpus_of_node
    tp = job.parallelism.tp
    found = [
        block
        for block in range(int(gpus.max()), 0, -1)
        if job.world_size % block == 0
        and int((gpus >= block).sum()) * block >= job.world_size
    ]
    return sorted(found, key=lambda block: bool(block % tp and tp % block))


def forced_block(topology: Machine, job: Job) -> int:
    """Consecutive ranks that every node must hold, 0 when nodes may differ.

    With GPUs to spare a node-contiguous launch may also give nodes different numbers.
    1 for a free launch: any rank may go anywhere.
    """
    if job.launcher == "free":
        return 1
    gpus = topology.gpus_of_node
    is_full = job.world_size == topology.num_gpus and bool((gpus == gpus[0]).all())
    if topology.node_tier and not counts_by_island(topology):
        return 0  # ranks of a host may also follow the launcher's count
    return int(gpus[0]) if is_full else 0


def fits(topology: Machine, colocation: Colocation) -> bool:
    """Whether the sets can be packed into the domains."""
    capacity = node_capacity(topology, colocation.block)
    sizes = colocation.uniform_sizes()
    if sizes is None:
        return pack(topology, colocation, capacity) is not None
    takes = whole_sets(topology, capacity, sizes)
    return bool(takes[-1].sum() >= colocation.label.shape[1])


def feasible_colocations(topology: Machine, job: Job) -> list[Colocation]:
    """The sets of every launch block that can be packed, best first; may be empty."""
    found = []
    for block in launch_blocks(topology, job):
        colocation = colocation_of(topology, job, block)
        if fits(topology, colocation):
            found.append(colocation)
    return found


def counts_by_island(topology: Machine) -> bool:
    """Whether a launcher counts the GPUs of every host island by island."""
    if not topology.node_tier or topology.gpu_index is None:
        return True
    order = topology.gpu_index
    host = topology.host_of_gpu
    return bool(((np.diff(order) > 0) | (np.diff(host) != 0)).all())


def launched(topology: Machine, node_of_rank: IntArray) -> IntArray:
    """GPU of every rank where a launch by nodes can start them so; shape (R,).

    Hosts count GPUs island by island, or as the launcher does where only that ascends.
    """
    gpu_of_rank = topology.gpus_on(node_of_rank)
    if counts_by_island(topology):
        return gpu_of_rank
    host_of_rank = topology.host_of_node[node_of_rank]
    for host in np.unique(host_of_rank).tolist():
        ranks = np.flatnonzero(host_of_rank == host)
        if (np.diff(gpu_of_rank[ranks]) > 0).all():
            continue
        last = -1
        for rank in ranks.tolist():
            gpus = topology.gpus_of(node_of_rank[[rank]])
            later = gpus[topology.index_of_gpu[gpus] > last]
            if not later.size:
                break
            gpu_of_rank[rank] = later[np.argmin(topology.index_of_gpu[later])]
            last = int(topology.index_of_gpu[gpu_of_rank[rank]])
    return gpu_of_rank


def run_tiers(topology: Machine) -> set[int]:
    """Tiers whose domains hold one run of ranks each in a launch by nodes.

    Hosts do, and their islands where they are counted in turn.
    """
    islands = {0} if counts_by_island(topology) else set()
    return {topology.node_tier} | islands


def islands_are_alike(topology: Machine) -> bool:
    """Whether the islands of each host have as many GPUs as one another."""
    host = topology.host_of_node
    return not (np.diff(topology.gpus_of_node)[np.diff(host) == 0]).any()
