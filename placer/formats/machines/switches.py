"""Switches above each other: which domains every node lies in, level by level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from placer.base.errors import Problem
from placer.formats.machines.findings import Level, some

MAX_HEIGHT = 12
_LONGEST = 400

_NAMES = ("leaf", "spine", "core")


@dataclass
class Switch:
    """One switch, or a block of nodes, which has nothing below it."""

    name: str
    place: Problem  # a problem without a message, which says where it stands
    nodes: list[str]  # nodes on its ports
    children: list[str] = field(default_factory=list)  # switches below it

    def problem(self, message: str, hint: str = "") -> Problem:
        """A problem with it."""
        return replace(self.place, message=message, hint=hint)


def switch_levels(count: int) -> tuple[Level, ...]:
    """Levels of ``count`` layers of switches, closest first: leaf, spine, core, ..."""
    more = (f"layer{i + 1}" for i in range(len(_NAMES), count))
    names = [*_NAMES, *more][:count]
    return tuple(map(_inside, names, [*names[1:], ""]))


def aws_levels(depth: int) -> tuple[Level, ...]:
    """Layers of network nodes of AWS, closest first, which count from the top."""
    names = [f"network-node-{d}" for d in range(depth, 0, -1)]
    return tuple(map(_inside, names, [*names[1:], ""]))


def _inside(name: str, above: str) -> Level:
    return Level(name, inside=above)


def switch_domains(
    switches: Sequence[Switch],
    problems: list[Problem],
    shown: Mapping[str, str] | None = None,
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Domain of each switch's nodes at every height, closest first, and what to note.

    Switches share a domain where those up to its height join them. So the spines over
    the same leaves, or over some of the same, are one domain, and so are leaves with
    the same nodes; the domains of a tree are its switches. What is a loop or too deep
    goes to ``problems``, and then nothing is found. ``shown``: names to show instead of
    those of switches.
    """
    height = _heights(switches, problems)
    if not height:
        return {}, []
    by_name = {switch.name: switch for switch in switches}
    paths: dict[str, tuple[str, ...]] = dict.fromkeys(by_name, ())
    group = {name: [name] for name in by_name}
    several: list[str] = []
    same_nodes: dict[frozenset[str], str] = {}
    for level in range(max(height.values()) + 1):
        highest = [name for name in by_name if height[name] == level]
        for name in highest:
            nodes = frozenset(by_name[name].nodes)
            twin = same_nodes.setdefault(nodes, name) if nodes else name
            _join(group, [name, twin, *by_name[name].children])
        tops: dict[int, list[str]] = {}
        for name in highest:
            tops.setdefault(id(group[name]), []).append((shown or {}).get(name, name))
        names = dict(zip(tops, joined_names(list(tops.values())), strict=True))
        for name, part in group.items():
            known = names.get(id(part), "") if height[name] <= level else ""
            paths[name] += (known,)
        several += [names[part] for part, at in tops.items() if len(at) > 1]
    words = "switches over the same switches or nodes are one domain"
    return paths, [f"{words}: {some(several)}"] if several else []


def _join(group: dict[str, list[str]], names: Sequence[str]) -> None:
    """Make one of the groups of some switches, the smaller ones into the largest."""
    parts = {id(group[name]): group[name] for name in names}
    largest = max(parts.values(), key=len)
    for part in parts.values():
        if part is not largest:
            largest += part
            group |= dict.fromkeys(part, largest)


def _heights(switches: Sequence[Switch], problems: list[Problem]) -> dict[str, int]:
    """The most switches from each one down; none, with a problem, where that fails."""
    by_name = {switch.name: switch for switch in switches}
    below = {name: dict.fromkeys(one.children) for name, one in by_name.items()}
    unknown = [
        by_name[name].problem(f'switch "{name}" has no child "{child}"')
        for name in below
        for child in below[name]
        if child not in below
    ]
    problems += unknown
    if unknown:
        return {}
    height = _counted(below)
    hint = f"a tree has no loops and at most {MAX_HEIGHT} levels"
    for name in below:
        if name not in height:
            looped = _looped(name, below, height)
            message = f'switch "{looped}" is above itself'
            problems.append(by_name[looped].problem(message, hint))
            return {}
        if height[name] >= MAX_HEIGHT:
            message = f'switch "{name}" has too many levels below'
            problems.append(by_name[name].problem(message, hint))
            return {}
    return height


def _counted(below: Mapping[str, Mapping[str, None]]) -> dict[str, int]:
    """The most switches from each one down; none for one on a loop or above it."""
    height: dict[str, int] = {}
    sorter = TopologicalSorter(below)
    with suppress(CycleError):  # what is not above a loop is sorted all the same
        sorter.prepare()
    while ready := sorter.get_ready():
        for name in ready:
            height[name] = 1 + max((height[child] for child in below[name]), default=-1)
        sorter.done(*ready)
    return height


def _looped(
    name: str, below: Mapping[str, Iterable[str]], height: Mapping[str, int]
) -> str:
    """A switch of a loop that ``name`` is on or above."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        name = next(child for child in below[name] if child not in height)
    return name


def joined_names(groups: Sequence[Sequence[str]]) -> list[str]:
    """A name of each group after its members, none twice."""
    found = []
    for members in groups:
        text = "+".join(members)
        few = f"{members[0]}+{len(members) - 1}"
        found.append(text if len(text) <= _LONGEST else few[:_LONGEST])
    if len(set(found)) < len(found):
        return [f"{name}#{number}" for number, name in enumerate(found, start=1)]
    return found


def display_names(names: Iterable[str], shown: Mapping[str, str]) -> dict[str, str]:
    """Name to show of each switch or block; its own where the others would clash."""
    names = list(names)
    chosen = [shown.get(name, name) for name in names]
    if len(set(chosen)) < len(chosen):
        chosen = names
    return dict(zip(names, chosen, strict=True))
