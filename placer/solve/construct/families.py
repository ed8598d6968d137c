"""The families of axes that number a job's ranks, as grids of coordinates.

Every family numbers all ranks: the dense axes; those of the experts; and, where
parameters are sharded in groups (HSDP), the shard groups and what lies across them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.job.model import Job

IntArray = npt.NDArray[np.int64]

DENSE = ("tp", "cp", "pp", "dp")
EXPERT = ("etp", "ep", "pp", "edp")
# What an edge of a shard group is worth where time is the objective: between cp and pp,
# since each micro-batch gathers whole parameters.
SHARD_WEIGHT = 100.0


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis, or the inner or outer part of one.

    Attributes
    ----------
    name : str
    size : int
    weight : float
        Of an edge between two neighbours.
    closed : bool
        Whether the last member is a neighbour of the first.
    coordinate : ndarray, shape (R,)
    """

    name: str
    size: int
    weight: float
    closed: bool
    coordinate: IntArray

    @property
    def worth(self) -> float:
        """Weight of the group's edges, for each of its members."""
        if self.name == "ep":
            return self.weight * (self.size - 1) / 2
        edges = self.size if self.closed else self.size - 1
        return self.weight * edges / self.size


def families(
    job: Job, weights: Mapping[str, float], objective: str
) -> list[list[Axis]]:
    """Families of axes with more than one member, heaviest first.

    Parameters
    ----------
    job : Job
    weights : mapping of str to float
        Of an edge of each axis.
    objective : str
        Shard groups count for ``time`` alone; hop cost has no edges of theirs.
    """
    axes = job.parallelism
    found = []
    if any(weights.get(name) for name in ("cp", "dp")) or axes.ep == 1:
        found.append(_family(job, DENSE, weights))
    if axes.ep > 1:
        found.append(_family(job, EXPERT, {"etp": weights.get("tp", 0.0), **weights}))
    mode = job.data_parallel
    members = axes.ranks_of_group["dp_cp"]
    shard = gcd(mode.shard_size, members.shape[1])
    if objective == "time" and mode.sharding == "hsdp" and 1 < shard < members.shape[1]:
        found.append(_shard_family(job, shard, weights))
    return found


def _family(job: Job, names: Sequence[str], weights: Mapping[str, float]) -> list[Axis]:
    axes = job.parallelism
    return _by_worth(
        Axis(
            name,
            axes.size(name),
            weights.get(name, 0.0),
            name not in ("pp", "ep"),
            axes.coordinates[name],
        )
        for name in names
    )


def _shard_family(job: Job, shard: int, weights: Mapping[str, float]) -> list[Axis]:
    """Axes of HSDP: neighbours in a gradient group form shard groups."""
    axes = job.parallelism
    members = axes.ranks_of_group["dp_cp"]
    place = np.empty(axes.world_size, dtype=np.int64)
    place[members] = np.arange(members.shape[1])
    across = members.shape[1] // shard
    at = axes.coordinates
    return _by_worth(
        [
            Axis("tp", axes.tp, weights.get("tp", 0.0), True, at["tp"]),
            Axis("pp", axes.pp, weights.get("pp", 0.0), False, at["pp"]),
            Axis("shard", shard, SHARD_WEIGHT, True, place % shard),
            Axis("across", across, weights.get("dp", 0.0), True, place // shard),
        ]
    )


def _by_worth(axes: Iterable[Axis]) -> list[Axis]:
    """Axes with more than one member, heaviest first; two members are one edge."""
    several = [
        replace(axis, closed=axis.closed and axis.size > 2)
        for axis in axes
        if axis.size > 1
    ]
    return sorted(several, key=lambda axis: -axis.worth)


def split(
    family: Sequence[Axis], label: IntArray
) -> tuple[list[Axis], list[Axis]] | None:
    """Axes inside a part and axes between parts, None unless parts are equal boxes.

    Parameters
    ----------
    family : sequence of Axis
    label : ndarray, shape (R,)
        Part of every rank.
    """
    first = label == label[0]
    inside, between = [], []
    cell = np.zeros(len(label), dtype=np.int64)
    for axis in family:
        width = len(np.unique(axis.coordinate[first]))
        if axis.size % width:
            return None
        if width > 1:
            inside.append(_part(axis, width, axis.coordinate % width))
        if width < axis.size:
            size = axis.size // width
            between.append(_part(axis, size, axis.coordinate // width))
            cell = cell * size + between[-1].coordinate
    parts, cells = int(label.max()) + 1, prod(axis.size for axis in between)
    pairs = len(np.unique(cell * parts + label))
    return (inside, between) if parts == cells == pairs else None


def _part(axis: Axis, size: int, coordinate: IntArray) -> Axis:
    """Runs of neighbours of an axis, or the members of one run.

    A ring cut into two runs has two edges between them. Whether the members of a run
    close a ring is never asked.
    """
    twice = axis.closed and size == 2 < axis.size
    return replace(
        axis,
        size=size,
        weight=axis.weight * (2 if twice else 1),
        closed=axis.closed and size > 2,
        coordinate=coordinate,
    )
