"""Halving all parts of a graph at once: few heavy edges cut, sizes as asked for.

Each part is coarsened until it is a small dense matrix, divided there by the moves of
Fiduccia and Mattheyses (1982, "A linear-time heuristic for improving network
partitions"), and improved on the way back by exchanges (Kabiljo et al. 2017, "Social
hash partitioner", VLDB 10(11)). Shapes: V vertices, P parts, K vertices of a part, S
starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.solve.construct.traffic.coarsening import Graph, levels

# Vertices of a part that is divided as a matrix, entries of all matrices together.
DENSE, DENSE_ENTRIES = 64, 4_000_000
STARTS = 6
# Coarse graphs are made afresh inside the halves found, so often in all (V-cycles;
# Walshaw 2004, "Multilevel refinement for combinatorial optimisation problems").
CYCLES = 2
PASSES = 4
# A vertex of a coarse graph is at most this share of its part.
FINENESS = 24
EXCHANGE_ROUNDS = 12
# Differences below this share of all weights are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Range:
    """Ranks that side 0 of each part may have."""

    # low and high: (P,).
    low: IntArray
    high: IntArray

    def missed_by(self, ranks: IntArray) -> IntArray:
        """Ranks that sides of some size, shape (P, ...), have too many or too few."""
        low, high = (
            edge.reshape(-1, *[1] * (ranks.ndim - 1)) for edge in (self.low, self.high)
        )
        missed: IntArray = np.maximum(np.maximum(low - ranks, ranks - high), 0)
        return missed

    def of(self, parts: IntArray) -> Range:
        """That of some parts."""
        return Range(self.low[parts], self.high[parts])


def halved(graph: Graph, wanted: Range, rng: np.random.Generator) -> BoolArray:
    """Whether each vertex goes to side 1 of its part; shape (V,).

    Sizes are met where the vertices allow it: they always are where all are alike.
    """
    whole = np.bincount(graph.part, graph.size, len(wanted.low)).astype(np.int64)
    for _ in range(CYCLES):
        chain = levels(graph, DENSE, whole // FINENESS, rng)
        side = _dense_halves(chain[-1][0], wanted, rng)
        for finer, label in chain[-2::-1]:
            side = _exchanged(finer, side[label], wanted, rng)
        graph = graph._replace(side=side)
        if len(chain) == 1:
            break
    return graph.side


def _dense_halves(graph: Graph, wanted: Range, rng: np.random.Generator) -> BoolArray:
    """Sides when parts are small, as many parts at a time as matrices have room."""
    count = np.bincount(graph.part, minlength=len(wanted.low))
    order = np.argsort(graph.part, kind="stable")
    first = np.cumsum(count) - count
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - first[graph.part[order]]
    width = int(count.max())
    at_once = max(1, DENSE_ENTRIES // width**2)
    side = np.zeros(len(order), dtype=bool)
    of_edge = graph.part[graph.edges[:, 0]]
    for start in range(0, len(count), at_once):
        parts = np.arange(start, min(start + at_once, len(count)))
        matrix = np.zeros((len(parts), width, width))
        own = (of_edge >= parts[0]) & (of_edge <= parts[-1])
        a, b = place[graph.edges[own]].T
        matrix[of_edge[own] - start, a, b] = graph.weight[own]
        matrix += matrix.transpose(0, 2, 1)
        vertices = np.flatnonzero((graph.part >= start) & (graph.part <= parts[-1]))
        rows = graph.part[vertices] - start
        size = np.zeros((len(parts), width), dtype=np.int64)
        size[rows, place[vertices]] = graph.size[vertices]
        known = np.zeros(size.shape, dtype=bool)
        known[rows, place[vertices]] = graph.side[vertices]
        found = _best_halves(matrix, size, known, wanted.of(parts), rng)
        side[vertices] = found[rows, place[vertices]]
    return side


def _best_halves(
    matrix: FloatArray,
    size: IntArray,
    known: BoolArray,
    wanted: Range,
    rng: np.random.Generator,
) -> BoolArray:
    """Side of every vertex of small parts, the best of some starts; shape (P, K).

    Parameters
    ----------
    matrix : ndarray, shape (P, K, K)
        Weight between two vertices.
    size : ndarray, shape (P, K), ranks
        0 for places without a vertex.
    known : ndarray, shape (P, K)
        Sides found before.
    """
    parts, width = size.shape
    side = np.ones((parts, STARTS, width), dtype=bool)
    # As known, half the vertices in order, growing from none, or from one at random.
    before = np.cumsum(size, axis=1) - size
    side[:, 0] = known
    side[:, 1] = before >= (wanted.high + wanted.low)[:, None] // 2
    for start in range(3, STARTS):
        seed = (rng.random(parts) * (size > 0).sum(axis=1)).astype(np.int64)
        side[np.arange(parts), start, seed] = False
    for _ in range(PASSES):
        side = _fm_pass(matrix, size, wanted, side)
    missed = wanted.missed_by((size[:, None] * ~side).sum(axis=2))
    t = np.where(side, 1.0, -1.0)
    kept_together = np.einsum("psk,psk->ps", t @ matrix, t)
    best = np.lexsort((-kept_together, missed), axis=1)[:, 0]
    found: BoolArray = side[np.arange(parts), best]
    return found


def _fm_pass(
    matrix: FloatArray, size: IntArray, wanted: Range, side: BoolArray
) -> BoolArray:
    """Sides after every vertex has moved once and the best moment is restored.

    Parameters
    ----------
    matrix, size, wanted
        As in `_best_halves`.
    side : ndarray, shape (P, S, K)
    """
    parts, starts, width = side.shape
    t = np.where(side, 1.0, -1.0)
    pull = t @ matrix
    ranks = (size[:, None] * ~side).sum(axis=2)
    largest = size.max(axis=1)[:, None, None]
    free = np.broadcast_to((size > 0)[:, None], side.shape).copy()
    missed = wanted.missed_by(ranks)
    best = side.copy()
    gained = np.zeros((parts, starts))
    best_missed, best_gained = missed, gained.copy()
    p, s = np.ogrid[:parts, :starts]
    for _ in range(width):
        after = ranks[:, :, None] + size[:, None] * np.where(t > 0, 1, -1)
        slack = wanted.missed_by(after)
        may = free & ((slack < missed[:, :, None]) | (slack <= largest))
        may &= ~((missed[:, :, None] > largest) & (slack >= missed[:, :, None]))
        gain = np.where(may, -t * pull, -np.inf)
        # Of moves that gain the same, that which misses less.
        gain -= ROUNDING * slack
        v = gain.argmax(axis=2)
        moves = may[p, s, v]
        if not moves.any():
            break
        step = np.where(moves, -2 * t[p, s, v], 0.0)
        gained += np.where(moves, 2 * gain[p, s, v], 0.0)
        pull += step[:, :, None] * matrix[p, v]
        ranks = np.where(moves, after[p, s, v], ranks)
        t[p, s, v] += step
        free[p, s, v] &= ~moves
        missed = wanted.missed_by(ranks)
        better = (missed < best_missed) | (
            (missed == best_missed) & (gained > best_gained * (1 + 1e-9) + 1e-12)
        )
        best[better] = t[better] > 0
        best_missed = np.where(better, missed, best_missed)
        best_gained = np.where(better, gained, best_gained)
    return best


def _exchanged(
    graph: Graph, side: BoolArray, wanted: Range, rng: np.random.Generator
) -> BoolArray:
    """Sides after rounds of exchanges between the two sides of each part."""
    best = side = _balanced(graph, side, wanted)
    best_rank = _rank(graph, side, wanted)
    for round_ in range(EXCHANGE_ROUNDS):
        gain = _gains(graph, side)
        side = _balanced(graph, _swapped(graph, side, gain, round_, rng), wanted)
        missed, cut = _rank(graph, side, wanted)
        better = (missed < best_rank[0]) | (
            (missed == best_rank[0]) & (cut < best_rank[1])
        )
        if not better.any():
            break
        best = np.where(better[graph.part], side, best)
        best_rank = (
            np.where(better, missed, best_rank[0]),
            np.where(better, cut, best_rank[1]),
        )
        side = best
    return best


def _gains(graph: Graph, side: BoolArray) -> FloatArray:
    """What the cut loses when a vertex changes its side; shape (V,)."""
    first, second = graph.edges.T
    t = np.where(side, 1.0, -1.0)
    count = len(side)
    pull = np.bincount(first, graph.weight * t[second], count)
    pull += np.bincount(second, graph.weight * t[first], count)
    return -t * pull


def _rank(graph: Graph, side: BoolArray, wanted: Range) -> tuple[IntArray, FloatArray]:
    """Ranks missed and weight cut of each part."""
    parts = len(wanted.low)
    ranks = np.bincount(graph.part, graph.size * ~side, parts).astype(np.int64)
    first, second = graph.edges.T
    cut = np.bincount(
        graph.part[first], graph.weight * (side[first] != side[second]), parts
    )
    return wanted.missed_by(ranks), cut.astype(np.float64)


def _swapped(
    graph: Graph,
    side: BoolArray,
    gain: FloatArray,
    round_: int,
    rng: np.random.Generator,
) -> BoolArray:
    """Sides after the best of each side have changed places, as far as both gain."""
    tie = rng.random(len(side))
    rows = []
    for own in (False, True):
        chosen = np.flatnonzero(side == own)
        order = chosen[np.lexsort((tie[chosen], -gain[chosen], graph.part[chosen]))]
        part = graph.part[order]
        place = np.arange(len(order)) - np.searchsorted(part, part)
        rows.append((part * (len(side) + 1) + place, order))
    (left, zeros), (right, ones) = rows
    _, i, j = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    out, back = zeros[i], ones[j]
    worth = gain[out] + gain[back] > 0
    # Neighbours that move together gain less than each by itself: not all at once.
    worth &= rng.random(len(out)) < (0.9, 0.5, 0.25)[round_ % 3]
    side = side.copy()
    side[out[worth]], side[back[worth]] = True, False
    return side


def _balanced(graph: Graph, side: BoolArray, wanted: Range) -> BoolArray:
    """Sides after those that lose least have left the sides that are too large."""
    for own in (False, True):
        ranks = np.bincount(graph.part, graph.size * ~side, len(wanted.low))
        surplus = wanted.low - ranks if own else ranks - wanted.high
        chosen = np.flatnonzero((side == own) & (surplus > 0)[graph.part])
        if not len(chosen):
            continue
        gain = _gains(graph, side)
        order = chosen[np.lexsort((-gain[chosen], graph.part[chosen]))]
        part, size = graph.part[order], graph.size[order]
        total = np.cumsum(size)
        start = np.searchsorted(part, part)
        inside = total - (total[start] - size[start])
        side = side.copy()
        side[order[inside <= surplus[part]]] = not own
    return side
