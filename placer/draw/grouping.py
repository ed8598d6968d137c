"""What a map is coloured by, which groups leave their domain, and all that it shows.

Shapes: R ranks, G groups of M members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.base.errors import InputError
from placer.draw import palette
from placer.draw.machine_view import MachineView
from placer.job.axes import Parallelism
from placer.placement.parts import home_level, room_wanted
from placer.placement.plan import Plan

# How bad it is if two have one colour: they touch, share a domain, or are one apart.
_TOUCH, _SHARE, _NEXT = 64, 8, 1


@dataclass(frozen=True)
class Colours:
    """Colours of values."""

    of_value: dict[int, int]  # number of the colour, from 0, by value
    # Whether any two values in one domain or in two side by side have different ones.
    are_apart: bool


def colours_apart(
    value: IntArray, node: IntArray, slot: IntArray, domain: IntArray, count: int
) -> Colours:
    """A colour of ``count`` for each value, by greedy colouring in the map's order.

    Each value takes the colour that disturbs the values before it least, and of equals
    the one that was used longest ago.

    ``value``, ``node``, ``slot``, ``domain`` ((R,)): of each rank on the map: its
    value, and its place: nodes and domains numbered in the order in which they are
    shown, GPUs within the node.
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


_MOST_TOLD = 8  # values that a list of colours names
COLOURS = ("dp", "pp", "ep", "tp")

_WORDS = {
    "role": ("role", "instance"),
    "dp": ("DP replica", "replica"),
    "pp": ("PP stage", "pipeline"),
    "ep": ("EP group", "EP group"),
    "tp": ("TP group", "TP group"),
}


@dataclass(frozen=True, eq=False)
class Grouping:
    """Values that colour the ranks, and the groups whose place matters."""

    # ``dp``: replicas. ``pp``: stages; the groups are the pipelines. ``ep``, ``tp``:
    # groups of that axis, numbered by their lowest rank. ``role``: roles of a workload;
    # the groups are their instances.
    axis: str
    value_of_rank: IntArray  # (R,): what the colour shows
    values: tuple[int, ...]  # those on the map, ascending
    group_of_rank: IntArray  # (R,)
    # (G, M): ranks of every group; the first again where others have more.
    members: IntArray
    # Those that tell values from the ones near them; None where they form a scale.
    colours: Colours | None
    names: tuple[str, ...] = ()  # of roles, by value; empty where values are numbers

    def name(self, value: int) -> str:
        """What the map calls a value."""
        return self.names[value] if self.names else f"{value:,}"

    @property
    def number_of_rank(self) -> IntArray:
        """Number in the cell of each rank: value, or instance; shape (R,)."""
        if not self.names:
            return self.value_of_rank
        first = np.unique(self.value_of_rank[self.members[:, 0]], return_index=True)[1]
        return np.asarray(self.group_of_rank - first[self.value_of_rank])

    @property
    def value_noun(self) -> str:
        """What a value is called: ``PP stage``."""
        return _WORDS[self.axis][0]

    @property
    def group_noun(self) -> str:
        """What a group is called: ``pipeline``."""
        return _WORDS[self.axis][1]

    @property
    def is_ordered(self) -> bool:
        """Whether the colours form a scale, rather than tell neighbours apart."""
        return self.colours is None

    @property
    def repeats(self) -> bool:
        """Whether several values have one colour."""
        return len(self.values) > len(palette.DISTINCT)

    @property
    def meaning(self) -> str:
        """What one colour in two places says; empty if it may be any two values."""
        if self.colours is None or not self.colours.are_apart:
            return ""
        return f"neighbours differ, one colour across a gap is one {self.group_noun}"

    def legend(self) -> list[tuple[str, str]]:
        """Colours and what they say; one text without a colour where they repeat."""
        first, last = self.name(self.values[0]), self.name(self.values[-1])
        if self.repeats and not self.is_ordered:
            meaning = self.meaning or "colours repeat"
            return [("", f"{self.value_noun} {first} to {last}: {meaning}")]
        steps = min(len(self.values), _MOST_TOLD)
        told = [self.values[-(-i * len(self.values) // steps)] for i in range(steps)]
        noun = "" if self.names else f"{self.value_noun} "
        return [(self.colour(value), f"{noun}{self.name(value)}") for value in told]

    @cached_property
    def _index(self) -> dict[int, int]:
        """Place of every value on the map among them."""
        return {value: index for index, value in enumerate(self.values)}

    def shade(self, value: int) -> int:
        """Number that values have in common where they are shown as one."""
        if self.is_ordered:
            return palette.shade(self._index[value], len(self.values))
        return self._index[value]

    def colour(self, value: int) -> str:
        """Colour of a value."""
        if self.colours is None:
            return palette.ordered(self._index[value], len(self.values))
        return palette.distinct(self.colours.of_value[value])


def default_axis(view: MachineView, shown: BoolArray, level: int) -> str:
    """What a map is coloured by unless the user says.

    The first axis with members of which most cells hold few values, else the first.

    ``shown`` ((R,)): whether each rank is on the map. ``level``: level whose domains
    are the cells; -1 for GPUs.
    """
    axes = present(view.plan)
    if level < 0:
        return axes[0]
    cell = view.domain_of_rank[level, shown]
    for axis in axes:
        value = _groups(view.plan, axis)[0]
        held = np.unique(np.stack((cell, value[shown])), axis=1)[0]
        if axis == "pp" or np.median(np.bincount(held)) <= len(palette.DISTINCT):
            return axis
    return axes[0]


def grouping(view: MachineView, axis: str, shown: BoolArray, level: int) -> Grouping:
    """Values and groups of ``axis``, one of `COLOURS` or ``role``.

    Many stages are coloured by a scale. Other values have colours of which those of
    neighbours differ.

    ``shown`` ((R,)): whether each rank is on the map. ``level``: level of the domains
    that should be told apart.
    """
    axes = present(view.plan)
    if axis not in axes:
        why = "" if axis == "role" or "role" in axes else ": its size is 1"
        message = f"the job has no {axis}{why}"
        hint = f"it has {', '.join(axes)}"
        raise InputError(message, key="colour", hint=hint)
    value, group, members = _groups(view.plan, axis)
    values = tuple(np.unique(value[shown]).tolist())
    colours = _colours(view, axis, value, shown, values, level)
    names = _roles(view.plan) if axis == "role" else ()
    return Grouping(axis, value, values, group, members, colours, names)


def present(plan: Plan) -> list[str]:
    """What the ranks may be coloured by: those of a workload share no axis."""
    if plan.role_of_rank:
        return ["role"]
    axes = _axes(plan)
    return [a for a in COLOURS if axes.size(a) > 1 or a == "dp"]


def _roles(plan: Plan) -> tuple[str, ...]:
    """Names of the roles, in the order of their ranks."""
    return tuple(dict.fromkeys(plan.role_of_rank))


def _instances(plan: Plan) -> tuple[IntArray, IntArray, IntArray]:
    """Role and instance of every rank, and the ranks of every instance."""
    number = {role: index for index, role in enumerate(_roles(plan))}
    role = np.array([number[name] for name in plan.role_of_rank], dtype=np.int64)
    pairs = np.stack((role, np.asarray(plan.instance_of_rank)))
    _, first, instance, size = np.unique(
        pairs, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    place = np.arange(size.max())
    members = first[:, None] + np.where(place < size[:, None], place, 0)
    return role, instance.reshape(-1), members


def _groups(plan: Plan, axis: str) -> tuple[IntArray, IntArray, IntArray]:
    """Value and group of every rank, and the members of the groups."""
    if axis == "role":
        return _instances(plan)
    axes = _axes(plan)
    if axis == "dp":
        replica = axes.coordinates["dp"]
        members = np.argsort(replica, kind="stable").reshape(axes.dp, -1)
        return replica, replica, members
    members = axes.ranks_of_group[axis]
    group = np.empty(members.size, dtype=np.int64)
    group[members] = np.arange(len(members))[:, None]
    return axes.coordinates["pp"] if axis == "pp" else group, group, members


def _colours(
    view: MachineView,
    axis: str,
    value: IntArray,
    shown: BoolArray,
    values: tuple[int, ...],
    level: int,
) -> Colours | None:
    """Colours of values: in turn if they suffice, none for a scale, else apart."""
    count = len(palette.DISTINCT)
    if len(values) <= count:
        return Colours({value: index for index, value in enumerate(values)}, True)
    if axis == "pp":
        return None
    node = view.node_of_rank[shown]
    domain = view.domain_of_rank[level, shown]
    slot = view.plan.gpu_of_rank[shown]
    return colours_apart(value[shown], node, slot, domain, count)


def _axes(plan: Plan) -> Parallelism:
    axes = plan.axes
    if axes is None:
        message = "the plan does not give the sizes of its axes"
        raise InputError(message, key="job.parallelism")
    return axes


# Groups with an outline, at most: more would hide what they should point out.
_MOST_OUTLINED = 1 / 3


@dataclass(frozen=True, eq=False)
class Content:
    """What a map shows."""

    view: MachineView
    groups: Grouping
    nodes: IntArray  # the nodes shown, in the order of the view
    shown: BoolArray  # (R,): whether each rank is on one of them
    level: int  # level whose domains are the cells; -1 for GPUs

    @cached_property
    def level_of_group(self) -> IntArray:
        """Lowest level at which one domain holds the group, -1 of one rank; (G,)."""
        members = self.groups.members
        if members.shape[1] == 1:
            return np.full(len(members), -1)
        inside = self.view.domain_of_rank[:, members]
        level: IntArray = (inside == inside[:, :, :1]).all(axis=2).argmax(axis=0)
        return level

    @cached_property
    def home(self) -> int:
        """Level that can hold a group, not further in than NVLink goes; -1: a GPU."""
        view, axis = self.view, self.groups.axis
        room = [int(np.bincount(row).max()) for row in view.domain_of_rank]
        wanted = self.groups.members.shape[1]
        if axis not in ("dp", "role"):
            wanted = room_wanted(view.plan, axis)
        at = np.maximum(self.level_of_group, 0)
        held = np.bincount(at, minlength=len(room)).tolist()
        is_best = view.plan.bound.get("status") == "optimal"
        home = home_level(wanted, room, [held], view.scale_up_level, is_best)
        return max(home, view.scale_up_level)

    @property
    def home_name(self) -> str:
        """What that level is called."""
        return self.view.levels[self.home] if self.home >= 0 else "GPU"

    @cached_property
    def away(self) -> BoolArray:
        """Whether each group leaves its domain; shape (G,)."""
        return self.level_of_group > self.home

    @cached_property
    def outlined(self) -> BoolArray:
        """Groups with an outline: those that leave their domain, if few; shape (G,)."""
        few = self.away.mean() <= _MOST_OUTLINED
        return self.away if few else np.zeros_like(self.away)

    @cached_property
    def usual_ranks(self) -> int:
        """Ranks of most cells."""
        inside = self.view.domain_of_rank[self.level, self.shown]
        counts = np.unique(inside, return_counts=True)[1]
        return int(np.bincount(counts).argmax())
