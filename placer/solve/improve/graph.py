"""The job's edges between units: sets of ranks that move together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.job.edges import AxisEdges

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class UnitGraph(NamedTuple):
    """Units and their neighbours, rows padded with the unit itself at weight 0.

    Attributes
    ----------
    size : ndarray, shape (U,), ranks
    neighbour : ndarray, shape (U, most neighbours), unit
    weight : ndarray, shape (U, most neighbours)
    degree : ndarray, shape (U,)
        Entries of a row that are no padding.
    """

    size: IntArray
    neighbour: IntArray
    weight: FloatArray
    degree: IntArray


class Links(NamedTuple):
    """Edges between units, those of one axis between the same two as one.

    Attributes
    ----------
    edges : ndarray, shape (E, 2), unit
    weight : ndarray, shape (E,)
    of_axis : ndarray, shape (E,)
        Weight of a single edge of the axis.
    """

    edges: IntArray
    weight: FloatArray
    of_axis: FloatArray


def links_between(axes: Sequence[AxisEdges], label: IntArray) -> Links:
    """The job's edges between the units that ``label`` gives its ranks."""
    units = int(label.max()) + 1
    edges, weight, of_axis = [], [], []
    for axis in axes:
        pairs, count = _bundled(np.sort(label[axis.edges], axis=1), units)
        edges.append(pairs)
        weight.append(axis.weight * count)
        of_axis.append(np.full(len(pairs), axis.weight))
    return Links(np.concatenate(edges), np.concatenate(weight), np.concatenate(of_axis))


def _bundled(ends: IntArray, units: int) -> tuple[IntArray, IntArray]:
    """Distinct pairs of different units and how often each occurs."""
    apart = ends[ends[:, 0] != ends[:, 1]]
    keys, count = np.unique(apart[:, 0] * units + apart[:, 1], return_counts=True)
    return np.stack((keys // units, keys % units), axis=1), count


def unit_graph(
    edges: IntArray, weight: FloatArray, label: IntArray, size: IntArray
) -> UnitGraph:
    """The graph between the units that ``label`` puts together.

    Parameters
    ----------
    edges : ndarray, shape (E, 2), smaller unit
    weight : ndarray, shape (E,)
    label : ndarray, shape (smaller units,)
        Unit of each, from 0 up.
    size : ndarray, shape (smaller units,), ranks
    """
    units = int(label.max()) + 1
    ends = np.sort(label[edges], axis=1)
    apart = ends[:, 0] != ends[:, 1]
    keys, which = np.unique(
        ends[apart, 0] * units + ends[apart, 1], return_inverse=True
    )
    source = np.concatenate((keys // units, keys % units))
    target = np.concatenate((keys % units, keys // units))
    bundled = np.tile(np.bincount(which, weight[apart], len(keys)), 2)
    by_source = np.argsort(source, kind="stable")
    source, target, bundled = source[by_source], target[by_source], bundled[by_source]
    degree = np.bincount(source, minlength=units)
    place = np.arange(len(source)) - (np.cumsum(degree) - degree)[source]
    width = max(1, int(degree.max()))
    neighbour = np.repeat(np.arange(units)[:, None], width, axis=1)
    weights = np.zeros((units, width))
    neighbour[source, place], weights[source, place] = target, bundled
    ranks = np.bincount(label, size).astype(np.int64)
    return UnitGraph(ranks, neighbour, weights, degree)
