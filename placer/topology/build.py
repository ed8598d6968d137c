"""The last step of every reader: tiers, nodes and domains to a `Topology`.

Then the links between its switches: which tiers have them, how many times they are
oversubscribed.

Shapes: T tiers, N nodes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np

from placer.assumed import OVERSUBSCRIPTION, Assumption
from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.topology.islands import Islands, launcher_indices
from placer.topology.links import Link
from placer.topology.model import Tier, Topology

MAX_GPUS = 1 << 24


@dataclass(frozen=True, eq=False)
class Nodes:
    """Every node a machine lists, usable or not."""

    domains: IntArray  # (T, N): domain of each node at each tier
    # Names of the domains of each tier; those of tier 0 are the node names.
    names: tuple[tuple[str, ...], ...]
    # (N,): healthy GPUs of each node; a node without any is left out of the machine.
    gpus: IntArray
    # (N,): share of the nominal bandwidth a node reaches, in (0, 1].
    bandwidth_factor: FloatArray
    # Nodes that must not be used, with the reason.
    unavailable: Mapping[str, str] = field(default_factory=dict)
    islands: Islands | None = None  # the tiers inside the nodes, when there are any
    # (N,): share of the usual speed at which a node's GPUs work, in (0, 1]; None where
    # all work alike.
    compute_factor: FloatArray | None = None
    links: tuple[Link, ...] = ()  # between domains that are slower than their tier says

    @property
    def usable(self) -> BoolArray:
        """Which nodes may hold ranks; shape (N,)."""
        listed = np.array([n not in self.unavailable for n in self.names[0]])
        return listed & (self.gpus > 0)

    @property
    def left_out(self) -> dict[str, str]:
        """The nodes that may not hold ranks, with the reason."""
        found = dict(self.unavailable)
        for node in np.flatnonzero(self.gpus == 0).tolist():
            found.setdefault(self.names[0][node], "no GPUs")
        return found

    @property
    def problem(self) -> str:
        """Why no machine can be made of these nodes; empty when one can."""
        usable = self.usable
        if not usable.any():
            total = len(usable)
            return f"no usable node: all {total} are unavailable or have no GPUs"
        num_gpus = int(self.gpus[usable].sum())
        if num_gpus > MAX_GPUS:
            return f"{num_gpus} GPUs, the most is {MAX_GPUS}"
        return ""


NO_NODES = Nodes(np.zeros((0, 0), np.int64), ((),), np.zeros(0, np.int64), np.zeros(0))


def build(
    name: str,
    tiers: Sequence[Tier],
    nodes: Nodes,
    sources: Sequence[str] = (),
    description: str = "",
) -> Topology:
    """The machine made of the usable nodes (see `Nodes.problem`)."""
    unavailable = nodes.left_out
    machine = Topology(
        name=name,
        tiers=tuple(tiers),
        gpus_of_node=nodes.gpus,
        bandwidth_factor=nodes.bandwidth_factor,
        domain_of_node=nodes.domains,
        domain_names=nodes.names,
        unavailable=unavailable,
        sources=tuple(sources),
        description=description,
        listed=nodes,
        islands=nodes.islands,
        gpu_index=launcher_indices(nodes.islands) if nodes.islands else None,
        compute_factor=nodes.compute_factor,
        links=nodes.links,
    )
    if unavailable or not _in_order(nodes.domains):
        machine = machine.select(np.flatnonzero(nodes.usable))
    return replace(machine, sha256=digest(machine))


def _in_order(domains: IntArray) -> bool:
    """Whether the domains of every tier are numbered as they appear, node by node.

    Then the machine reads back from its document as it is.
    """
    highest = np.maximum.accumulate(domains, axis=1)
    return bool((np.diff(highest, axis=1, prepend=-1) <= 1).all())


def digest(machine: Topology) -> str:
    """SHA-256 of what a placement depends on: tiers, nodes and domains, in order.

    Name, sources, affinity and the nodes left out do not count.
    """
    tiers = [_facts(tier) for tier in machine.tiers]
    text = json.dumps([tiers, machine.domain_names])
    found = hashlib.sha256(text.encode())
    for array, kind in (
        (machine.domain_of_node, "<i8"),
        (machine.gpus_of_node, "<i8"),
        (machine.bandwidth_factor, "<f8"),
    ):
        found.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    if islands := machine.islands:
        inside = [
            [_facts(tier) for tier in islands.tiers],
            islands.sizes,
            islands.members,
        ]
        found.update(json.dumps(inside).encode())
        found.update(np.ascontiguousarray(islands.gpus, dtype="<i8").tobytes())
    if machine.compute_factor is not None:
        found.update(np.asarray(machine.compute_factor, dtype="<f8").tobytes())
    if machine.links:
        links = sorted(
            (link.tier, sorted(link.between), link.bandwidth, link.latency)
            for link in machine.links
        )
        found.update(json.dumps(links).encode())
    return found.hexdigest()


def _facts(tier: Tier) -> tuple[object, ...]:
    """What the digest holds of a tier; rails and parts only where there are some."""
    *facts, rails, apart = astuple(tier)
    return (*facts, rails, apart) if apart else (*facts, *([rails] if rails else []))


def uplink_tiers(machine: Topology) -> list[int]:
    """Indices of the tiers that links of switches lead into, several of them.

    A node's own links are its NICs: these are as fast as they are.
    """
    domains = [len(names) for names in machine.domain_names]
    return [
        t
        for t in range(max(1, machine.scale_up_tier) + 1, len(machine.tiers))
        if domains[t - 1] > 1
    ]


def assumed_uplinks(machine: Topology) -> tuple[Assumption, ...]:
    """That they are not oversubscribed, where no source said whether they are."""
    thin = uplink_tiers(machine)
    if not thin or any(machine.tiers[t].oversubscription != 1 for t in thin):
        return ()
    tier = machine.tiers[thin[-1]].name
    why = "no source says how many times uplinks are oversubscribed"
    return (Assumption(OVERSUBSCRIPTION, 1, why, f"--oversubscription {tier}=N"),)


def oversubscribed(machine: Topology, ratio: float) -> Topology:
    """The machine with all links between switches so many times oversubscribed.

    It is not the machine of the sources any more, so it has no digest.
    """
    tiers: list[Tier] = [*machine.tiers]
    for t in uplink_tiers(machine):
        tiers[t] = replace(tiers[t], oversubscription=float(ratio))
    return replace(machine, tiers=tuple(tiers), sha256="")
