"""Few colours for many groups, so that groups near each other differ.

Where two groups that touch, or lie in one rack or in two racks side by side, have
different colours, one colour on both sides of a rack's edge is one group on two racks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placer.base.arrays import IntArray

# How bad it is if two have one colour: they touch, share a domain, or are one apart.
_TOUCH, _SHARE, _NEXT = 64, 8, 1


@dataclass(frozen=True)
class Colours:
    """Colours of values.

    Attributes
    ----------
    of_value : dict
        Number of the colour, from 0, by value.
    are_apart : bool
        Whether any two values in one domain or in two side by side have different
        ones.
    """

    of_value: dict[int, int]
    are_apart: bool


def colours_apart(
    value: IntArray, node: IntArray, slot: IntArray, domain: IntArray, count: int
) -> Colours:
    """A colour of ``count`` for each value, by greedy colouring in the map's order.

    Each value takes the colour that disturbs the values before it least, and of equals
    the one that was used longest ago.

    Parameters
    ----------
    value, node, slot, domain : ndarray, shape (R,)
        Of each rank on the map: its value, and its place: nodes and domains numbered
        in the order in which they are shown, GPUs within the node.
    count : int

    Returns
    -------
    Colours
    """
    order = np.lexsort((slot, node))
    value, node, slot, domain = (row[order] for row in (value, node, slot, domain))
    values, first, index = np.unique(value, return_index=True, return_inverse=True)
    held = np.unique(np.stack((domain, index)), axis=1)
    is_crowded = bool(np.unique(held[0], return_counts=True)[1].max() > count)
    near = _neighbours(
        [*_touching(index, node, slot), *_around(held, count)], len(values)
    )
    colour = np.full(len(values), -1)
    used = np.full(count, -1)
    for turn, own in enumerate(np.argsort(first).tolist()):
        others, weights = near[own]
        known = colour[others] >= 0
        cost = np.bincount(colour[others][known], weights[known], minlength=count)
        best = min(range(count), key=lambda c: (cost[c], used[c], c))
        colour[own], used[best] = best, turn
    clash = any(
        (colour[others] == colour[i]).any() for i, (others, _) in enumerate(near)
    )
    number = dict(zip(values.tolist(), colour.tolist(), strict=True))
    return Colours(number, not (is_crowded or clash))


_Pairs = tuple["IntArray", "IntArray", int]


def _touching(index: IntArray, node: IntArray, slot: IntArray) -> Iterator[_Pairs]:
    """Values of cells side by side, and of cells one above the other."""
    yield index[:-1], index[1:], _TOUCH
    column = np.lexsort((node, slot))
    same = slot[column[:-1]] == slot[column[1:]]
    yield index[column[:-1][same]], index[column[1:][same]], _TOUCH


def _around(held: IntArray, count: int) -> Iterator[_Pairs]:
    """Values of one domain and of the next, where the colours could suffice.

    ``held`` has a column for each domain and each value in it, sorted.
    """
    _, place, sizes = np.unique(held[0], return_inverse=True, return_counts=True)
    few = sizes[place] <= count
    for apart in range(1, 2 * count):
        one, other = slice(None, -apart), slice(apart, None)
        both = few[one] & few[other]
        for step, weight in ((0, _SHARE), (1, _NEXT)):
            near = both & (place[other] - place[one] == step)
            yield held[1, one][near], held[1, other][near], weight


def _neighbours(pairs: Sequence[_Pairs], size: int) -> list[tuple[IntArray, IntArray]]:
    """For each value those near it, and the greatest weight of each."""
    one = np.concatenate([row for a, b, _ in pairs for row in (a, b)])
    other = np.concatenate([row for a, b, _ in pairs for row in (b, a)])
    weight = np.concatenate([np.full(2 * len(a), w) for a, _, w in pairs])
    order = np.lexsort((-weight, other, one))
    one, other, weight = one[order], other[order], weight[order]
    new = np.ones(len(one), dtype=bool)
    new[1:] = (one[1:] != one[:-1]) | (other[1:] != other[:-1])
    new &= one != other
    one, other, weight = one[new], other[new], weight[new]
    ends = np.searchsorted(one, np.arange(size + 1))
    return [
        (other[start:end], weight[start:end]) for start, end in pairwise(ends.tolist())
    ]
