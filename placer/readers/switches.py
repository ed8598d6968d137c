"""A tree of switches: which domains every node lies in, level by level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placer.errors import Problem
from placer.readers.findings import Level

MAX_HEIGHT = 12

_NAMES = ("leaf", "spine", "core")


@dataclass
class Switch:
    """One switch.

    Attributes
    ----------
    name : str
    place : Problem
        A problem without a message, which says where the switch stands.
    nodes : list of str
        Nodes on its ports.
    children : list of str
        Switches below it.
    """

    name: str
    place: Problem
    nodes: list[str]
    children: list[str]


def switch_levels(count: int, scale_up: bool | None = False) -> tuple[Level, ...]:
    """Levels of ``count`` layers of switches, closest first: leaf, spine, core, ..."""
    names = (*_NAMES, *(f"layer{i + 1}" for i in range(len(_NAMES), count)))
    above = (*names[1:count], "")
    return tuple(Level(names[k], scale_up, inside=above[k]) for k in range(count))


def switch_paths(
    switches: Sequence[Switch], problem: SwitchProblem
) -> dict[str, tuple[str, ...]]:
    """Switch of each switch's nodes at every height, closest first, by switch name.

    A height that a path skips is empty. What is no tree goes to ``problem``, and then
    nothing is returned.
    """
    by_name = {switch.name: switch for switch in switches}
    parent = _parents(switches, problem)
    ancestors = {}
    height = dict.fromkeys(by_name, 0)
    for switch in switches:
        above = _ancestors(switch.name, parent)
        if len(above) >= MAX_HEIGHT or switch.name in above:
            why = "is above itself" if switch.name in above else "is too deep"
            hint = f"a tree has no loops and at most {MAX_HEIGHT} levels"
            problem(switch, f'switch "{switch.name}" {why}', hint)
            return {}
        ancestors[switch.name] = above
        for distance, name in enumerate(above, start=1):
            height[name] = max(height[name], distance)
    top = max(height.values(), default=0) + 1
    paths = {}
    for name, above in ancestors.items():
        path = [""] * top
        for switch_name in (name, *above):
            path[height[switch_name]] = switch_name
        paths[name] = tuple(path)
    return paths


class SwitchProblem:
    """Collects what is wrong with switches, each at its own place."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def __call__(self, switch: Switch, message: str, hint: str = "") -> None:
        """Record a problem with ``switch``."""
        at = switch.place
        self.problems.append(
            Problem(message, at.source, at.line, at.column, at.key, hint)
        )


def _parents(switches: Sequence[Switch], problem: SwitchProblem) -> dict[str, str]:
    known = {switch.name for switch in switches}
    parent: dict[str, str] = {}
    for switch in switches:
        for child in switch.children:
            if child not in known:
                problem(switch, f'switch "{switch.name}" has no child "{child}"')
            elif parent.setdefault(child, switch.name) != switch.name:
                problem(
                    switch,
                    f'switch "{child}" is below "{parent[child]}" and "{switch.name}"',
                    "in a tree a switch has one switch above it",
                )
    return parent


def _ancestors(name: str, parent: Mapping[str, str]) -> list[str]:
    """Switches above ``name``, closest first, cut after ``MAX_HEIGHT``."""
    above: list[str] = []
    while name in parent and len(above) < MAX_HEIGHT:
        name = parent[name]
        above.append(name)
    return above


def display_names(names: Iterable[str], shown: Mapping[str, str]) -> dict[str, str]:
    """Name to show of each switch or block; its own where the others would clash."""
    names = list(names)
    chosen = [shown.get(name, name) for name in names]
    if len(set(chosen)) < len(chosen):
        chosen = names
    return dict(zip(names, chosen, strict=True))
