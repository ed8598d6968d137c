"""The placement benchmark: nine machines with a job each, and small toys.

A machine is ``k`` leaves (scale-up domains) under a regular tree. GPUs of a leaf are
equal, and a leaf is modelled as one node. ``hier`` gives the children of a unit
bottom-up above the leaf, ``dist`` the distance inside a leaf, inside a level-1 unit,
and so on. Meaning of the instances: A, B, E, F, G are racks of 72 GPUs in blocks (and
zones); C is Llama 3 405B on hosts of 8 in racks of 2 and pods of 192 racks; D and H are
GPT-3 175B on hosts of 8 in units of 32 hosts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.topology.model import Tier, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

IntArray = npt.NDArray[np.int64]

PRIORITY_WEIGHTS = {"tp": 4000, "cp": 400, "pp": 40, "dp": 4}
RAW_WEIGHTS = {"tp": 2060, "cp": 32, "pp": 11, "dp": 760}
EXPERT_WEIGHTS = {"ep": 64, "edp": 4, "pp": 40}
TIER_NAMES = ("node", "unit", "block", "zone", "region")


@dataclass(frozen=True)
class Instance:
    """Definition of one benchmark instance."""

    parallelism: Parallelism
    weights: Mapping[str, float]
    hier: tuple[int, ...]
    dist: tuple[float, ...]
    capacities: Callable[[], IntArray]


def _equal(leaves: int, size: int) -> Callable[[], IntArray]:
    return lambda: np.full(leaves, size, dtype=np.int64)


def _uneven(leaves: int, seed: int) -> Callable[[], IntArray]:
    return lambda: 4 * np.random.default_rng(seed).integers(12, 19, size=leaves)


def _hosts_down() -> IntArray:
    rng = np.random.default_rng(20260103)
    up = rng.choice([20, 24, 28, 30, 31, 32], size=48)
    capacities = np.zeros((48, 32), dtype=np.int64)
    for unit in range(48):
        capacities[unit, rng.permutation(32)[: up[unit]]] = 8
    return capacities.ravel()


_LLAMA_A = Parallelism(tp=4, cp=2, dp=128, pp=8)
_LARGE = Parallelism(tp=8, cp=2, dp=384, pp=16)

INSTANCES = {
    "A": Instance(_LLAMA_A, PRIORITY_WEIGHTS, (8, 16), (1, 18, 24), _equal(128, 64)),
    "Araw": Instance(_LLAMA_A, RAW_WEIGHTS, (8, 16), (1, 18, 24), _equal(128, 64)),
    "B": Instance(
        _LLAMA_A, PRIORITY_WEIGHTS, (8, 18), (1, 18, 24), _uneven(144, 20260101)
    ),
    "C": Instance(
        Parallelism(tp=8, dp=128, pp=16),
        PRIORITY_WEIGHTS,
        (2, 192, 6),
        (1, 9, 10, 20),
        _equal(2304, 8),
    ),
    "D": Instance(
        Parallelism(tp=4, dp=336, pp=8),
        PRIORITY_WEIGHTS,
        (32, 42),
        (1, 9, 11),
        _equal(1344, 8),
    ),
    "E": Instance(
        Parallelism(ep=64, dp=1024, pp=8),
        EXPERT_WEIGHTS,
        (8, 16),
        (1, 18, 24),
        _equal(128, 72),
    ),
    "F": Instance(
        _LARGE, PRIORITY_WEIGHTS, (8, 24, 8), (1, 18, 20, 24), _equal(1536, 64)
    ),
    "G": Instance(
        _LARGE, PRIORITY_WEIGHTS, (8, 28, 8), (1, 18, 20, 24), _uneven(1792, 20260102)
    ),
    "H": Instance(
        Parallelism(tp=4, dp=320, pp=8),
        PRIORITY_WEIGHTS,
        (32, 48),
        (1, 9, 11),
        _hosts_down,
    ),
}
TOYS = ("S64", "S128", "S256", "S512")


def load(name: str) -> tuple[Topology, Job]:
    """Machine and job of an instance (``A`` .. ``H``, ``Araw``) or toy (``S64`` ..).

    Raises
    ------
    KeyError
        If there is no such instance.
    """
    return build(name, INSTANCES[name] if name not in TOYS else _toy(int(name[1:])))


def uneven_racks(ranks: int, load: float, seed: int) -> tuple[Topology, Job]:
    """The job of G with so many ranks on uneven racks, drawn like those of G.

    Parameters
    ----------
    ranks : int
        A multiple of 256, which is a replica.
    load : float
        Share of the GPUs that the job takes, about.
    seed : int
    """
    racks = ceil(ranks / load / 60)  # racks of 12 to 18 trays of 4 GPUs
    zones = ceil(racks / (8 * 28))
    capacities = np.zeros(8 * 28 * zones, dtype=np.int64)
    capacities[:racks] = _uneven(racks, seed)()
    job = replace(_LARGE, dp=ranks // 256)
    g = INSTANCES["G"]
    hier = (8, 28, zones)
    name = f"uneven-{ranks}-{load:g}-{seed}"
    drawn = Instance(job, g.weights, hier, g.dist, lambda: capacities)
    topology, placed = build(name, drawn)
    return topology.select(np.arange(topology.num_nodes)), placed


def build(name: str, instance: Instance) -> tuple[Topology, Job]:
    """Machine and job of a definition."""
    job = Job(
        name=name,
        parallelism=instance.parallelism,
        launcher="free",
        weights=instance.weights,
    )
    return _machine(name, instance), job


def leaf_capacities(name: str) -> IntArray:
    """GPUs of every leaf of an instance, empty leaves included; shape (k,)."""
    return INSTANCES[name].capacities().astype(np.int64)


def capacities_digest(capacities: IntArray) -> str:
    """First 16 hex digits of the SHA-256 of the capacities as little-endian int64."""
    return hashlib.sha256(capacities.astype("<i8").tobytes()).hexdigest()[:16]


def megatron_default(topology: Topology, job: Job) -> Placement:
    """Rank r on the r-th GPU."""
    return place_in_order(topology, np.arange(job.world_size))


def replica_major(
    topology: Topology, job: Job, limit: int = 0, unit: int = 1
) -> Placement:
    """Ranks in `replica_major_order` on the GPUs in turn.

    Parameters
    ----------
    limit : int
        Most ranks of a leaf; 0 for its capacity.
    unit : int
        Fill each leaf only with whole units of this many ranks.
    """
    return place_in_order(topology, replica_major_order(job), limit, unit)


def replica_major_order(job: Job) -> IntArray:
    """Ranks by (dp, pp, ep, cp, tp), dp slowest; shape (R,)."""
    at = job.parallelism.coordinates
    if job.parallelism.ep > 1:
        keys = (at["etp"], at["ep"], at["pp"], at["edp"])
    else:
        keys = (at["tp"], at["cp"], at["pp"], at["dp"])
    return np.lexsort(keys)


def place_in_order(
    topology: Topology, ranks: IntArray, limit: int = 0, unit: int = 1
) -> Placement:
    """``ranks`` on the GPUs in turn, at most ``limit`` and whole ``unit`` s a leaf."""
    size = topology.gpus_of_node
    usable = (np.minimum(size, limit) if limit else size) // unit * unit
    position = (
        np.arange(topology.num_gpus) - topology.first_gpu_of_node[topology.node_of_gpu]
    )
    slots = np.flatnonzero(position < usable[topology.node_of_gpu])
    gpu_of_rank = np.empty(len(ranks), dtype=np.int64)
    gpu_of_rank[ranks] = slots[: len(ranks)]
    return Placement(gpu_of_rank)


def _toy(ranks: int) -> Instance:
    leaves = ranks // 16
    return Instance(
        Parallelism(tp=4, pp=4, dp=leaves),
        PRIORITY_WEIGHTS,
        (2, leaves // 2),
        (1, 18, 24),
        _equal(leaves, 16),
    )


def _machine(name: str, instance: Instance) -> Topology:
    capacities = instance.capacities().astype(np.int64)
    used = np.flatnonzero(capacities)
    span = [prod(instance.hier[:level]) for level in range(len(instance.hier) + 1)]
    domain_of_node = np.stack([used // leaves for leaves in span])
    domain_of_node[0] = np.arange(len(used))
    tiers = TIER_NAMES[: len(span)]
    return Topology(
        name=name,
        tiers=tuple(
            Tier(
                name=tier,
                bandwidth=900e9 / distance,
                latency=1e-6,
                scale_up=tier == "node",
                oversubscription=1.0,
                efficiency=1.0,
                distance=distance,
            )
            for tier, distance in zip(tiers, instance.dist, strict=True)
        ),
        gpus_of_node=capacities[used],
        bandwidth_factor=np.ones(len(used)),
        domain_of_node=domain_of_node,
        domain_names=(
            tuple(f"n{leaf:05d}" for leaf in used),
            *(
                tuple(f"{tier}{i}" for i in range(len(capacities) // leaves))
                for tier, leaves in zip(tiers[1:], span[1:], strict=True)
            ),
        ),
        sources=("placement benchmark definitions",),
    )
