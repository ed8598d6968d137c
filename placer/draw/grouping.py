"""What a map is coloured by, and which groups leave their domain.

Shapes: R ranks, G groups of M members.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.draw import palette
from placer.errors import InputError, Problem

if TYPE_CHECKING:
    from placer.draw.machine_view import BoolArray, IntArray, MachineView
    from placer.job.axes import Parallelism
    from placer.placement.plan import Plan

COLOURS = ("dp", "pp", "ep", "tp")

_WORDS = {
    "dp": ("DP replica", "replica"),
    "pp": ("PP stage", "pipeline"),
    "ep": ("EP group", "EP group"),
    "tp": ("TP group", "TP group"),
}


@dataclass(frozen=True, eq=False)
class Grouping:
    """Values that colour the ranks, and the groups whose place matters.

    Attributes
    ----------
    axis : str
        ``dp``: replicas. ``pp``: stages; the groups are the pipelines. ``ep``, ``tp``:
        groups of that axis, numbered by their lowest rank.
    value_of_rank : ndarray, shape (R,)
        What the colour shows.
    values : tuple of int
        Those on the map, ascending.
    group_of_rank : ndarray, shape (R,)
    members : ndarray, shape (G, M)
        Ranks of every group.
    is_ordered : bool
        Whether the colours form a scale, rather than tell neighbours apart.
    """

    axis: str
    value_of_rank: IntArray
    values: tuple[int, ...]
    group_of_rank: IntArray
    members: IntArray
    is_ordered: bool

    @property
    def value_noun(self) -> str:
        """What a value is called: ``PP stage``."""
        return _WORDS[self.axis][0]

    @property
    def group_noun(self) -> str:
        """What a group is called: ``pipeline``."""
        return _WORDS[self.axis][1]

    @cached_property
    def _index(self) -> dict[int, int]:
        """Place of every value on the map among them."""
        return {value: index for index, value in enumerate(self.values)}

    def shade(self, value: int) -> int:
        """Number of a value's colour; values with the same number look alike."""
        if self.is_ordered:
            return palette.shade(self._index[value], len(self.values))
        return self._index[value]

    def colour(self, value: int) -> str:
        """Colour of a value."""
        if self.is_ordered:
            return palette.ordered(self._index[value], len(self.values))
        return palette.distinct(self._index[value])


@dataclass(frozen=True, eq=False)
class Leaving:
    """Which groups lie further apart than they need to.

    Attributes
    ----------
    home : int
        Level that could hold a group: the scale-up level, or the first beyond it where
        some domain has as many ranks as a group.
    level_of_group : ndarray, shape (G,)
        Lowest level at which one domain holds the group.
    """

    home: int
    level_of_group: IntArray

    @property
    def groups(self) -> BoolArray:
        """Whether each group leaves its domain; shape (G,)."""
        return self.level_of_group > self.home


def default_axis(plan: Plan) -> str:
    """What a map is coloured by unless the user says: the first axis with members."""
    sizes = _axes(plan)
    return next((axis for axis in COLOURS if sizes.size(axis) > 1), "dp")


def grouping(plan: Plan, axis: str, shown: BoolArray, one_by_one: bool) -> Grouping:
    """Values and groups of ``axis``, one of `COLOURS`.

    Many replicas or stages are coloured by a scale. So are many groups, but where ranks
    are shown ``one_by_one``: there neighbours should differ.

    Parameters
    ----------
    plan : Plan
    axis : str
    shown : ndarray, shape (R,)
        Whether each rank is on the map.
    one_by_one : bool

    Raises
    ------
    InputError
        If the plan does not give its axes, or the axis has no members.
    """
    axes = _axes(plan)
    if axes.size(axis) == 1 and axis != "dp":
        present = ", ".join(a for a in COLOURS if axes.size(a) > 1 or a == "dp")
        message = f"the job has no {axis}: its size is 1"
        raise InputError([Problem(message, key="colour", hint=f"it has {present}")])
    if axis == "dp":
        group = value = axes.coordinates["dp"]
        members = np.argsort(value, kind="stable").reshape(axes.dp, -1)
    else:
        members = axes.ranks_of_group[axis]
        group = np.empty(members.size, dtype=np.int64)
        group[members] = np.arange(len(members))[:, None]
        value = axes.coordinates["pp"] if axis == "pp" else group
    values = tuple(np.unique(value[shown]).tolist())
    in_order = axis in ("dp", "pp") or not one_by_one
    is_scale = len(values) > len(palette.DISTINCT) and in_order
    return Grouping(axis, value, values, group, members, is_scale)


def leaving(view: MachineView, groups: Grouping) -> Leaving:
    """Which groups reach beyond the domain that could hold them."""
    size = groups.members.shape[1]
    largest = [int(np.bincount(row).max()) for row in view.domain_of_rank]
    fits = next(i for i, ranks in enumerate(largest) if ranks >= size)
    inside = view.domain_of_rank[:, groups.members]
    level = (inside == inside[:, :, :1]).all(axis=2).argmax(axis=0)
    if size == 1:
        level = np.full(len(groups.members), -1)
    return Leaving(max(fits, view.scale_up_level), level)


def _axes(plan: Plan) -> Parallelism:
    axes = plan.axes
    if axes is None:
        message = "the plan does not give the sizes of its axes"
        raise InputError([Problem(message, key="job.parallelism")])
    return axes
