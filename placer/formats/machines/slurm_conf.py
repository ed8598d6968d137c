"""Slurm's ``topology.conf``, and the answer of ``scontrol show topology``.

Both are ``Key=Value`` lines. Keys are case-insensitive, blanks around ``=`` are allowed
and ``#`` starts a comment; lines go on and include files (manual page).

``LinkSpeed`` is a number without unit or meaning (Slurm, ``topology.conf`` manual
page), so no bandwidth is taken from it.

The answer needs no privileges. It has the same lines with more keys: ``Level``,
``BlockIndex``, ``BlockSize``, and lines of larger blocks (``AggregatedBlock``). A
switch above the leaves lists its switches and, again, all nodes below it, and so does a
larger block: nodes that stand there only are those of lines that were cut away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from placer.base.errors import InputError, Problem, refuse
from placer.base.hostlist import HostLists
from placer.documents import closest, files
from placer.formats.machines.findings import MAX_NODES, Findings, some
from placer.formats.machines.slurm_machine import (
    is_padding,
    sizes_problem,
    slurm_findings,
)
from placer.formats.machines.switches import Switch

_KEY = r"[A-Za-z_][\w.]*"
# A value may be empty: at the end of the line, or where the next key follows.
_FIELD = re.compile(rf'\s*({_KEY})\s*=(?:(?=\s*$|\s+{_KEY}\s*=)|\s*("[^"]*"|[^\s"]+))')
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.IGNORECASE)
_SHOWN = re.compile(r"#\s*([^\s=]+)\s*=\s*(\S(?:.*\S)?)\s*")
_MAX_INCLUDES = 16


@dataclass
class Line:
    """One logical line."""

    place: Problem  # where it stands; a problem without a message
    values: dict[str, str] = field(default_factory=dict)  # by key in lower case
    columns: dict[str, int] = field(default_factory=dict)  # column of each key
    keys: dict[str, str] = field(default_factory=dict)  # the keys as written
    # What follows the last good ``Key=Value``: no such thing, or a key again.
    rest: str = ""

    def problem(self, message: str, key: str = "", hint: str = "") -> Problem:
        """A problem of this line, at one of its keys."""
        at, written = self.place, self.keys.get(key, "")
        column = self.columns.get(key, at.column)
        return Problem(message, at.source, at.line, column, written, hint)

    def hosts(self, key: str, lists: HostLists, problems: list[Problem]) -> list[str]:
        """The names under ``key``; none where it is empty or, with a problem, bad."""
        # Slurm prints (null) for a list that is empty.
        if self.values.get(key, "") in ("", "(null)"):
            return []
        try:
            return lists.expand(self.values[key])
        except ValueError as error:
            hint = ""
            if "never closed" in str(error):
                hint = "a cut line? SLURM_TOPO_LEN sets how long scontrol's lines are"
            problems.append(self.problem(str(error), key, hint))
            return []


@dataclass
class Lines:
    """The lines of a file and of what it includes."""

    lines: list[Line] = field(default_factory=list)
    # Names to show for switches and blocks, from comments such as ``# s1=leaf-1``.
    shown: dict[str, str] = field(default_factory=dict)
    # Files that cannot be included.
    problems: list[Problem] = field(default_factory=list)
    num_includes: int = 0


def read_lines(text: str, source: str) -> Lines:
    """All lines, included files in their place; blank ones and comments are dropped."""
    found = Lines()
    _read(text, source, found, [source])
    return found


def _read(text: str, source: str, found: Lines, including: list[str]) -> None:
    for number, raw in _logical_lines(text):
        named = _SHOWN.fullmatch(raw.strip())
        if named and named[2].isprintable():
            found.shown[named[1]] = named[2]
        content = raw.partition("#")[0]
        start = len(content) - len(content.lstrip()) + 1
        place = Problem("", source, number, start)
        if include := _INCLUDE.fullmatch(content):
            _include(include[1], place, found, including)
        elif content.strip():
            found.lines.append(_line(content, place))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """First line number and text of every line, continued ones joined."""
    start, joined = 1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        start = start if joined else number
        if line.rstrip().endswith("\\"):
            joined += line.rstrip()[:-1] + " "
            continue
        yield start, joined + line
        joined = ""
    if joined:
        yield start, joined


def _line(content: str, place: Problem) -> Line:
    line = Line(place)
    at = 0
    while match := _FIELD.match(content, at):
        key = match[1].lower()
        if key in line.values:
            break
        line.values[key] = (match[2] or "").strip('"')
        line.columns[key] = match.start(1) + 1
        line.keys[key] = match[1]
        at = match.end()
    line.rest = content[at:].strip()
    return line


def _include(name: str, place: Problem, found: Lines, including: list[str]) -> None:
    path = str(Path(place.source).parent / name.strip('"'))
    message = ""
    found.num_includes += 1
    if path in including:
        message = f"{name} includes itself"
    elif found.num_includes > _MAX_INCLUDES:
        message = f"more than {_MAX_INCLUDES} includes"
    else:
        try:
            text = files.read_text(path)
        except InputError as error:
            message = error.problems[0].message
            message = f"{path} {message}"
    if message:
        found.problems.append(replace(place, message=message, key="Include"))
        return
    _read(text, path, found, [*including, path])


_KEYS = {
    "switchname": {"nodes", "switches", "linkspeed"},
    "blockname": {"nodes"},
    "blocksizes": set(),
    "ringname": {"nodes"},
}
_NAME = re.compile(r"[^\s\[\],=]+")
_LINK_SPEED = re.compile(r"[0-9]+|infinite|unlimited", re.IGNORECASE)
_WHERE = "topology.conf has SwitchName, BlockName and BlockSizes lines"


def read_conf(text: str, source: str) -> Findings:
    """What a ``topology.conf`` says: leaf, spine, ... switches, blocks, or both."""
    found = read_lines(text, source)
    problems, lists = found.problems, HostLists(2 * MAX_NODES)
    switches: list[Switch] = []
    blocks: list[Switch] = []
    sizes: list[int] = []
    for line in found.lines:
        kind = next(iter(line.values), "")
        if kind not in _KEYS or line.rest:
            what = line.rest or line.keys.get(kind, "")
            message = f'"{what[:60]}" is not understood'
            problems.append(line.problem(message, kind, _WHERE))
            continue
        for key in sorted(set(line.values) - {kind} - _KEYS[kind]):
            message = f"it does not belong on a {line.keys[kind]} line"
            hint = closest(key, _KEYS[kind])
            problems.append(line.problem(message, key, hint))
        if kind == "switchname":
            switches.append(_conf_switch(line, lists, problems))
        elif kind == "blockname":
            name = _conf_name(line, kind, problems)
            blocks.append(Switch(name, line.place, _conf_nodes(line, lists, problems)))
        elif kind == "blocksizes":
            sizes = _conf_sizes(line, sizes, problems)
        else:
            hint = "a ring has no domains; describe it in the topology format"
            message = "a topology of rings is no tree"
            problems.append(line.problem(message, kind, hint))
    refuse(problems)
    if not (switches or blocks):
        raise InputError("no switch and no block in it", source, hint=_WHERE)
    return slurm_findings(source, switches, blocks, sizes, found.shown)


def _conf_switch(line: Line, lists: HostLists, problems: list[Problem]) -> Switch:
    name = _conf_name(line, "switchname", problems)
    if "nodes" in line.values and "switches" in line.values:
        message = f'switch "{name}" has both Nodes and Switches'
        problems.append(line.problem(message, "switches"))
    if not _LINK_SPEED.fullmatch(line.values.get("linkspeed", "1")):
        message = "expected a number without a unit"
        problems.append(line.problem(message, "linkspeed"))
    nodes = _conf_nodes(line, lists, problems)
    return Switch(name, line.place, nodes, line.hosts("switches", lists, problems))


def _conf_sizes(line: Line, known: list[int], problems: list[Problem]) -> list[int]:
    """The block sizes of a line, beside those of one before."""
    texts, sizes = line.values["blocksizes"].split(","), known
    if not all(re.fullmatch(r"[0-9]{1,6}", text) for text in texts):
        message = "expected sizes such as 18,36,72"
    elif known:
        message = "BlockSizes comes twice"
    else:
        sizes = [int(text) for text in texts]
        message = sizes_problem(sizes)
    if message:
        problems.append(line.problem(message, "blocksizes"))
    return sizes


def _conf_name(line: Line, key: str, problems: list[Problem]) -> str:
    name = line.values[key]
    if not _NAME.fullmatch(name) or not name.isprintable():
        message = f"{name[:70]!r} cannot name one switch or block"
        hint = "it is taken literally, brackets and = too: write a line for each"
        problems.append(line.problem(message, key, hint))
    return name


def _conf_nodes(line: Line, lists: HostLists, problems: list[Problem]) -> list[str]:
    if line.values.get("nodes", "").upper() == "ALL":
        hint = "list the nodes: only the cluster's slurm.conf knows what ALL is"
        problems.append(line.problem("Nodes=ALL names no node", "nodes", hint))
        return []
    return line.hosts("nodes", lists, problems)


def read_scontrol(text: str, source: str) -> Findings:
    """What the answer says: leaf, spine, ... switches, or blocks."""
    problems: list[Problem] = []
    lists = HostLists(2 * MAX_NODES)
    ignored: list[Problem] = []
    switches: list[Switch] = []
    blocks: list[tuple[int, Switch]] = []
    base: set[int] = set()
    larger: dict[int, list[Line]] = {}
    upper: dict[str, Line] = {}
    for line in read_lines(text, source).lines:
        values = line.values
        if "switchname" in values:
            switches.append(_switch(line, lists, problems))
            if switches[-1].children:
                upper[switches[-1].name] = line
        elif "blockname" in values:
            nodes = line.hosts("nodes", lists, problems)
            block = Switch(values["blockname"], line.place, nodes)
            base.add(_number(line, "blocksize", 0))
            blocks.append((_number(line, "blockindex", len(blocks)), block))
        elif "aggregatedblock" in values:
            larger.setdefault(_number(line, "blocksize", 0), []).append(line)
        else:
            ignored.append(line.problem("not a line of scontrol show topology"))
    refuse(problems)
    if not (switches or blocks):
        raise InputError("no switch and no block in it", source)
    in_order = [block for _, block in sorted(blocks, key=lambda pair: pair[0])]
    sizes = sorted(base)[:1] + sorted(larger)
    if not sizes or sizes_problem(sizes):
        sizes = []
    findings = slurm_findings(source, switches, in_order, sizes)
    findings.ignored += ignored
    below = {child for switch in switches for child in switch.children}
    whole = [line for name, line in upper.items() if name not in below]
    whole += larger[max(larger)] if larger else []
    refuse(_cut_away(whole, findings))
    return findings


def _cut_away(whole: Sequence[Line], findings: Findings) -> list[Problem]:
    """What the lines of the whole machine list and no leaf or block has."""
    problems: list[Problem] = []
    lists = HostLists(2 * MAX_NODES)
    for line in whole:
        lost = [
            node
            for node in line.hosts("nodes", lists, problems)
            if node not in findings.nodes and not is_padding(node)
        ]
        if lost:
            message = f"no leaf and no block has {some(lost)}"
            hint = "lines are missing: save the whole answer"
            problems.append(line.problem(message, "nodes", hint))
    return problems


def _switch(line: Line, lists: HostLists, problems: list[Problem]) -> Switch:
    children = line.hosts("switches", lists, problems)
    # All nodes below an upper switch are listed again: only a leaf's are its own.
    nodes = [] if children else line.hosts("nodes", lists, problems)
    return Switch(line.values["switchname"], line.place, nodes, children)


def _number(line: Line, key: str, default: int) -> int:
    text = line.values.get(key, "")
    return int(text) if text.isdecimal() and len(text) < 7 else default
