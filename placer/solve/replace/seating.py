"""Free seats of a machine, and GPUs for cells that move to a base domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, IntArray, grouped

if TYPE_CHECKING:
    from placer.solve.replace.state import RepairState


class Seating:
    """Seats for the cells that have none, or leave theirs.

    A node-contiguous launch gives a cell a node of its own; a free one lets cells share
    nodes.

    Parameters
    ----------
    usable : ndarray of bool, shape (N,)
        Nodes on which newcomers may be put.

    Attributes
    ----------
    room : ndarray, shape (base domains,)
        Further cells that each base domain has seats for.
    """

    def __init__(self, state: RepairState, usable: BoolArray) -> None:
        self._state, self._usable = state, usable
        topology, before = state.topology, state.before
        free = np.ones(topology.num_gpus, dtype=bool)
        free[before.gpu_of_rank[~before.is_lost]] = False
        self._is_whole = state.job.launcher != "free"
        node_free = np.bincount(topology.node_of_gpu, free, topology.num_nodes).astype(
            np.int64
        )
        size = self._cell_size()
        slots = node_free // size
        if self._is_whole:
            slots = (node_free == topology.gpus_of_node) & (node_free >= size)
        base = topology.domain_of_node[state.tier]
        self.room: IntArray = np.bincount(base, slots * usable).astype(np.int64)

    def _cell_size(self) -> int:
        """Ranks of the largest cell that lost its seats."""
        state = self._state
        sizes = np.bincount(state.cell[state.before.is_lost])
        return int(sizes.max(initial=1))

    def seated(self, base_of_rank: IntArray) -> IntArray | None:
        """GPU of every rank when each is in the given base domain, None if seats lack.

        Who stays in its base domain and has a seat keeps it.
        """
        state = self._state
        topology, before = state.topology, state.before
        newcomer = before.is_lost | (base_of_rank != state.home)
        gpu_of_rank = np.where(newcomer, -1, before.gpu_of_rank)
        free = np.repeat(self._usable, topology.gpus_of_node)
        free[gpu_of_rank[~newcomer]] = False
        # A node of a node-contiguous launch takes one cell.
        taken = np.zeros(topology.num_nodes, dtype=bool)
        taken[topology.node_of_gpu[gpu_of_rank[~newcomer]]] = self._is_whole
        ranks = np.flatnonzero(newcomer)
        row = topology.domain_of_node[state.tier]
        for own in grouped(ranks, base_of_rank[ranks]):
            nodes = np.flatnonzero(row == base_of_rank[own[0]])
            nodes = nodes[~taken[nodes]]
            if not self._seat(own, nodes, free, gpu_of_rank):
                return None
        return gpu_of_rank

    def _seat(
        self, ranks: IntArray, nodes: IntArray, free: BoolArray, gpu_of_rank: IntArray
    ) -> bool:
        """Seat the newcomers of a base domain, those of one old node together.

        The fastest nodes come first, and of those the ones with the least left over.
        """
        state, topology = self._state, self._state.topology
        first = topology.first_gpu_of_node
        seats = {
            n: np.flatnonzero(free[first[n] : first[n + 1]]) for n in nodes.tolist()
        }
        queue = self._groups(ranks, state.before.domain[0])
        while queue:
            group = queue.pop(0)
            fitting = [n for n in seats if len(seats[n]) >= len(group)]
            if not fitting:
                cells = self._groups(group, state.cell)
                if len(cells) == 1:
                    return False
                queue = [*cells, *queue]
                continue
            fast = topology.speed_of_node, topology.bandwidth_factor
            node = min(
                fitting, key=lambda n: (-fast[0][n], -fast[1][n], len(seats[n]), n)
            )
            gpu_of_rank[group] = first[node] + seats[node][: len(group)]
            seats[node] = seats[node][len(group) :]
            if self._is_whole:
                del seats[node]
        return True

    @staticmethod
    def _groups(ranks: IntArray, label: IntArray) -> list[IntArray]:
        """Ranks of the same label together, the largest first."""
        groups = grouped(ranks, label[ranks])
        return sorted(groups, key=lambda group: (-len(group), int(group[0])))
