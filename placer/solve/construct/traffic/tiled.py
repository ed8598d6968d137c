"""Placements whose domains hold tiles of the graph of what ranks send each other.

Tiles are grown for the domains of the fastest tier (`tiles.py`), in several sweeps, and
laid on the machine as they were grown, or grown into tiles of tiles for the next tier,
and so on outwards, or halved as the machine is. Where GPUs are spare the fullest
domains hold all, or all domains are as full, which leaves each uplink less to carry.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray, by_appearance, equal_runs
from placer.base.loading import load
from placer.solve.construct.traffic.tiles import QUICK, SWEEPS, Sweep, tiles
from placer.solve.problem.flows import Flows, bundled, flows_of
from placer.solve.tree.base import fastest_tier
from placer.solve.tree.capacity import (
    ancestor_of_domain,
    parent_of_domain,
    whole_sets,
)
from placer.solve.tree.fill import fill_domains, fullest_first, in_tree_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import networkx as nx

    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent
    from placer.topology.machine import Machine

# Loaded where a graph is halved.
NETWORKX = "networkx"

# Edges of a graph that is cut into tiles, and vertices of all that are cut, sweep
# after sweep; quick sweeps aside.
MOST_EDGES, MOST_VERTICES = 1_000_000, 16_000
PASSES = 10  # of exchanges between two halves, at the most


def tiled(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Domains filled with tiles, one after the other, in several sweeps."""
    job = problem.job
    if problem.goal.name != "time" or job.roles or not (job.groups or job.traffic):
        return
    tiling = _tiling_of(problem, incumbent.gpu_of_rank)
    if tiling is None:
        return
    sweeps = *QUICK, *SWEEPS[: MOST_VERTICES // tiling.units]
    for sweep, fill in product(sweeps, tiling.fills()):
        label = tiling.tiled(fill, sweep, budget.is_over)
        if label is None:
            return
        for depth in range(1, len(label) + 1):
            incumbent.offer("tiles", tiling.laid(fill, label[:depth]))
        # Without outer domains there is nothing to be halved for.
        if sweep not in QUICK and len(label) > 1:
            halved = tiling.halved(fill, label[0], budget.is_over)
            incumbent.offer("tiles, halved", tiling.laid(fill, halved))
        if incumbent.ends():
            return


class _Fill(NamedTuple):
    """Domains in the order in which they are filled, and the units of each."""

    # domains and sizes: (domains in use,).
    domains: IntArray
    sizes: IntArray


class _Tiling(NamedTuple):
    """What tiles are made of, and the domains that they fill."""

    problem: Problem
    tier: int  # of the domains
    # What each domain can hold, from the nodes out to the tier.
    takes: Sequence[IntArray]
    flows: Flows  # between units

    @property
    def label(self) -> IntArray:
        """Unit of each rank: what stays together on the tier; shape (R,)."""
        return np.asarray(self.problem.colocation.label[self.tier])

    @property
    def units(self) -> int:
        """How many there are, all of one size."""
        return int(self.label.max()) + 1

    def fills(self) -> list[_Fill]:
        """The fullest domains of the tree first; all as full, where that is another."""
        machine, tier = self.problem.machine, self.tier
        room = self.takes[tier] * self.units // self.problem.job.world_size
        nodes = fullest_first(machine, self.problem.capacity)
        fullest = by_appearance(machine.domain_of_node[tier][nodes])[0]
        first = self._filled(fullest, room)
        along = in_tree_order(machine, tier)
        used = self._filled(_evenly(machine, tier, room), room)
        sizes = np.zeros_like(room)
        sizes[used.domains] = used.sizes
        even = _Fill(along[sizes[along] > 0], sizes[along][sizes[along] > 0])
        same = np.array_equal(np.sort(first.domains), np.sort(even.domains))
        return [first] if same else [first, even]

    def _filled(self, order: IntArray, room: IntArray) -> _Fill:
        """Domains in an order, filled to the end."""
        ends = np.minimum(np.cumsum(room[order]), self.units)
        sizes = np.diff(ends, prepend=0)
        return _Fill(order[sizes > 0], sizes[sizes > 0])

    def tiled(
        self, fill: _Fill, sweep: Sweep, is_over: Callable[[], bool]
    ) -> IntArray | None:
        """Tile of each unit on each tier, the last aside; shape (tiers, U).

        Tiles of an outer tier are grown of those inside, as many as its domains hold.
        None where time is up.
        """
        machine, rows = self.problem.machine, [np.arange(self.units)]
        domains, sizes = fill
        for tier in range(self.tier, len(machine.tiers) - 1):
            flows = bundled(rows[-1][self.flows.edges], self.flows.weight, self.units)
            outside = self._outside(tier, domains)
            tile = tiles(
                flows, int(sizes.sum()), sizes.tolist(), outside, sweep, is_over
            )
            if tile is None:
                return None
            rows.append(tile[rows[-1]])
            if len(outside):
                begins, sizes = equal_runs(outside[0])
                domains = outside[0][begins]
        return np.array(rows[1:])

    def _outside(self, tier: int, domains: IntArray) -> IntArray:
        """Domains of the tiers further out, the last aside; shape (tiers, domains)."""
        machine, rows, at = self.problem.machine, [], domains
        for outer in range(tier + 1, len(machine.tiers) - 1):
            at = parent_of_domain(machine, outer)[at]
            rows.append(at)
        return np.array(rows, dtype=np.int64).reshape(-1, len(domains))

    def halved(
        self, fill: _Fill, tile: IntArray, is_over: Callable[[], bool]
    ) -> IntArray:
        """Tiles in the order in which outer domains send each other little; (1, U).

        Those of another size than most stay where they are, and where time is up those
        that are left.
        """
        flows = bundled(tile[self.flows.edges], self.flows.weight, len(fill.sizes))
        graph = load(NETWORKX).Graph()
        graph.add_nodes_from(range(len(fill.sizes)))
        ends, weights = flows.edges.tolist(), flows.weight.tolist()
        graph.add_weighted_edges_from(
            (*pair, weight) for pair, weight in zip(ends, weights, strict=True)
        )
        outside = self._outside(self.tier, fill.domains)
        alike = np.flatnonzero(fill.sizes == np.bincount(fill.sizes).argmax())
        order = np.arange(len(fill.sizes))
        order[alike] = _halved(graph, alike.tolist(), outside[:, alike], is_over)
        return np.argsort(order)[tile][None]

    def laid(self, fill: _Fill, tile: IntArray) -> IntArray:
        """GPU of every rank with tiles side by side, and those of tiles likewise."""
        problem, order = self.problem, np.lexsort(tile)
        domain = np.empty(self.units, dtype=np.int64)
        domain[order] = np.repeat(fill.domains, fill.sizes)
        label = problem.colocation.label
        along = np.lexsort(label[: self.tier + 1])
        node = fill_domains(problem.machine, self.takes, domain[self.label], along)
        return problem.machine.gpus_on(node)


def _halved(
    graph: nx.Graph[int],
    tiles: list[int],
    outside: IntArray,
    is_over: Callable[[], bool],
) -> list[int]:
    """Tiles for domains in turn: both halved again and again, side by side.

    Domains are halved between outer ones (Pellegrini 1994, dual recursive
    bipartitioning), tiles by exchanges (Kernighan and Lin 1970, Bell System Technical
    Journal 49). ``outside``: outer domains of each, shape (tiers, domains).
    """
    for row in outside[::-1]:
        ends = np.flatnonzero(np.diff(row)) + 1
        if len(ends):
            break
    else:
        return tiles
    cut = int(ends[np.abs(2 * ends - len(tiles)).argmin()])
    own = graph.subgraph(tiles).copy()
    halves = (_exchanged(own, half, is_over) for half in _halves(own, tiles, cut))
    part = min(halves, key=partial(load(NETWORKX).cut_size, own, weight="weight"))
    first = [tile for tile in tiles if tile in part]
    second = [tile for tile in tiles if tile not in part]
    return [
        *_halved(graph, first, outside[:, :cut], is_over),
        *_halved(graph, second, outside[:, cut:], is_over),
    ]


def _halves(graph: nx.Graph[int], tiles: list[int], size: int) -> Iterator[set[int]]:
    """So many tiles to begin with: the first, or the nearest to one at an end."""
    yield {*tiles[:size]}
    end = tiles[0]
    for _ in range(2):
        *near, end = load(NETWORKX).bfs_tree(graph, end)
        if len(near) >= size:
            yield {*near[:size]}


def _exchanged(
    graph: nx.Graph[int], part: set[int], is_over: Callable[[], bool]
) -> set[int]:
    """As many tiles as a part has, so that both sides send each other little.

    Pass after pass, since one of a large graph takes seconds.
    """
    halve = load(NETWORKX).community.kernighan_lin_bisection
    for _ in range(PASSES):
        if is_over():
            break
        # The two sides come in any order; of two as large the one most like it counts.
        sides = halve(graph, (part, {*graph} - part), max_iter=1)
        as_large = [side for side in sides if len(side) == len(part)]
        nearest = max(as_large, key=lambda side: len(side & part))
        if nearest == part:
            break
        part = nearest
    return part


def _evenly(machine: Machine, tier: int, room: IntArray) -> IntArray:
    """Domains in an order of which any first ones fill outer domains alike; (D,)."""
    order = np.argsort(-room, kind="stable")
    for outer in range(tier + 1, len(machine.tiers) - 1):
        home = ancestor_of_domain(machine, tier, outer)
        order = order[np.argsort(home[order], kind="stable")]
        begins, lengths = equal_runs(home[order])
        ends = np.cumsum(room[order])
        before = np.repeat((ends - room[order])[begins], lengths)
        whole = np.bincount(home, room)[home[order]]
        share = (ends - before - room[order] / 2) / np.maximum(whole, 1)
        order = order[np.argsort(share, kind="stable")]
    return order


def _tiling_of(problem: Problem, gpu_of_rank: IntArray | None) -> _Tiling | None:
    """What tiles are made of; None where units are not alike, or tied further out."""
    colocation, machine = problem.colocation, problem.machine
    sizes, tier = colocation.uniform_sizes(), fastest_tier(machine)
    if sizes is None or len(machine.tiers) < 2 or len(set(sizes[tier:-1])) > 1:
        return None
    takes = whole_sets(machine, problem.capacity, sizes[: tier + 1])
    if takes[-1].sum() < problem.job.world_size:
        return None
    if gpu_of_rank is None:
        gpu_of_rank = np.arange(problem.job.world_size)
    flows, label = flows_of(problem, gpu_of_rank), colocation.label[tier]
    own = bundled(label[flows.edges], flows.weight, int(label.max()) + 1)
    return (
        _Tiling(problem, tier, takes, own) if 0 < len(own.edges) <= MOST_EDGES else None
    )
