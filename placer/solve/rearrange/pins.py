"""Pinned ranks brought to their hosts in a placement that was found without pins.

First by an exchange of equal domains of the machine, which changes nothing. Then by
exchanging replicas, which keeps every requirement and changes the order of their rings
only, or other ranks that stay together.
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

EXCHANGES = 400  # of replicas, that are tried


class PinnedRanks:
    """Brings pinned ranks home, on one machine.

    ``problem``: without rules. ``limits``: the rules on its machine. ``offered``
    ((N,)): whether a node may be used; the others are cleared of ranks too. ``ends``:
    called between two exchanges; True gives up on a placement.
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

        ``gpu_of_rank`` ((R,)): a placement that may leave them elsewhere. ``legal``:
        whether a placement keeps the other rules.
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
        moved = self._exchanged(gpu_of_rank, self.limits.nodes_of_rank)
        if moved is not None:
            yield moved
        for units in self.units:
            moved = self._with_units(gpu_of_rank, units)
            if moved is not None:
                yield moved

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


def _rows(label: IntArray) -> IntArray:
    """Ranks with each label, a row a label."""
    return np.argsort(label, kind="stable").reshape(int(label.max()) + 1, -1)


def _is_uniform(label: IntArray) -> bool:
    return len(np.unique(np.bincount(label))) == 1
