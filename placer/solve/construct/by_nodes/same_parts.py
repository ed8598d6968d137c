"""Groups in the same parts on the hosts of a domain with a thin uplink.

Gradient groups have a member at the same place of each *row*: of each expert group of
a stage, or of each tp group. Hosts of a rack that hold the same part of several rows
send the rings of that part alone over the uplink, and none where the rack has all rows
of the stage. By hand: rows of 8 on hosts of 4, three in a rack. Whole rows bring eight
rings, halves of three rows four, and parts of 3, 3 and 2 three at the most.

A *column* is a part of all rows of a stage, a host for each row. Racks with a host for
each row hold columns of their smallest host; the hosts that are left over make more of
them, no longer than their uplinks carry at some pace. The fastest pace counts at which
the columns make up all stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.problem.axes import sizes_kept_whole

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

ROUNDING = 1e-9


class Column(NamedTuple):
    """A part of each row, and its hosts.

    Attributes
    ----------
    ranks : int
        Of each row.
    hosts : list of int
        One a row.
    """

    ranks: int
    hosts: list[int]


class Racks(NamedTuple):
    """Domains below a thin uplink.

    Attributes
    ----------
    hosts : list of list of int
        Of each, the largest first.
    gpus : ndarray, shape (N,)
        Of every host.
    uplink : ndarray, shape (L,), B/s
        Of each.
    """

    hosts: list[list[int]]
    gpus: IntArray
    uplink: FloatArray

    def columns(self, rows: int, pace: float, grain: int) -> list[Column]:
        """Columns with rings no slower, the longest first.

        Parameters
        ----------
        rows : int
        pace : float, s/B
        grain : int
            Ranks that share a host.
        """
        found: list[Column] = []
        left: list[Column] = []
        for hosts, uplink in zip(self.hosts, self.uplink.tolist(), strict=True):
            whole = len(hosts) // rows * rows
            first = range(0, whole, rows)
            found += [self._column(hosts[at : at + rows], grain) for at in first]
            if whole < len(hosts):
                rest = self._column(hosts[whole:], grain)
                rings = int(pace * uplink * (1 + ROUNDING)) // grain * grain
                left.append(Column(min(rest.ranks, rings), rest.hosts))
        left.sort(key=lambda one: -one.ranks)
        while sum(len(one.hosts) for one in left) >= rows:
            column = left.pop(0)
            while (missing := rows - len(column.hosts)) > 0:
                fits = (i for i, one in enumerate(left) if len(one.hosts) <= missing)
                more = left.pop(next(fits, 0))
                hosts = [*column.hosts, *more.hosts[:missing]]
                column = Column(min(column.ranks, more.ranks), hosts)
            found.append(column)
        return sorted(found, key=lambda one: -one.ranks)

    def _column(self, hosts: list[int], grain: int) -> Column:
        return Column(int(self.gpus[hosts].min()) // grain * grain, hosts)


def same_parts(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Rows in columns, at the fastest pace with which they fit."""
    incumbent.offer_all(islice(column_fills(problem), problem.fills_priced))


def column_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) for rows of each size."""
    machine, axes = problem.machine, problem.job.parallelism
    if problem.goal.name != "time" or problem.job.model is None or machine.node_tier:
        return
    inner = max(0, problem.model.fabric.scale_up_tier)
    thin = [
        tier
        for tier in range(inner + 1, len(machine.tiers))
        if machine.tiers[tier].oversubscription > 1
    ]
    if not thin:
        return
    home, gpus = machine.domain_of_node[thin[0] - 1], machine.gpus_of_node
    along = np.argsort(-gpus, kind="stable")
    racks = Racks(
        [along[home[along] == one].tolist() for one in range(int(home.max()) + 1)],
        gpus,
        problem.model.fabric.uplink_capacity[thin[0]],
    )
    rings = np.arange(int(gpus.max()) + 1)
    paces = np.unique(rings / np.unique(racks.uplink)[:, None])
    stage_of_rank = axes.coordinates["pp"]
    for size, grain in product(sizes_kept_whole(axes), dict.fromkeys((axes.tp, 1))):
        stages = stage_of_rank.reshape(-1, size)
        if size % grain or (stages != stages[:, :1]).any():
            continue
        rows = np.argsort(stages[:, 0], kind="stable").reshape(axes.pp, -1)
        for pace in paces.tolist():
            columns = racks.columns(rows.shape[1], pace, grain)
            host_of_rank = laid(rows, size, columns)
            if host_of_rank is not None:
                told = f"the same parts of groups of {size} on hosts of a domain"
                yield told, machine.gpus_on(host_of_rank)
                break


def laid(rows: IntArray, size: int, columns: list[Column]) -> IntArray | None:
    """Host of every rank, None where columns are too few; shape (R,).

    Parameters
    ----------
    rows : ndarray, shape (P, n)
        Of each stage.
    size : int
        Ranks of a row.
    columns : list of Column
        The longest first.
    """
    host = np.full((rows.size, size), -1)
    free = [column for column in columns if column.ranks]
    for stage in rows:
        begin = 0
        while begin < size:
            if not free:
                return None
            fits = (i for i, one in enumerate(free) if one.ranks <= size - begin)
            column = free.pop(next(fits, -1))
            end = begin + column.ranks
            host[stage, begin:end] = np.array(column.hosts)[:, None]
            begin = end
    return host.ravel()
