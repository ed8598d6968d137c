"""Groups of hosts by the gaps between the bandwidths of their pairs.

Single linkage (Sneath 1957): the bandwidths, sorted, are cut where neighbours differ by
more than a ratio; hosts joined by pairs above a cut are a group. Groups of a higher cut
lie inside those of a lower one, so they are tiers.

Shapes: N hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray

MIN_GAP = 1.3
"""Bandwidths of two tiers differ by at least this ratio."""

MAX_ASYMMETRY = 1.25
"""Two directions of a pair differ by at most this: less than a gap between tiers."""

_MAX_DIVISIONS = 10
_MAX_SLOW = 1000


@dataclass
class Clusters:
    """Divisions of the hosts, the finest first."""

    # Group of each host, for each division that neither has all apart nor all in one.
    groups: list[list[int]]
    # Median of the pairs that each division joins and the one before does not; the last
    # is of the pairs that none joins. NaN where none was measured.
    speeds: list[float]
    # Pairs inside a group that are slower than its cut, the first thousand.
    slow: list[tuple[int, int]]
    chained: int  # first host of a group most of whose pairs are slow; -1 without one


def clusters_of(speeds: FloatArray) -> Clusters:
    """The divisions that gaps show.

    ``speeds``: (N, N), symmetric; NaN on the diagonal and for pairs not measured.
    """
    count = len(speeds)
    found = Clusters([], [], [], -1)
    apart = ~np.eye(count, dtype=bool)
    last = np.arange(count)
    for cut in _cuts(speeds):
        group = _components(speeds >= cut)
        if group.max() == 0 or len(found.groups) == _MAX_DIVISIONS:
            break
        if group.max() == last.max():
            continue
        same = group[:, None] == group[None, :]
        slow = np.argwhere(np.triu(same & apart & (speeds < cut)))
        found.slow += [(a, b) for a, b in slow[:_MAX_SLOW].tolist()]
        if found.chained < 0:
            found.chained = _chained(speeds < cut, same, group)
        found.groups.append(group.tolist())
        found.speeds.append(median(speeds[same & apart]))
        apart &= ~same
        last = group
    found.speeds.append(median(speeds[apart]))
    found.slow = found.slow[:_MAX_SLOW]
    return found


def _cuts(speeds: FloatArray) -> list[float]:
    """The lowest bandwidth of each band, the fastest first."""
    values = np.unique(speeds[~np.isnan(speeds)])
    if not len(values):
        return []
    starts = np.flatnonzero(values[1:] >= values[:-1] * MIN_GAP) + 1
    lowest: list[float] = values[np.concatenate(([0], starts))].tolist()
    return lowest[::-1]


def _components(joined: BoolArray) -> IntArray:
    """Number of each host's connected component, by first appearance; shape (N,)."""
    group = np.full(len(joined), -1, dtype=np.int64)
    number = 0
    for host in range(len(joined)):
        if group[host] >= 0:
            continue
        front = np.array([host])
        while len(front):
            group[front] = number
            front = np.flatnonzero(joined[front].any(axis=0) & (group < 0))
        number += 1
    return group


def _chained(slow: BoolArray, same: BoolArray, group: IntArray) -> int:
    """First host of a group most of whose pairs are slow; -1 without one."""
    sizes = np.bincount(group)
    in_group = np.bincount(group, (slow & same).sum(axis=1))
    bad = np.flatnonzero(in_group > sizes * (sizes - 1) / 2)
    return int(np.flatnonzero(group == bad[0])[0]) if len(bad) else -1


def median(values: FloatArray) -> float:
    """The median of those that are not NaN; NaN without any."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")
