"""Which nodes Slurm says are idle: ``sinfo``, printed or with ``--json``.

A node is free if it is idle and nothing is about to happen to it. Powered down, or on
its way up, it is free: Slurm starts it for a job. A job has whole nodes, so a mixed one
is not free. Marks behind a state: ``*`` does not answer, ``~`` powered down, ``#``
powering up, ``!`` and ``%`` about to power down, ``$`` maintenance, ``@`` and ``^``
reboot, ``-`` planned for another job (Slurm, manual page of ``sinfo``).

``--json`` lists states: an idle node that is drained has ``["IDLE", "DRAIN"]``. Rows
stand under ``sinfo``; before Slurm 23.02, and in ``scontrol show nodes --json``, nodes
stand under ``nodes`` with ``state`` and perhaps ``state_flags``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from placer.base.errors import Problem, refuse
from placer.base.hostlist import expand

# Marks and flags with which an idle node can be given to a job.
_HARMLESS_MARKS = frozenset("~#")
_HARMLESS_FLAGS = re.compile("IDLE|CLOUD|DYNAMIC_[A-Z]+|POWERED_DOWN|POWER(ING)?_UP")
_STATE = re.compile(r"(?P<name>[a-z_+]+)(?P<marks>[*~#!%$@^-]*)", re.IGNORECASE)
# States that sinfo prints, short and long, with the parts that it may add.
_KNOWN = re.compile(
    "(alloc|block|boot|cloud|comp|down|drain|drng|dynamic|fail|fut|idle|inval|maint|mix"
    "|not_resp|npc|perfctrs|planned|plnd|pow|reboot|res|unk)[a-z_]*"
)
_HINT = "save what sinfo, sinfo -N or sinfo --json prints"


class Row(NamedTuple):
    """Nodes in one state."""

    nodes: tuple[str, ...]
    is_free: bool


def idle_nodes(text: str, source: str) -> list[str]:
    """Names of the nodes that are free, in the order in which they are first listed.

    A node in several partitions must be free wherever it is listed.
    """
    rows = _of_json if text.lstrip().startswith("{") else _of_table
    found: dict[str, bool] = {}
    for row in rows(text, source):
        for node in row.nodes:
            found[node] = found.get(node, True) and row.is_free
    if not found:
        refuse([Problem("no node is listed", source, hint=_HINT)])
    return [node for node, is_free in found.items() if is_free]


def _of_json(text: str, source: str) -> Iterator[Row]:
    try:
        content = json.loads(text)
    except ValueError as error:
        refuse([Problem(f"no JSON: {error}", source, hint=_HINT)])
    try:
        for entry in content.get("sinfo", ()):
            states = entry["node"]["state"]
            yield Row(tuple(entry["nodes"]["nodes"]), _is_free(_listed(states)))
        for entry in content.get("nodes", ()):
            flags = _listed(entry.get("state_flags", ()))
            states = [*_listed(entry["state"]), *flags]
            yield Row((entry["name"],), _is_free(states))
    except (KeyError, TypeError, AttributeError) as error:
        refuse([Problem(f"nodes and states are missing: {error}", source, hint=_HINT)])


def _listed(states: Any) -> list[str]:
    return [states] if isinstance(states, str) else [str(state) for state in states]


def _of_table(text: str, source: str) -> list[Row]:
    """Rows under a header, or of a state and a host list each in either order."""
    rows, problems = [], []
    columns: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if "STATE" in fields and {"NODELIST", "HOSTNAMES"} & {*fields}:
            columns = {name: place for place, name in enumerate(fields)}
            continue
        if not columns and len(fields) != 2:
            continue  # the date that --long prints first
        pair = _pair(fields, columns)
        if pair is None:
            continue
        nodes, state = pair
        try:
            rows.append(Row(tuple(expand(nodes)), _is_free(_states(state))))
        except ValueError as error:
            problems.append(Problem(str(error), source, number, 1, hint=_HINT))
    refuse(problems)
    return rows


def _pair(fields: list[str], columns: dict[str, int]) -> tuple[str, str] | None:
    """Host list and state of a line; None where it lists no node."""
    if columns:
        place = columns.get("NODELIST", columns.get("HOSTNAMES", 0))
        if len(fields) <= max(place, columns["STATE"]):
            return None
        nodes, state = fields[place], fields[columns["STATE"]]
        return None if state.lower() == "n/a" else (nodes, state)
    nodes, state = fields
    return (
        (state, nodes) if _is_known(nodes) and not _is_known(state) else (nodes, state)
    )


def _is_known(state: str) -> bool:
    match = _STATE.fullmatch(state)
    return match is not None and all(
        map(_KNOWN.fullmatch, match["name"].lower().split("+"))
    )


def _states(state: str) -> list[str]:
    """A printed state as one of ``--json``: its parts, and marks that matter.

    Raises
    ------
    ValueError
        If it is none that Slurm prints.
    """
    match = _STATE.fullmatch(state)
    if match is None or not _is_known(state):
        raise ValueError(f'"{state}" is no state of a node')
    marks = [mark for mark in match["marks"] if mark not in _HARMLESS_MARKS]
    return [*match["name"].split("+"), *marks]


def _is_free(states: Iterable[str]) -> bool:
    named = {state.upper() for state in states}
    return "IDLE" in named and all(map(_HARMLESS_FLAGS.fullmatch, named))
