"""The placement that a host file, rankfile or rank map gives on a machine."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from placer.base.errors import Problem, refuse
from placer.documents.tree import visible
from placer.placement.placement import Placement
from placer.placement.rank_maps import EXAMPLE, Entry, entries_of

if TYPE_CHECKING:
    from placer.topology.model import Topology


def placement_of_hostfile(
    text: str, topology: Topology, world_size: int, source: str = "hostfile"
) -> Placement:
    """The placement that a host file gives, a node's GPUs taken in order.

    A line is ``host`` (one rank), ``host:N`` or ``host slots=N`` (the next N ranks);
    ``#`` starts a comment and blank lines are skipped. Rankfiles, node maps and
    rank maps are read as well (``placer.placement.rank_maps``); a rank map says itself
    which GPU a rank takes.

    Raises
    ------
    InputError
        If a line is malformed, names a node the topology lacks, asks for more GPUs than
        the node has or for one twice, or the lines do not add up to ``world_size``
        ranks.
    """
    problems: list[Problem] = []
    entries = entries_of(text, source, problems)
    node_of_rank = _nodes(entries, topology, source, problems)
    if not problems and len(node_of_rank) != world_size:
        problems.append(_wrong_count(len(node_of_rank), world_size, source))
    refuse(problems)
    node = np.array(node_of_rank, dtype=np.int64)
    if entries and entries[0].gpu is not None:
        gpu = np.array([entry.gpu for entry in entries], dtype=np.int64)
    else:
        gpu = _position_on_node(node)
    return Placement(topology.gpu_at(node, gpu))


def _nodes(
    entries: list[Entry], topology: Topology, source: str, problems: list[Problem]
) -> list[int]:
    """Node of every rank; an entry that cannot hold is a problem and gives no rank."""
    index = {name: i for i, name in enumerate(topology.node_names)}
    free = topology.gpus_of_node.tolist()
    nodes: list[int] = []
    used: set[tuple[int, int]] = set()
    for entry in entries:
        node = index.get(entry.host)
        if node is None:
            problems.append(_unknown_host(entry, topology, source))
            continue
        count = topology.gpus_of_node[node]
        if free[node] < entry.ranks:
            message = f"{entry.host} has {count} GPUs, more ranks are put on it"
            problems.append(entry.problem(message, source))
            continue
        if entry.gpu is not None:
            if entry.gpu >= count or (node, entry.gpu) in used:
                held = "taken" if entry.gpu < count else f"none of {count}"
                message = f"GPU {entry.gpu} of {entry.host} is {held}"
                problems.append(entry.problem(message, source))
                continue
            used.add((node, entry.gpu))
        free[node] -= entry.ranks
        nodes += [node] * entry.ranks
    return nodes


def _unknown_host(entry: Entry, topology: Topology, source: str) -> Problem:
    host = visible(entry.host)
    if entry.host in topology.unavailable:
        message = f"{host} must not be used: {topology.unavailable[entry.host]}"
        return entry.problem(message, source)
    # Looking for alike names among thousands takes seconds, once for each bad line.
    few = topology.node_names if len(topology.node_names) <= 1000 else ()
    alike = get_close_matches(entry.host, few, n=1)
    hint = f"did you mean {alike[0]}?" if alike else ""
    message = f"topology {topology.name} has no node {host}"
    return entry.problem(message, source, hint)


def _wrong_count(found: int, world_size: int, source: str) -> Problem:
    message = f"the lines place {found} ranks, the job has {world_size}"
    hint = f"one line is one rank; for several, {EXAMPLE[6:]}" if found else EXAMPLE
    return Problem(message, source, hint=hint)


def _position_on_node(node: np.ndarray) -> np.ndarray:
    """How many earlier ranks sit on the same node; shape (R,)."""
    by_node = np.argsort(node, kind="stable")
    starts = np.searchsorted(node[by_node], node[by_node])
    position = np.empty_like(by_node)
    position[by_node] = np.arange(len(node)) - starts
    return position
