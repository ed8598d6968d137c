"""The pipeline as a graph: every chunk and every message a vertex, its longest path."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

Vertex = tuple[str, int, int, int]  # what, rank, micro-batch, chunk


class Replica(NamedTuple):
    """Times of one replica's ranks: chunk forward and backward, and hop to the next.

    ``ends``: forward and backward of the very first and of the very last chunk.
    """

    forward: list[float]
    backward: list[float]
    hop: list[float]
    ends: list[float]


def longest_path(
    replica: Replica, micro_batches: int, chunks: int, *, overlap: bool
) -> float:
    """Seconds from the first forward to the last backward."""
    graph = _Graph(replica, micro_batches, chunks, overlap)
    return graph.longest()


class _Graph:
    def __init__(
        self, replica: Replica, micro_batches: int, chunks: int, overlap: bool
    ) -> None:
        self.replica = replica
        self.ranks = len(replica.hop)
        self.chunks = chunks
        self.weight: dict[Vertex, float] = {}
        self.after: dict[Vertex, list[Vertex]] = {}
        orders = [
            _order(rank, self.ranks, micro_batches, chunks)
            for rank in range(self.ranks)
        ]
        for order in orders:
            for vertex in order:
                self.weight[vertex] = self._work(vertex)
                self.after[vertex] = []
        for order in orders:
            self._run_in_turn(order, overlap)

    def _work(self, vertex: Vertex) -> float:
        what, rank, _, chunk = vertex
        is_backward = what == "B"
        if rank == 0 and chunk == 0:
            return self.replica.ends[is_backward]
        if rank == self.ranks - 1 and chunk == self.chunks - 1:
            return self.replica.ends[2 + is_backward]
        times = self.replica.backward if is_backward else self.replica.forward
        return times[rank]

    def _run_in_turn(self, order: list[Vertex], overlap: bool) -> None:
        """Edges of one rank: its own sequence, its messages, and theirs in turn."""
        last_on: dict[str, Vertex] = {}
        for i, vertex in enumerate(order):
            follower = order[i + 1] if i + 1 < len(order) else None
            if follower:
                self.after[vertex].append(follower)
            receiver, hop = self._receiver(vertex)
            if receiver is None:
                continue
            if hop is None:
                self.after[vertex].append(receiver)
                continue
            message = ("to " + vertex[0], *vertex[1:])
            self.weight[message] = self.replica.hop[hop]
            self.after[message] = [receiver]
            self.after[vertex].append(message)
            if vertex[0] in last_on:
                self.after[last_on[vertex[0]]].append(message)
            last_on[vertex[0]] = message
            if follower and not overlap:
                self.after[message].append(follower)

    def _receiver(self, vertex: Vertex) -> tuple[Vertex | None, int | None]:
        """Who needs a result, and the hop it takes (of the rank nearer the start)."""
        what, rank, micro_batch, chunk = vertex
        if what == "F":
            if rank + 1 < self.ranks:
                return ("F", rank + 1, micro_batch, chunk), rank
            if chunk + 1 < self.chunks:
                return ("F", 0, micro_batch, chunk + 1), rank
            return ("B", rank, micro_batch, chunk), None
        if rank:
            return ("B", rank - 1, micro_batch, chunk), rank - 1
        if chunk:
            return ("B", self.ranks - 1, micro_batch, chunk - 1), self.ranks - 1
        return None, None

    def longest(self) -> float:
        """Largest sum of weights along a path, by topological order."""
        waits_for = dict.fromkeys(self.weight, 0)
        for followers in self.after.values():
            for vertex in followers:
                waits_for[vertex] += 1
        start = dict.fromkeys(self.weight, 0.0)
        ready = deque(v for v, count in waits_for.items() if count == 0)
        latest, seen = 0.0, 0
        while ready:
            vertex = ready.popleft()
            seen += 1
            end = start[vertex] + self.weight[vertex]
            if vertex[0] in ("F", "B"):
                latest = max(latest, end)
            for follower in self.after[vertex]:
                start[follower] = max(start[follower], end)
                waits_for[follower] -= 1
                if waits_for[follower] == 0:
                    ready.append(follower)
        if seen < len(self.weight):
            raise ValueError("the schedule waits for itself")
        return latest


def _order(rank: int, ranks: int, micro_batches: int, chunks: int) -> list[Vertex]:
    """Forwards and backwards of a rank in the order it runs them.

    A last group that is not full keeps its empty places while turns are counted.
    """
    forwards: list[Vertex] = []
    backwards: list[Vertex] = []
    for first in range(0, micro_batches, ranks):
        for chunk in range(chunks):
            for micro_batch in range(first, first + ranks):
                forwards.append(("F", rank, micro_batch, chunk))
                backwards.append(("B", rank, micro_batch, chunks - 1 - chunk))
    ahead = ranks - rank - 1
    if chunks > 1:
        ahead = 2 * ahead + (chunks - 1) * ranks
    order = forwards[:ahead]
    rest = forwards[ahead:]
    while rest or backwards:
        if rest:
            order.append(rest.pop(0))
        order.append(backwards.pop(0))
    return [vertex for vertex in order if vertex[2] < micro_batches]
