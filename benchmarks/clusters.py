"""Machines as a job is granted them, drawn from a seed.

Two families: hosts of 8 GPUs under leaf and spine switches, and racks of 18 trays with
4 GPUs in blocks. What a job gets of one is whole, or what a simulated scheduler has
left free, or short of nodes that are down, of a GPU in some hosts, or of places that
were never filled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.topology.model import Tier, Topology

if TYPE_CHECKING:
    from collections.abc import Callable

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

HISTORIES = ("whole", "scheduled", "faults", "seven of eight", "uneven")
# The scheduler's machine is so many times what is left free of it.
MACHINES_OF_FREE = (1.5, 2.5, 4.0)
# Arrivals simulated, in nodes of the machine; the largest job's share of it.
TURNOVER, LARGEST_JOB = 4, 0.06
DOWN = (0.02, 0.05, 0.12)
SHORT = (0.1, 0.3, 0.6)
UPLINKS = (1.0, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Family:
    """How machines of a kind are built.

    Attributes
    ----------
    node : int
        GPUs of a node.
    leaf, unit : int
        Nodes of a leaf switch or rack, and leaves of a spine or block.
    tiers : tuple of Tier
        Innermost first; the last one is drawn an uplink.
    """

    node: int
    leaf: int
    unit: int
    tiers: tuple[Tier, ...]


def _tier(
    name: str,
    bandwidth: float,
    latency: float,
    distance: float,
    efficiency: float,
    *,
    scale_up: bool = False,
) -> Tier:
    return Tier(name, bandwidth, latency, scale_up, 1.0, efficiency, distance)


FAMILIES = {
    "hosts": Family(
        8,
        16,
        8,
        (
            _tier("node", 450e9, 1e-6, 1.0, 0.82, scale_up=True),
            _tier("leaf", 50e9, 5e-6, 9.0, 0.98),
            _tier("spine", 50e9, 7e-6, 10.0, 0.98),
            _tier("cluster", 50e9, 9e-6, 11.0, 0.98),
        ),
    ),
    "racks": Family(
        4,
        18,
        8,
        (
            _tier("node", 900e9, 1e-6, 1.0, 0.8, scale_up=True),
            _tier("rack", 900e9, 1e-6, 1.0, 0.8, scale_up=True),
            _tier("block", 100e9, 5e-6, 18.0, 0.98),
            _tier("cluster", 100e9, 8e-6, 24.0, 0.98),
        ),
    ),
}


@dataclass(frozen=True, eq=False)
class Granted:
    """Nodes that a job is granted.

    Attributes
    ----------
    nodes : ndarray, shape (N,)
        Numbers in the whole machine, ascending.
    gpus : ndarray, shape (N,)
        Healthy GPUs of each.
    """

    nodes: IntArray
    gpus: IntArray


def machine(
    rng: np.random.Generator, family: str, history: str, gpus: int
) -> tuple[Topology, float]:
    """A machine of about so many GPUs, and the share that its leaves are short of.

    Parameters
    ----------
    rng : Generator
    family : str
        One of `FAMILIES`.
    history : str
        One of `HISTORIES`.
    gpus : int
    """
    kind = FAMILIES[family]
    granted = _GRANTED[history](rng, kind, -(-gpus // kind.node))
    topology = _topology(rng, kind, granted)
    leaves = len(np.unique(topology.domain_of_node[1]))
    missing = 1 - granted.gpus.sum() / (leaves * kind.leaf * kind.node)
    return topology, float(missing)


def _whole(_rng: np.random.Generator, kind: Family, nodes: int) -> Granted:
    """Leaf after leaf, all of it."""
    count = -(-nodes // kind.leaf) * kind.leaf
    return Granted(np.arange(count), np.full(count, kind.node))


def _scheduled(rng: np.random.Generator, kind: Family, nodes: int) -> Granted:
    """What a scheduler leaves free that gives every job the first free nodes.

    The machine is full: the next job starts when enough others have ended.
    """
    total = int(rng.choice(MACHINES_OF_FREE) * nodes)
    total = -(-total // kind.leaf) * kind.leaf
    owner = np.full(total, -1)
    arrived = job = 0
    while arrived < TURNOVER * total:
        size = int(np.exp(rng.uniform(0, np.log(LARGEST_JOB * total))))
        _end_jobs(rng, owner, size)
        owner[np.flatnonzero(owner < 0)[:size]] = job
        arrived, job = arrived + size, job + 1
    _end_jobs(rng, owner, nodes)
    free = np.flatnonzero(owner < 0)
    return Granted(free, np.full(len(free), kind.node))


def _end_jobs(rng: np.random.Generator, owner: IntArray, wanted: int) -> None:
    """End jobs at random until so many nodes are free."""
    while (owner < 0).sum() < wanted:
        owner[owner == rng.choice(np.unique(owner[owner >= 0]))] = -1


def _faults(rng: np.random.Generator, kind: Family, nodes: int) -> Granted:
    """Whole leaves without nodes that are down."""
    is_down = float(rng.choice(DOWN))
    every = _whole(rng, kind, int(nodes / (1 - is_down)) + 1)
    up = rng.random(len(every.nodes)) >= is_down
    return Granted(every.nodes[up], every.gpus[up])


def _seven(rng: np.random.Generator, kind: Family, nodes: int) -> Granted:
    """Whole leaves of which some nodes have lost a GPU."""
    every = _whole(rng, kind, nodes)
    short = rng.random(len(every.nodes)) < float(rng.choice(SHORT))
    return Granted(every.nodes, every.gpus - short)


def _uneven(rng: np.random.Generator, kind: Family, nodes: int) -> Granted:
    """Leaves of which half or more of the places are filled."""
    leaves = -(-nodes // (kind.leaf * 3 // 4))
    filled = rng.integers(kind.leaf // 2, kind.leaf + 1, size=leaves)
    numbers = np.arange(leaves * kind.leaf)
    kept = numbers[numbers % kind.leaf < filled[numbers // kind.leaf]]
    return Granted(kept, np.full(len(kept), kind.node))


_GRANTED: dict[str, Callable[[np.random.Generator, Family, int], Granted]] = dict(
    zip(HISTORIES, (_whole, _scheduled, _faults, _seven, _uneven), strict=True)
)


def _topology(rng: np.random.Generator, kind: Family, granted: Granted) -> Topology:
    """The granted nodes, listed by place; names without leading zeros.

    Sorted as text such names leave the order of the machine, as on many real ones.
    """
    leaf = granted.nodes // kind.leaf
    rows = [granted.nodes, leaf, leaf // kind.unit, np.zeros_like(leaf)]
    found = [np.unique(row, return_inverse=True) for row in rows]
    uplink = float(rng.choice(UPLINKS))
    *inner, last = kind.tiers
    *_, leaf_tier, unit_tier, _ = kind.tiers
    tiers = (*inner, replace(last, oversubscription=uplink))
    names = tuple(f"{leaf_tier.name[0]}{n // kind.leaf}-n{n}" for n in granted.nodes)
    return Topology(
        name="granted",
        tiers=tiers,
        gpus_of_node=granted.gpus,
        bandwidth_factor=np.ones(len(names)),
        domain_of_node=np.stack([inverse for _, inverse in found]),
        domain_names=(
            names,
            tuple(f"{leaf_tier.name}{i}" for i in found[1][0]),
            tuple(f"{unit_tier.name}{i}" for i in found[2][0]),
            (last.name,),
        ),
        sources=("placement benchmark, drawn",),
    )
