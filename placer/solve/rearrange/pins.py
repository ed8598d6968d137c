"""Pinned ranks brought to their hosts in a placement that was found without pins.

First by exchanges that change nothing: equal domains of the machine, and the same after
turning the ring of replicas. Then by exchanging replicas, which keeps every requirement
and changes the order of their rings only, or other ranks that stay together. Last by
exchanging what single nodes, or whole domains, hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, IntArray, row_of_number
from placer.solve.tree.symmetry import Symmetry, on_other_nodes

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.rules import Limits

# Turns of the ring, exchanges of replicas, and hosts of a pin, tried for an exchange.
TURNS, EXCHANGES, HOSTS = 64, 400, 16


class PinnedRanks:
    """Brings pinned ranks home, on one machine.

    Parameters
    ----------
    problem : Problem
        Without rules.
    limits : Limits
        The rules on its machine.
    offered : ndarray, shape (N,)
        Whether a node may be used; the others are cleared of ranks too.
    ends : callable
        Asked between two exchanges; True gives up on a placement.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        offered: BoolArray,
        ends: Callable[[], bool],
    ) -> None:
        self.limits, self.ends = limits, ends
        self.closed = ~offered
        self.open_nodes = frozenset(np.flatnonzero(offered).tolist())
        self.topology = limits.topology
        self.symmetry = Symmetry(limits.topology)
        axes = limits.job.parallelism
        self.units = [_rows(axes.coordinates["dp"])]
        for label in problem.choices[0].label[::-1] if problem.choices else ():
            if 1 < label.max() + 1 < axes.world_size and _is_uniform(label):
                self.units.append(_rows(label))

    def settle(
        self, gpu_of_rank: IntArray, legal: Callable[[IntArray], bool]
    ) -> IntArray | None:
        """GPU of every rank with the pinned ones on their hosts, None if none is found.

        Parameters
        ----------
        gpu_of_rank : ndarray, shape (R,)
            A placement that may leave them elsewhere.
        legal : callable
            Whether a placement keeps the other rules.
        """
        if self._is_home(gpu_of_rank):
            return gpu_of_rank if legal(gpu_of_rank) else None
        for candidate in self._candidates(gpu_of_rank):
            if self.ends():
                break
            if self._is_home(candidate) and legal(candidate):
                return candidate
        return None

    def _is_home(self, gpu_of_rank: IntArray) -> bool:
        node_of_rank = self.topology.node_of_gpu[gpu_of_rank]
        if self.closed[node_of_rank].any():
            return False
        return self.limits.pins_hold(node_of_rank)

    def _candidates(self, gpu_of_rank: IntArray) -> Iterator[IntArray]:
        """Placements with all pins home, those that cost the least first."""
        tried: set[bytes] = set()
        pinned = list(self.limits.nodes_of_rank)
        for turned in self._turns(gpu_of_rank):
            key = turned[pinned].tobytes()
            if key not in tried:
                tried.add(key)
                moved = self._exchanged(turned, self.limits.nodes_of_rank)
                if moved is not None:
                    yield moved
        for units in self.units:
            moved = self._with_units(gpu_of_rank, units)
            if moved is not None:
                yield moved
        for tier in range(len(self.topology.tiers) - 1):
            moved = self._with_domains(gpu_of_rank, tier)
            if moved is not None:
                yield moved

    def _turns(self, gpu_of_rank: IntArray) -> Iterator[IntArray]:
        """The placement with the ring of replicas turned by 0, 1, ..."""
        rows = self.units[0]
        for shift in range(min(len(rows), TURNS)):
            if self.ends():
                return
            turned = gpu_of_rank.copy()
            turned[rows] = np.roll(gpu_of_rank[rows], shift, axis=0)
            yield turned

    def _exchanged(
        self, gpu_of_rank: IntArray, nodes_of_rank: dict[int, frozenset[int]]
    ) -> IntArray | None:
        """The placement after an exchange of equal domains that brings ranks home."""
        homes: dict[int, frozenset[int]] = {}
        node_of_rank = self.topology.node_of_gpu[gpu_of_rank]
        if self.closed.any():
            homes = dict.fromkeys(np.unique(node_of_rank).tolist(), self.open_nodes)
        for rank, hosts in nodes_of_rank.items():
            node = int(node_of_rank[rank])
            homes[node] = homes.get(node, hosts) & hosts
            if not homes[node]:
                return None
        worth = {(node, home): 1 for node, own in homes.items() for home in own}
        becomes = self.symmetry.exchange(worth)
        if any(int(becomes[node]) not in own for node, own in homes.items()):
            return None
        return on_other_nodes(self.topology, gpu_of_rank, becomes)

    def _with_units(self, gpu_of_rank: IntArray, units: IntArray) -> IntArray | None:
        """Units with pinned ranks put in the place of others, one after the other.

        ``units`` has a row of ranks a unit. Those next to the hosts are tried first.
        """
        hosts = self.limits.nodes_of_rank
        unit_of_rank = row_of_number(units)
        pinned = list(dict.fromkeys(int(unit_of_rank[rank]) for rank in hosts))
        settled: dict[int, frozenset[int]] = {}
        current, trials = gpu_of_rank, 0
        for position, unit in enumerate(pinned):
            own = {r: goal for r, goal in hosts.items() if unit_of_rank[r] == unit}
            wanted = settled | own
            for other in self._nearest(current, units, own):
                if other in pinned[:position] or trials >= EXCHANGES:
                    continue
                if self.ends():
                    return None
                trials += 1
                swapped = current.copy()
                swapped[units[unit]] = current[units[other]]
                swapped[units[other]] = current[units[unit]]
                moved = self._exchanged(swapped, wanted)
                if moved is not None:
                    current, settled = moved, wanted
                    break
            else:
                return None
        return current

    def _nearest(
        self, gpu_of_rank: IntArray, units: IntArray, own: dict[int, frozenset[int]]
    ) -> list[int]:
        """Units by how near they come to the hosts that some ranks are pinned to."""
        node_of_rank = self.topology.node_of_gpu[gpu_of_rank]
        hosts = np.array(sorted(set().union(*own.values())), dtype=np.int64)
        away = np.zeros(len(units), dtype=np.int64)
        for row in self.topology.domain_of_node:
            near = np.isin(row[node_of_rank], row[hosts])
            away += ~near[units].any(axis=1)
        nearest: list[int] = np.argsort(away, kind="stable").tolist()
        return nearest

    def _with_domains(self, gpu_of_rank: IntArray, tier: int) -> IntArray | None:
        """Pinned ranks brought home by exchanging what domains of ``tier`` hold."""
        row = self.topology.domain_of_node[tier]
        node_of_rank = self.topology.node_of_gpu[gpu_of_rank].copy()
        local = gpu_of_rank - self.topology.first_gpu_of_node[node_of_rank]
        settled: set[int] = set()
        for rank, hosts in self.limits.nodes_of_rank.items():
            here = int(row[node_of_rank[rank]])
            if int(node_of_rank[rank]) in hosts:
                settled.add(here)
                continue
            for host in sorted(hosts)[:HOSTS]:
                there = int(row[host])
                if not {here, there} & settled and self._swap(
                    node_of_rank, local, row, rank, host
                ):
                    settled.add(there)
                    break
            else:
                return None
        moved: IntArray = self.topology.first_gpu_of_node[node_of_rank] + local
        return moved

    def _swap(
        self,
        node_of_rank: IntArray,
        local: IntArray,
        row: IntArray,
        rank: int,
        host: int,
    ) -> bool:
        """Exchange what two domains hold, ``rank`` going to ``host``, if there is room.

        Nodes change places in order, the fullest on those with the most GPUs.
        """
        gpus = self.topology.gpus_of_node
        need = np.zeros(self.topology.num_nodes, dtype=np.int64)
        np.maximum.at(need, node_of_rank, local + 1)
        becomes = np.arange(self.topology.num_nodes)
        first = int(node_of_rank[rank])
        here, there = int(row[first]), int(row[host])
        for source, target in ((here, there), (there, here)):
            nodes, places = np.flatnonzero(row == source), np.flatnonzero(row == target)
            nodes = nodes[np.argsort(-need[nodes], kind="stable")]
            places = places[np.argsort(-gpus[places], kind="stable")]
            nodes = nodes[need[nodes] > 0]
            if source == here:
                nodes = np.append(first, nodes[nodes != first])
                places = np.append(host, places[places != host])
            if len(nodes) > len(places):
                return False
            places = places[: len(nodes)]
            if (need[nodes] > gpus[places]).any():
                return False
            becomes[nodes] = places
        node_of_rank[:] = becomes[node_of_rank]
        return True


def _rows(label: IntArray) -> IntArray:
    """Ranks with each label, a row a label."""
    return np.argsort(label, kind="stable").reshape(int(label.max()) + 1, -1)


def _is_uniform(label: IntArray) -> bool:
    return len(np.unique(np.bincount(label))) == 1
