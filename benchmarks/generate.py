"""New machines with holes, and a job for each, from a seed.

Two kinds, as in the placement benchmark: racks of 18 trays with 4 GPUs, 8 racks a block
(a leaf is a rack), and hosts of 8 GPUs, 32 a unit (a leaf is a host). Trays, nodes and
racks are missing at random; the job takes most of what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.instances import (
    EXPERT_WEIGHTS,
    PRIORITY_WEIGHTS,
    RAW_WEIGHTS,
    Instance,
    build,
)
from placer.job.axes import Parallelism

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

KINDS = ("racks", "hosts")
GPUS_OF_TRAY, TRAYS_OF_RACK, RACKS_OF_BLOCK = 4, 18, 8
GPUS_OF_HOST, HOSTS_OF_UNIT = 8, 32
SMALLEST, LARGEST = 64, 8_192  # GPUs
TYPES = {
    "racks": (
        (Parallelism(tp=4, cp=2, pp=8), PRIORITY_WEIGHTS),
        (Parallelism(tp=4, cp=2, pp=8), RAW_WEIGHTS),
        (Parallelism(tp=8, pp=4), PRIORITY_WEIGHTS),
        (Parallelism(tp=2, cp=4, pp=4), PRIORITY_WEIGHTS),
        (Parallelism(tp=4, pp=12), PRIORITY_WEIGHTS),
        (Parallelism(ep=16, dp=16, pp=4), EXPERT_WEIGHTS),
    ),
    "hosts": (
        (Parallelism(tp=4, pp=8), PRIORITY_WEIGHTS),
        (Parallelism(tp=8, pp=8), PRIORITY_WEIGHTS),
        (Parallelism(tp=8, cp=2, pp=4), RAW_WEIGHTS),
        (Parallelism(tp=2, cp=2, pp=4), PRIORITY_WEIGHTS),
        (Parallelism(ep=8, dp=8, pp=8), EXPERT_WEIGHTS),
    ),
}


@dataclass(frozen=True)
class Severity:
    """Shares that are missing.

    Attributes
    ----------
    trays : float
        Of the trays of a rack.
    nodes : float
        Of the hosts of a unit.
    racks : float
        Of the racks of a block, or the units of hosts.
    """

    trays: float = 0.0
    nodes: float = 0.0
    racks: float = 0.0


def generate(
    seed: int,
    gpus: int,
    severity: Severity,
    kind: str = "racks",
    load: float = 0.9,
) -> tuple[Topology, Job]:
    """A machine and a job; the same for the same arguments.

    Parameters
    ----------
    seed : int
    gpus : int
        Of the machine when nothing is missing; rounded up to whole leaves.
    severity : Severity
    kind : str
        One of `KINDS`.
    load : float
        Share of the usable GPUs that the job takes, at least one replica.

    Raises
    ------
    ValueError
        If what is left holds no replica of the job.
    """
    rng = np.random.default_rng(seed)
    capacities, hier, distances = _machine(rng, gpus, severity, kind)
    left = int(capacities.sum())
    types = [
        (one, weights)
        for one, weights in TYPES[kind]
        if one.world_size <= _usable(capacities, one)
    ]
    if not types:
        raise ValueError(f"{left} GPUs are left, too few for a replica")
    one, weights = types[int(rng.integers(len(types)))]
    replicas = max(1, int(load * _usable(capacities, one)) // one.world_size)
    parallelism = replace(one, dp=one.dp * replicas)
    name = f"{kind}-{gpus}-{seed}"
    instance = Instance(parallelism, weights, hier, distances, lambda: capacities)
    topology, job = build(name, instance)
    return _with_plain_names(topology), job


def random_case(seed: int) -> tuple[Topology, Job]:
    """A machine of 64 to 8,192 GPUs with random holes, and a job for it."""
    rng = np.random.default_rng([seed, SMALLEST, LARGEST])
    octaves = np.log2(LARGEST / SMALLEST)
    # Another draw if too much is missing; the smallest replica has 16 ranks.
    while True:
        kind = KINDS[int(rng.integers(2))]
        gpus = int(SMALLEST * 2 ** rng.uniform(0, octaves))
        trays, nodes, racks = rng.choice([0.0, 0.02, 0.1, 0.3], size=3)
        severity = Severity(float(trays), float(nodes), float(racks) / 2)
        try:
            return generate(seed, gpus, severity, kind, float(rng.uniform(0.7, 1)))
        except ValueError:
            continue


def _machine(
    rng: np.random.Generator, gpus: int, severity: Severity, kind: str
) -> tuple[IntArray, tuple[int, ...], tuple[int, ...]]:
    """Capacities of the leaves, children a unit, distances."""
    if kind == "racks":
        leaves = -(-gpus // (GPUS_OF_TRAY * TRAYS_OF_RACK))
        blocks = -(-leaves // RACKS_OF_BLOCK)
        trays = rng.binomial(TRAYS_OF_RACK, 1 - severity.trays, size=leaves)
        capacities = GPUS_OF_TRAY * trays * (rng.random(leaves) >= severity.racks)
        hier, distances = (RACKS_OF_BLOCK, blocks), (1, 18, 24)
    else:
        leaves = -(-gpus // GPUS_OF_HOST)
        blocks = -(-leaves // HOSTS_OF_UNIT)
        is_up = rng.random(leaves) >= severity.nodes
        of_unit = rng.random(blocks) >= severity.racks
        capacities = GPUS_OF_HOST * is_up * np.repeat(of_unit, HOSTS_OF_UNIT)[:leaves]
        hier, distances = (HOSTS_OF_UNIT, blocks), (1, 9, 11)
    missing = hier[0] * hier[1] - leaves
    return np.append(capacities, np.zeros(missing, np.int64)), hier, distances


def _usable(capacities: IntArray, one: Parallelism) -> int:
    """GPUs that whole tensor or expert parallel groups can use."""
    group = max(one.tp, one.ep)
    return int((capacities // group * group).sum())


def _with_plain_names(topology: Topology) -> Topology:
    """Domains that are gone left out; host names whose numbers have no leading zeros.

    Sorted as text such names leave the order of the machine, as on many real ones.
    """
    machine = topology.select(np.arange(topology.num_nodes))
    blocks = machine.domain_of_node[1]
    names = tuple(f"b{block}-n{node}" for node, block in enumerate(blocks))
    domain_names = (names, *machine.domain_names[1:])
    return replace(machine, domain_names=domain_names)
