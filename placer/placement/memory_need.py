"""How much memory placing and scoring a job takes, known before any array is built.

Nearly all of it are arrays with a few 8-byte numbers for every GPU and every rank, so
it grows in proportion to both. The counts below are of arrays that live side by side
where most of them do: while a placement is scored.
"""

from __future__ import annotations

import os
from contextlib import suppress
from math import inf
from pathlib import Path

from placer.base.errors import InputError
from placer.base.units import format_bytes
from placer.job.model import Job
from placer.topology.layout import BYTES_A_NODE
from placer.topology.model import Topology

# Limit of the control group, version 2 and 1 (Linux, Documentation/admin-guide).
_GROUP_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def memory_limit() -> float:
    """Bytes this process may use, inf when nothing says.

    The least of the machine's memory, the limit of its container and ``ulimit -v``.
    """
    limits = [inf]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _GROUP_LIMITS:
        with suppress(OSError, ValueError):
            limits.append(float(Path(path).read_text()))  # "max" is no number
            break
    with suppress(ImportError):  # Windows
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        limits += [soft] if soft != resource.RLIM_INFINITY else []
    return float(min(limits))


_NUMBER = 8
# The interpreter with numpy, networkx and the solvers loaded, bytes.
_PROGRAM = 120e6
# Numbers a GPU: its domain at each tier, held twice, and what is taken from them; and
# what each of eight walks of the search keeps of the slot there.
_PER_GPU = 8 + 8 * 24
# Numbers a rank: coordinates and groups on every axis; its GPU and neighbours, tiers,
# bytes and order on the rings of the axis that is being scored.
_PER_RANK = 16 + 70
# Numbers a rank and tier: the parts that must stay together, passing once.
_PER_RANK_AND_TIER = 2
# Numbers a rank and tier of an all-to-all: its peers and what it sends them.
_PER_RANK_AND_TIER_OF_EXCHANGE = 5
# Numbers an edge of the hop cost: its two ends, and their two domains.
_PER_EDGE = 4
# Numbers a member of a custom group, which is also kept as a list of ranks.
_PER_MEMBER = 20
# Numbers a flow of roles: its ends and bytes, what bounds sort and add up of them, and
# what walks keep of it; most where NVLink joins nodes.
_PER_FLOW = 170


def memory_need(num_gpus: int, num_nodes: int, num_tiers: int, job: Job) -> float:
    """Bytes that placing ``job`` on a machine of this size takes, about."""
    exchange = _PER_RANK_AND_TIER_OF_EXCHANGE if job.parallelism.ep > 1 else 0
    per_rank = (
        _PER_RANK
        + (_PER_RANK_AND_TIER + exchange) * num_tiers
        + _PER_EDGE * _edges_per_rank(job)
    )
    members = sum(group.num_members for group in job.groups)
    flows = 0 if job.traffic is None else len(job.traffic.senders)
    numbers = (
        (2 * num_tiers + _PER_GPU) * num_gpus
        + per_rank * job.world_size
        + _PER_MEMBER * members
        + _PER_FLOW * flows
    )
    return _PROGRAM + BYTES_A_NODE * num_nodes + _NUMBER * numbers


def check_memory(topology: Topology, job: Job) -> None:
    """Refuse a job and a machine that need more memory than there is."""
    need = memory_need(topology.num_gpus, topology.num_nodes, len(topology.tiers), job)
    limit = memory_limit()
    if need > limit:
        message = (
            f"{job.world_size:,} ranks on {topology.num_gpus:,} GPUs need about "
            f"{format_bytes(need)} of memory, there are {format_bytes(limit)}"
        )
        hint = "raise the limit of the container or of ulimit -v, or name fewer hosts"
        raise InputError(message, hint=hint)


def _edges_per_rank(job: Job) -> float:
    """Edges of the hop cost a rank: rings, pipelines, and all pairs of an ep group."""
    edges = 0.0
    for axis, weight in job.weights.items():
        size = job.parallelism.size(axis)
        if weight and size > 1:
            edges += (size - 1) / 2 if axis == "ep" else 1.0
    return edges
