"""Slurm's nodes with their GPUs: `scontrol show node`, slurm.conf, or a table of sinfo.

GPUs are a Gres, ``gpu:h100:8(S:0-1)``: name, perhaps a type, and a count (Slurm,
``gres.conf`` and ``slurm.conf`` manual pages). A table of sinfo has the columns
NODELIST and GRES, in either order, as ``sinfo -o "%N %G"`` prints it.

Which nodes are idle, ``sinfo`` says, printed or with ``--json``. A node is free if it
is idle and nothing is about to happen to it. Powered down, or on its way up, it is
free: Slurm starts it for a job. A job has whole nodes, so a mixed one is not free.
Marks behind a state: ``*`` does not answer, ``~`` powered down, ``#`` powering up,
``!`` and ``%`` about to power down, ``$`` maintenance, ``@`` and ``^`` reboot, ``-``
planned for another job (Slurm, manual page of ``sinfo``).

``--json`` lists states: an idle node that is drained has ``["IDLE", "DRAIN"]``. Rows
stand under ``sinfo``; before Slurm 23.02, and in ``scontrol show nodes --json``, nodes
stand under ``nodes`` with ``state`` and perhaps ``state_flags``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from placer.base.errors import InputError, Problem, refuse
from placer.base.hostlist import expand
from placer.formats.machines.findings import MAX_NODES, Findings, NodeFacts

_GPU = re.compile(
    r"(?:^|,)(?:gres[:/])?gpu(?::(?P<type>[A-Za-z][^:,(]*))?:(?P<count>[0-9]{1,4})\b"
)
_FIELD = re.compile(r"\b(NodeName|Gres|State)=(\S+)", re.IGNORECASE)
_BEGINS = re.compile(r"\s*NodeName\s*=", re.IGNORECASE)
_OUT = re.compile(r"DOWN|DRAIN(?:ED|ING)?|FAIL(?:ING)?|ERROR|FUTURE")
_TABLE = re.compile(r"^[ \t]*(NODELIST|HOSTNAMES|GRES)[ \t]+(\S+)", re.MULTILINE)
_DEFAULT = "DEFAULT"


class _Row(NamedTuple):
    """One or more nodes, and what is said of them; None where nothing is."""

    line: int
    nodes: str
    gres: str | None
    state: str


def read(text: str, source: str) -> Findings:
    """The nodes, their GPUs, and those that are out of use."""
    findings = Findings(source)
    problems: list[Problem] = []
    types: Counter[str] = Counter()
    rows = _table(text) if _TABLE.search(text) else _records(text)
    for row in rows:
        try:
            names = expand(row.nodes)
        except ValueError as error:
            problems.append(Problem(str(error), source, row.line, 1, "NodeName"))
            continue
        found = list(_GPU.finditer(row.gres or ""))
        gpus = sum(int(gpu["count"]) for gpu in found)
        for gpu in found:
            types[gpu["type"] or ""] += len(names) * int(gpu["count"])
        for name in names:
            facts = NodeFacts((), None if row.gres is None else gpus, _reason(row))
            known = findings.nodes.setdefault(name, facts)
            known.unavailable = known.unavailable or facts.unavailable
        if len(findings.nodes) > MAX_NODES:
            problems.append(Problem(f"more than {MAX_NODES} nodes", source, row.line))
            break
    if not (findings.nodes or problems):
        hint = "save what scontrol show node prints"
        problems.append(Problem("no node in it", source, hint=hint))
    refuse(problems)
    if any(facts.gpus for facts in findings.nodes.values()):
        for facts in findings.nodes.values():
            facts.gpus = facts.gpus or 0  # a node without a Gres has none
    del types[""]
    findings.gpu = next((name for name, _ in types.most_common(1)), "")
    return findings


def _reason(row: _Row) -> str:
    """Why its nodes must not be used; empty where they may."""
    parts = (re.sub(r"[^A-Z_]", "", part) for part in row.state.upper().split("+"))
    return f"state {row.state}" if any(map(_OUT.fullmatch, parts)) else ""


def _records(text: str) -> Iterator[_Row]:
    """Records that begin with NodeName; those called DEFAULT hold for the next ones."""
    usual: dict[str, str] = {}
    for number, record in _lines_of_records(text):
        found = usual | {k.lower(): v for k, v in reversed(_FIELD.findall(record))}
        if found.get("nodename") == _DEFAULT:
            usual = found
        elif "nodename" in found:
            gres, state = found.get("gres"), found.get("state", "")
            yield _Row(number, found["nodename"], gres, state)


def _lines_of_records(text: str) -> Iterator[tuple[int, str]]:
    """Each record on one line, with its number: it goes on in indented lines."""
    begun, record, is_open = 0, "", False
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0]
        if _BEGINS.match(content):
            if record:
                yield begun, record
            begun, record = number, content
        elif record and (is_open or content.startswith((" ", "\t"))):
            record += f" {content}"
        elif record:
            yield begun, record
            record = ""
        is_open = content.rstrip().endswith("\\")
    if record:
        yield begun, record


def _table(text: str) -> Iterator[_Row]:
    """Rows below a header of NODELIST and GRES."""
    columns: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if {"NODELIST", "HOSTNAMES"} & {*fields} and "GRES" in fields:
            columns = ["NODELIST" if f == "HOSTNAMES" else f for f in fields]
        elif columns and len(fields) == len(columns):
            row = dict(zip(columns, fields, strict=True))
            yield _Row(number, row["NODELIST"], row["GRES"], row.get("STATE", ""))


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


# Nodes in one state, and whether they are free.
_InState = tuple[Iterable[str], bool]


def idle_nodes(text: str, source: str) -> list[str]:
    """Names of the nodes that are free, in the order in which they are first listed.

    A node in several partitions must be free wherever it is listed.
    """
    rows = _of_json if text.lstrip().startswith("{") else _of_table
    found: dict[str, bool] = {}
    for nodes, is_free in rows(text, source):
        for node in nodes:
            found[node] = found.get(node, True) and is_free
    if not found:
        raise InputError("no node is listed", source, hint=_HINT)
    return [node for node, is_free in found.items() if is_free]


def _of_json(text: str, source: str) -> Iterator[_InState]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"no JSON: {error}", source, hint=_HINT) from None
    try:
        for entry in content.get("sinfo", ()):
            states = entry["node"]["state"]
            yield tuple(entry["nodes"]["nodes"]), _is_free(_listed(states))
        for entry in content.get("nodes", ()):
            flags = _listed(entry.get("state_flags", ()))
            states = [*_listed(entry["state"]), *flags]
            yield (entry["name"],), _is_free(states)
    except (KeyError, TypeError, AttributeError) as error:
        message = f"nodes and states are missing: {error}"
        raise InputError(message, source, hint=_HINT) from None


def _listed(states: Any) -> list[str]:
    return [states] if isinstance(states, str) else [str(state) for state in states]


def _of_table(text: str, source: str) -> list[_InState]:
    """Rows under a header, or of a state and a host list each in either order."""
    rows: list[_InState] = []
    problems = []
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
            rows.append((expand(nodes), _is_free(_states(state))))
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

    Raises `ValueError` if it is none that Slurm prints.
    """
    match = _STATE.fullmatch(state)
    if match is None or not _is_known(state):
        raise ValueError(f'"{state}" is no state of a node')
    marks = [mark for mark in match["marks"] if mark not in _HARMLESS_MARKS]
    return [*match["name"].split("+"), *marks]


def _is_free(states: Iterable[str]) -> bool:
    named = {state.upper() for state in states}
    return "IDLE" in named and all(map(_HARMLESS_FLAGS.fullmatch, named))
