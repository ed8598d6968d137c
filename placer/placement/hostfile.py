"""Host files: one host a line in rank order, or hosts with a count of slots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from placer.document.tree import visible
from placer.errors import InputError, Problem
from placer.placement.placement import Placement

if TYPE_CHECKING:
    from placer.topology.model import Topology

MAX_PROBLEMS = 20

_LINE = re.compile(r"([^\s:]+)(?::([0-9]{1,6})|\s+slots\s*=\s*([0-9]{1,6}))?")
_EXAMPLE = 'write "host", "host:4" or "host slots=4"'


@dataclass(frozen=True)
class _Entry:
    """So many next ranks go to ``host``."""

    line: int
    host: str
    ranks: int


def placement_of_hostfile(
    text: str, topology: Topology, world_size: int, source: str = "hostfile"
) -> Placement:
    """The placement that a host file gives, a node's GPUs taken in order.

    A line is ``host`` (one rank), ``host:N`` or ``host slots=N`` (the next N ranks);
    ``#`` starts a comment and blank lines are skipped.

    Raises
    ------
    InputError
        If a line is malformed, names a node the topology lacks or asks for more GPUs
        than the node has, or the lines do not add up to ``world_size`` ranks.
    """
    problems: list[Problem] = []
    entries = _entries(text, source, problems)
    node_of_rank = _nodes(entries, topology, source, problems)
    if not problems and len(node_of_rank) != world_size:
        problems.append(_wrong_count(len(node_of_rank), world_size, source))
    if problems:
        more = len(problems) - MAX_PROBLEMS
        rest = [Problem(f"and {more} more problems", source)] * (more > 0)
        raise InputError([*problems[:MAX_PROBLEMS], *rest])
    node = np.array(node_of_rank, dtype=np.int64)
    return Placement(topology.first_gpu_of_node[node] + _position_on_node(node))


def _entries(text: str, source: str, problems: list[Problem]) -> list[_Entry]:
    entries = []
    for line, content in enumerate(text.splitlines(), start=1):
        words = content.split("#", 1)[0].strip()
        if not words:
            continue
        match = _LINE.fullmatch(words)
        if match is None:
            message = f'not a line of a host file: "{visible(words)}"'
            problems.append(Problem(message, source, line, 1, hint=_EXAMPLE))
            continue
        entries.append(_Entry(line, match[1], int(match[2] or match[3] or 1)))
    return entries


def _nodes(
    entries: list[_Entry], topology: Topology, source: str, problems: list[Problem]
) -> list[int]:
    """Node of every rank; an entry that cannot hold is a problem and gives no rank."""
    index = {name: i for i, name in enumerate(topology.node_names)}
    free = topology.gpus_of_node.tolist()
    nodes: list[int] = []
    for entry in entries:
        node = index.get(entry.host)
        if node is None:
            problems.append(_unknown_host(entry, topology, source))
            continue
        if free[node] < entry.ranks:
            count = topology.gpus_of_node[node]
            message = f"{entry.host} has {count} GPUs, more ranks are put on it"
            problems.append(Problem(message, source, entry.line, 1))
            continue
        free[node] -= entry.ranks
        nodes += [node] * entry.ranks
    return nodes


def _unknown_host(entry: _Entry, topology: Topology, source: str) -> Problem:
    host = visible(entry.host)
    if entry.host in topology.unavailable:
        message = f"{host} must not be used: {topology.unavailable[entry.host]}"
        return Problem(message, source, entry.line, 1)
    # Looking for alike names among thousands takes seconds, once for each bad line.
    few = topology.node_names if len(topology.node_names) <= 1000 else ()
    alike = get_close_matches(entry.host, few, n=1)
    hint = f"did you mean {alike[0]}?" if alike else ""
    message = f"topology {topology.name} has no node {host}"
    return Problem(message, source, entry.line, 1, hint=hint)


def _wrong_count(found: int, world_size: int, source: str) -> Problem:
    message = f"the lines place {found} ranks, the job has {world_size}"
    hint = f"one line is one rank; for several, {_EXAMPLE[6:]}" if found else _EXAMPLE
    return Problem(message, source, hint=hint)


def _position_on_node(node: np.ndarray) -> np.ndarray:
    """How many earlier ranks sit on the same node; shape (R,)."""
    by_node = np.argsort(node, kind="stable")
    starts = np.searchsorted(node[by_node], node[by_node])
    position = np.empty_like(by_node)
    position[by_node] = np.arange(len(node)) - starts
    return position
