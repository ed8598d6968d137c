"""Placements whose domains hold tiles of the graph of what ranks send each other.

Tiles are grown for the domains of the base tier (`tiles.py`), in several sweeps, and
laid on the machine in three ways: as they were grown; grown into tiles of tiles for the
next tier, and so on outwards; or divided down the tree, each tile in one piece
(`partition.py`), which finds what thin uplinks and groups ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray, by_appearance, equal_runs
from placer.solve.construct.traffic.partition import partitioned_nodes
from placer.solve.construct.traffic.tiles import QUICK, SWEEPS, Sweep, tiles
from placer.solve.problem.flows import Flows, bundled, flows_of
from placer.solve.tree.base import base_tier, paced
from placer.solve.tree.capacity import parent_of_domain, whole_sets
from placer.solve.tree.fill import fill_domains, fullest_first

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

# Edges of a graph that is cut into tiles, and vertices of all that are cut, sweep
# after sweep; quick sweeps aside.
MOST_EDGES, MOST_VERTICES = 1_000_000, 16_000


def tiled(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Domains filled with tiles, one after the other, in several sweeps."""
    job = problem.job
    if problem.goal.name != "time" or job.roles or not (job.groups or job.traffic):
        return
    ground = _ground_of(problem, incumbent.gpu_of_rank)
    if ground is None:
        return
    fill = ground.fill()
    for sweep in *QUICK, *SWEEPS[: MOST_VERTICES // ground.units]:
        label = ground.tiled(fill, sweep, budget.is_over)
        if label is None:
            return
        for depth in range(1, len(label) + 1):
            incumbent.offer("tiles", ground.laid(fill, label[:depth]))
        if sweep not in QUICK:
            divided = ground.divided(label[0], budget.is_over)
            if divided is not None:
                incumbent.offer("tiles, divided", divided)
        if incumbent.ends():
            return


class _Fill(NamedTuple):
    """Domains in the order in which they are filled, and the units of each."""

    # domains and sizes: (domains in use,).
    domains: IntArray
    sizes: IntArray


class _Ground(NamedTuple):
    """What tiles are made of, and the domains that they fill."""

    problem: Problem
    tier: int  # of the domains
    # What each domain can hold, from the nodes out to the last tier.
    takes: Sequence[IntArray]
    # flows and own: between ranks, and between units.
    flows: Flows
    own: Flows

    @property
    def label(self) -> IntArray:
        """Unit of each rank: what stays together on the tier; shape (R,)."""
        return np.asarray(self.problem.colocation.label[self.tier])

    @property
    def units(self) -> int:
        """How many there are, all of one size."""
        return int(self.label.max()) + 1

    def fill(self) -> _Fill:
        """Domains filled to the end, the fullest of the tree first."""
        machine = self.problem.machine
        room = self.takes[self.tier] * self.units // self.problem.job.world_size
        nodes = fullest_first(machine, self.problem.capacity)
        domains = by_appearance(machine.domain_of_node[self.tier][nodes])[0]
        ends = np.minimum(np.cumsum(room[domains]), self.units)
        sizes = np.diff(ends, prepend=0)
        return _Fill(domains[sizes > 0], sizes[sizes > 0])

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
            flows = bundled(rows[-1][self.own.edges], self.own.weight, self.units)
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

    def laid(self, fill: _Fill, tile: IntArray) -> IntArray:
        """GPU of every rank with tiles side by side, and those of tiles likewise."""
        problem, order = self.problem, np.lexsort(tile)
        domain = np.empty(self.units, dtype=np.int64)
        domain[order] = np.repeat(fill.domains, fill.sizes)
        takes, label = self.takes[: self.tier + 1], problem.colocation.label
        along = np.lexsort(label[: self.tier + 1])
        node = fill_domains(problem.machine, takes, domain[self.label], along)
        return problem.machine.gpus_on(node)

    def divided(self, tile: IntArray, is_over: Callable[[], bool]) -> IntArray | None:
        """GPU of every rank with the tiles divided down the tree; None: no room."""
        problem = self.problem
        label = problem.colocation.label.copy()
        label[self.tier : -1] = tile[self.label]
        rng = np.random.default_rng(problem.seed)
        node_of_rank = partitioned_nodes(
            problem.machine, problem.capacity, label, self.flows, rng, is_over
        )
        if node_of_rank is None:
            return None
        return problem.machine.gpus_on(node_of_rank)


def _ground_of(problem: Problem, gpu_of_rank: IntArray | None) -> _Ground | None:
    """What tiles are made of; None where units are not alike, or tied further out."""
    colocation, machine = problem.colocation, problem.machine
    sizes, tier = colocation.uniform_sizes(), base_tier(paced(machine))
    if sizes is None or len(machine.tiers) < 2 or len(set(sizes[tier:-1])) > 1:
        return None
    unit = [*sizes[:tier], *[sizes[tier]] * (len(sizes) - tier)]
    takes = whole_sets(machine, problem.capacity, unit)
    if takes[-1].sum() < problem.job.world_size:
        return None
    if gpu_of_rank is None:
        gpu_of_rank = np.arange(problem.job.world_size)
    flows, label = flows_of(problem, gpu_of_rank), colocation.label[tier]
    own = bundled(label[flows.edges], flows.weight, int(label.max()) + 1)
    if not 0 < len(own.edges) <= MOST_EDGES:
        return None
    return _Ground(problem, tier, takes, flows, own)
