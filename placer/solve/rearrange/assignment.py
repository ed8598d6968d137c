"""Assignments of few, weighted pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ortools.graph.python import min_cost_flow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Pair = tuple[int, int]


def best_pairs(weights: Mapping[Pair, int]) -> list[Pair]:
    """Pairs of the largest total weight, each left and each right in one at most.

    A flow of least cost: every left sends one unit to a right, at the price of what the
    pair falls short of the largest weight, or past all of them at that weight.
    """
    left = {a: i for i, a in enumerate(dict.fromkeys(a for a, _ in weights))}
    right = {b: i for i, b in enumerate(dict.fromkeys(b for _, b in weights))}
    if len(weights) == len(left) == len(right):  # none competes with another
        return list(weights)
    source, sink = 0, len(left) + len(right) + 1
    first_right = len(left) + 1
    top = max(weights.values())
    flow = min_cost_flow.SimpleMinCostFlow()
    arcs = {
        pair: flow.add_arc_with_capacity_and_unit_cost(
            left[pair[0]] + 1, right[pair[1]] + first_right, 1, top - weight
        )
        for pair, weight in weights.items()
    }
    for i in range(len(left)):
        flow.add_arc_with_capacity_and_unit_cost(source, i + 1, 1, 0)
        flow.add_arc_with_capacity_and_unit_cost(i + 1, sink, 1, top)
    for i in range(len(right)):
        flow.add_arc_with_capacity_and_unit_cost(first_right + i, sink, 1, 0)
    flow.set_node_supply(source, len(left))
    flow.set_node_supply(sink, -len(left))
    flow.solve()
    return [pair for pair, arc in arcs.items() if flow.flow(arc)]


def completed(
    pairs: Iterable[Pair],
    left: Iterable[int],
    right: Iterable[int],
    kind: Sequence[int] | npt.NDArray[np.int64],
) -> dict[int, int]:
    """``pairs``, and a partner of its kind for every other left.

    That is itself where it can be, else the next in order. Both sides have as many of
    each kind.
    """
    found = dict(pairs)
    free = dict.fromkeys(right)
    for b in found.values():
        del free[b]
    others = [a for a in left if a not in found]
    for a in others:
        if a in free:
            found[a] = a
            del free[a]
    of_kind = defaultdict(list)
    for b in free:
        of_kind[kind[b]].append(b)
    queues = {key: iter(members) for key, members in of_kind.items()}
    for a in others:
        if a not in found:
            found[a] = next(queues[kind[a]])
    return found
