"""Placements whose domains hold tiles of the graph of what ranks send each other.

A *tile* is what one domain holds, a *box* one of a grid that is cut straight. Of 6 x 2
units on domains of 4, a letter each, boxes and tiles that are none:

    a a b b c c        a a a b b c
    a a b b c c        a b b c c c

Tiles for the domains of the fastest tier are boxes (`boxes.py`), or grown in several
sweeps (`tiles.py`). They are laid on the machine as they come, or halved as it is.
Where GPUs are spare the fullest domains hold all, or all domains are as full, which
leaves each uplink less to carry. Shapes: U units, which are what stays together on that
tier; D domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray, by_appearance, equal_runs, grouped
from placer.base.loading import load
from placer.solve.construct.boxes import BoxTier, boxes
from placer.solve.construct.tiles import Sweep, tiles
from placer.solve.problem.compiled import Problem
from placer.solve.problem.flows import Flows, flows_of, merged
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.tree.domains import ancestor_of_domain, fastest_tier, whole_sets
from placer.solve.tree.fill import fill_domains, fullest_first, in_tree_order
from placer.topology.machine import Machine

if TYPE_CHECKING:
    import networkx as nx

# Loaded where a graph is halved.
NETWORKX = "networkx"

# Name, domains in turn (D,), and tile of each unit on that tier and those further out.
_Candidate = tuple[str, IntArray, IntArray]
_Ends = Callable[[], bool]


def tiled(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Domains filled with boxes, then with tiles in several sweeps."""
    job = problem.job
    if problem.goal.name != "time" or job.roles or not (job.groups or job.traffic):
        return
    tiling = _tiling_of(problem, incumbent.gpu_of_rank)
    if tiling is None:
        return
    for name, domains, rows in tiling.candidates(budget.is_over):
        gpu_of_rank = tiling.laid(domains, rows)
        if gpu_of_rank is not None:
            incumbent.offer(name, gpu_of_rank)
        if incumbent.ends():
            return


class _Tiling(NamedTuple):
    """What tiles are made of, and the domains that they fill."""

    problem: Problem
    tier: int  # of the domains
    # What each domain can hold, from the nodes out to the tier.
    takes: Sequence[IntArray]
    flows: Flows  # between units

    @property
    def label(self) -> IntArray:
        """Unit of each rank; shape (R,)."""
        return np.asarray(self.problem.colocation.label[self.tier])

    @property
    def units(self) -> int:
        """How many there are, all of one size."""
        return int(self.label.max()) + 1

    @property
    def room(self) -> IntArray:
        """Units that each domain can hold; shape (D,)."""
        return self.takes[-1] * self.units // self.problem.job.world_size

    def candidates(self, is_over: _Ends) -> Iterator[_Candidate]:
        """Boxes first, then what is grown."""
        params = self.problem.params
        quick, ample = (
            [Sweep(busiest, beam) for busiest in (False, True)]
            for beam in (1, params.tiled_beam)
        )
        ample = ample[: params.tiled_vertices // self.units]
        for rows in boxes(self.flows, self.units, self._tiers(), params):
            # Boxes in boxes may need any, since some of an outer one are left out.
            count = len(self.room) if len(rows) > 1 else int(rows.max()) + 1
            for domains, _ in self._fills(count):
                yield from self._with_halves("boxes", domains, rows, is_over)
        for sweep, (domains, sizes) in product((*quick, *ample), self._fills()):
            outside = self._outside(self.tier, domains)
            tile = tiles(self.flows, sizes.tolist(), outside, sweep, is_over)
            if tile is None:
                return
            if sweep.beam > 1:
                yield from self._with_halves("tiles", domains, tile[None], is_over)
            else:
                yield "tiles", domains, tile[None]

    def _fills(self, count: int = 0) -> list[tuple[IntArray, IntArray]]:
        """Domains in turn and units of each: so many domains, or as few as hold all.

        The fullest of the tree first; then all as full, where that is another.
        """
        machine, tier, room = self.problem.machine, self.tier, self.room
        nodes = fullest_first(machine, self.problem.capacity)
        fullest = by_appearance(machine.domain_of_node[tier][nodes])[0]
        place = np.argsort(in_tree_order(machine, tier))
        found: list[tuple[IntArray, IntArray]] = []
        for order in (fullest, _evenly(machine, tier, room)):
            sizes = np.diff(np.minimum(np.cumsum(room[order]), self.units), prepend=0)
            kept = np.flatnonzero(room[order])[:count] if count else sizes > 0
            domains, sizes = order[kept], sizes[kept]
            if not found:
                found.append((domains, sizes))
            elif {*domains} != {*found[0][0]}:
                along = np.argsort(place[domains])
                found.append((domains[along], sizes[along]))
        return found

    def _tiers(self) -> list[BoxTier]:
        """Tiers from that of the domains out to those with uplinks."""
        machine, fabric = self.problem.machine, self.problem.model.fabric
        latency = float(fabric.latency[self.tier + 1 :].min())
        rate = float(fabric.bandwidth[self.tier + 1 :].max())
        used = self.room > 0
        room = int(self.room[used].min())
        found = [BoxTier(room, int(used.sum()), 0, rate, latency, is_port=True)]
        for tier in range(self.tier + 1, len(machine.tiers) - 1):
            inside = np.bincount(machine.domain_around[tier - 1], used)
            used = inside > 0
            least, number = int(inside[used].min()), int(used.sum())
            room *= least
            rate = float(fabric.uplink_capacity[tier + 1].min())
            found.append(BoxTier(room, number, least, rate, latency, is_port=False))
        return found

    def _with_halves(
        self, name: str, domains: IntArray, rows: IntArray, is_over: _Ends
    ) -> Iterator[_Candidate]:
        """Tiles as they come, and halved where there are domains further out."""
        yield name, domains, rows
        if self.tier + 2 < len(self.problem.machine.tiers) and len(rows) == 1:
            yield f"{name}, halved", domains, self.halved(domains, rows[0], is_over)

    def _outside(self, tier: int, domains: IntArray) -> IntArray:
        """Domains further out than a tier, the last aside; shape (tiers, domains)."""
        machine, rows, at = self.problem.machine, [], domains
        for outer in range(tier + 1, len(machine.tiers) - 1):
            at = machine.domain_around[outer - 1][at]
            rows.append(at)
        return np.array(rows, dtype=np.int64).reshape(-1, len(domains))

    def halved(self, domains: IntArray, tile: IntArray, is_over: _Ends) -> IntArray:
        """Tiles in the order in which outer domains send each other little; (1, U).

        Those in domains of another size than most stay where they are, and where time
        is up those that are left.
        """
        flows = merged(tile[self.flows.edges], self.flows.weight, len(domains))
        graph = load(NETWORKX).Graph()
        graph.add_nodes_from(range(len(domains)))
        ends, weights = flows.edges.tolist(), flows.weight.tolist()
        graph.add_weighted_edges_from(
            (*pair, weight) for pair, weight in zip(ends, weights, strict=True)
        )
        room = self.room[domains]
        alike = np.flatnonzero(room == np.bincount(room).argmax())
        outside = self._outside(self.tier, domains)
        order = np.arange(len(domains))
        order[alike] = _halved(graph, alike.tolist(), outside[:, alike], is_over)
        return np.argsort(order)[tile][None]

    def laid(self, domains: IntArray, rows: IntArray) -> IntArray | None:
        """GPU of every rank with tiles side by side, and those of tiles likewise.

        None where a domain has no room for its tile.
        """
        problem, outside = self.problem, self._outside(self.tier, domains)
        homes = np.array([domains, *outside])[: len(rows)]
        domain = _homes(rows, homes)
        count = np.bincount(domain[domain >= 0], minlength=len(self.room))
        if domain.min() < 0 or (count > self.room).any():
            return None
        label = problem.colocation.label
        along = np.lexsort(label[: self.tier + 1])
        node = fill_domains(problem.machine, self.takes, domain[self.label], along)
        return None if node is None else problem.machine.gpus_on(node)


def _homes(rows: IntArray, domains: IntArray) -> IntArray:
    """Domain of each unit, -1 where there are too few.

    Tiles of the outermost row go to its domains in turn, and those inside likewise.
    """
    found = np.full(rows.shape[1], -1)
    places = by_appearance(domains[-1])[1]
    for own, inside in zip(
        grouped(np.arange(rows.shape[1]), rows[-1]),
        grouped(np.arange(domains.shape[1]), places),
        strict=False,
    ):
        if len(rows) == 1:
            found[own] = domains[0, inside[0]]
        else:
            found[own] = _homes(rows[:-1, own], domains[:-1, inside])
    return found


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
    while not is_over():
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
    own = merged(label[flows.edges], flows.weight, int(label.max()) + 1)
    is_cut = 0 < len(own.edges) <= problem.params.tiled_edges
    return _Tiling(problem, tier, takes, own) if is_cut else None
