"""Slurm's nodes with their GPUs: `scontrol show node`, slurm.conf, or a table of sinfo.

GPUs are a Gres, ``gpu:h100:8(S:0-1)``: name, perhaps a type, and a count (Slurm,
``gres.conf`` and ``slurm.conf`` manual pages). A table of sinfo has the columns
NODELIST and GRES, in either order, as ``sinfo -o "%N %G"`` prints it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from placer.base.errors import Problem, refuse
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
