"""Units and domains for exchanges on step time, and placements to begin with."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.improve.layout import layout_with
from placer.solve.problem.colocation import join
from placer.solve.tree.fill import choose_children, tree_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.job.model import Job
    from placer.solve.improve.layout import Layout
    from placer.solve.problem.compiled import Problem
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

# Axes whose groups stay whole where they lie inside domains, heaviest first. Pipelines
# and replicas are what is exchanged.
KEPT_WHOLE = ("tp", "etp", "ep", "cp")
DENSE, EXPERT = ("tp", "cp", "pp", "dp"), ("etp", "ep", "pp", "edp")


def time_layout(problem: Problem, gpu_of_rank: IntArray) -> Layout | None:
    """The layout in which a placement's step time is improved, None without one.

    Parameters
    ----------
    problem : Problem
    gpu_of_rank : ndarray, shape (R,)
        The best placement so far.
    """
    topology, parts = problem.machine, problem.parts
    if parts.uniform_sizes() is None:
        return None
    # Nodes that differ are told apart; equal ones of a domain are not.
    is_even = len(np.unique(topology.bandwidth_factor)) == 1
    innermost = _as_fast_as_a_node(topology) if is_even else 0
    home = topology.domain_of_gpu[innermost][gpu_of_rank]
    label = _whole_groups(problem.job, parts.label[innermost], home)
    return layout_with(problem, label, innermost, outward=is_even)


def coordinates(job: Job, layout: Layout) -> IntArray:
    """Coordinate of each unit along every axis in which units differ; shape (A, U)."""
    first = np.unique(layout.label, return_index=True)[1]
    axes = EXPERT if job.parallelism.ep > 1 else DENSE
    of_unit = [job.parallelism.coordinates[axis][first] for axis in axes]
    varying = [values for values in of_unit if values.max() > 0]
    return np.array(varying, dtype=np.int64).reshape(-1, layout.units)


def laid_along(layout: Layout, coordinate: IntArray) -> Iterator[IntArray]:
    """Domain of each unit when units lie along the tree, axis by axis; shape (U,).

    Every order of the axes, in three ways: domains are filled one after the other, all
    share in what is left free, or each value of the outermost axis has domains of its
    own.
    """
    room = layout.room // layout.size
    if room.sum() < layout.units:
        return
    nodes = tree_order(layout.topology)
    along = layout.topology.domain_of_node[layout.tier][nodes]
    domains = along[np.sort(np.unique(along, return_index=True)[1])]
    seen = set()
    for order in permutations(coordinate):
        sequence = np.lexsort(order) if order else np.arange(layout.units)
        outermost = int(order[-1].max()) + 1 if order else 1
        for places in _places(domains, room[domains], layout.units, outermost):
            home = np.empty(layout.units, dtype=np.int64)
            home[sequence] = places
            if home.tobytes() not in seen:
                seen.add(home.tobytes())
                yield home


def _places(
    domains: IntArray, room: IntArray, units: int, values: int
) -> Iterator[IntArray]:
    """Domain of each unit in sequence, in the ways of `laid_along`."""
    yield np.repeat(domains, choose_children(room, units))
    yield np.repeat(domains, _in_proportion(room, units))
    if units % values == 0:
        shares = _of_their_own(room, units // values, values)
        yield np.concatenate([np.repeat(domains, share) for share in shares])


def _in_proportion(room: IntArray, units: int) -> IntArray:
    """Units each domain gets when all are equally full, up to rounding."""
    exact = room * units / room.sum()
    share: IntArray = np.floor(exact).astype(np.int64)
    missing = units - int(share.sum())
    share[np.argsort(share - exact, kind="stable")[:missing]] += 1
    return share


def _of_their_own(room: IntArray, units: int, values: int) -> Sequence[IntArray]:
    """Units each domain gets of every value, with no domain shared if that fits."""
    free, shares = room.copy(), []
    for left in range(values - 1, -1, -1):
        share = choose_children(free, units)
        shares.append(share)
        untouched = np.where(share > 0, 0, free)
        enough = untouched.sum() >= left * units
        free = untouched if enough else free - share
    return shares


def _as_fast_as_a_node(topology: Topology) -> int:
    """Largest tier, the last aside, inside which links are those of a node."""
    tiers = topology.tiers
    links = [(t.bandwidth, t.latency, t.efficiency, t.scale_up) for t in tiers]
    tier = 0
    while tier + 2 < len(tiers) and links[tier + 1] == links[0]:
        tier += 1
    return tier


def _whole_groups(job: Job, label: IntArray, home: IntArray) -> IntArray:
    """Parts joined to groups that lie inside domains, up to the first that does not."""
    for axis in KEPT_WHOLE:
        members = job.parallelism.ranks_of_group[axis]
        if (home[members] != home[members][:, :1]).any():
            break
        joined = np.unique(join(label, members), return_inverse=True)[1]
        if len(np.unique(np.bincount(joined))) > 1:
            break
        label = joined
    return label
