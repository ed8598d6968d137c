"""Sets of ranks of one shape, two of which can exchange their GPUs.

Shapes: R ranks, U units of k ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology


@dataclass(frozen=True, eq=False)
class Peers:
    """Units of one kind, and the one that is asked about.

    Attributes
    ----------
    name : str
        What one is: ``rank``, a tier, ``tp group``, ``stage``, ``replica``; where two
        are the same, ``rack = replica``.
    members : ndarray, shape (U, k)
        Ranks of each, ascending; no rank is in two.
    own : int
    """

    name: str
    members: IntArray
    own: int

    @property
    def ranks(self) -> IntArray:
        """Ranks of the unit that is asked about; shape (k,)."""
        row: IntArray = self.members[self.own]
        return row

    @cached_property
    def others(self) -> IntArray:
        """Units that it can exchange places with; shape (U-1,)."""
        return np.delete(np.arange(len(self.members)), self.own)

    def exchanged(self, gpu_of_rank: IntArray, other: int) -> IntArray:
        """GPU of every rank after the exchange with a unit, rank by rank; (R,)."""
        found = gpu_of_rank.copy()
        found[self.ranks] = gpu_of_rank[self.members[other]]
        found[self.members[other]] = gpu_of_rank[self.ranks]
        return found


def units_with(
    topology: Topology,
    job: Job,
    gpu_of_rank: IntArray,
    ranks: IntArray,
    more: Mapping[str, IntArray] = MappingProxyType({}),
) -> list[Peers]:
    """Kinds of units of which one holds all of ``ranks``, smallest units first.

    A single rank, what a domain below the cluster holds, the groups of tensor and
    expert parallelism, a pipeline stage of a replica, a replica, and the kinds in
    ``more`` (name -> ranks of each unit, shape (U, k)). Domains that hold
    another number of ranks are left out, and kinds without a second unit of the shape.
    """
    found: list[Peers] = []
    usual = _kinds(topology, job, gpu_of_rank, ranks)
    for name, rows in dict((*usual, *more.items())).items():
        members = rows[np.argsort(rows[:, 0])]
        own = np.flatnonzero((members == ranks[0]).any(axis=1))
        if not own.size or len(members) < 2:
            continue
        units = Peers(name, members, int(own[0]))
        same = [i for i, k in enumerate(found) if np.array_equal(k.members, members)]
        if same:
            kind = found[same[0]]
            found[same[0]] = replace(kind, name=f"{kind.name} = {name}")
        elif np.isin(ranks, units.ranks).all():
            found.append(units)
    return sorted(found, key=lambda kind: kind.members.shape[1])


def _kinds(
    topology: Topology, job: Job, gpu_of_rank: IntArray, ranks: IntArray
) -> Iterator[tuple[str, IntArray]]:
    axes = job.parallelism
    at = axes.coordinates
    yield "rank", np.arange(job.world_size)[:, None]
    machine = topology.by_island
    for t, tier in enumerate(machine.tiers[:-1]):
        domain = machine.domain_of_gpu[t][gpu_of_rank]
        held = np.bincount(domain)
        alike = np.flatnonzero(held[domain] == held[domain[ranks[0]]])
        by_domain = alike[np.argsort(domain[alike], kind="stable")]
        yield tier.name, by_domain.reshape(-1, held[domain[ranks[0]]])
    for axis in ("tp", "ep"):
        if axes.size(axis) > 1:
            yield f"{axis} group", axes.ranks_of_group[axis]
    stage = np.argsort(at["dp"] * axes.pp + at["pp"], kind="stable")
    yield "stage", stage.reshape(axes.dp * axes.pp, -1)
    yield "replica", np.argsort(at["dp"], kind="stable").reshape(axes.dp, -1)
