"""What files of ranks say, before a machine is known: hosts in rank order.

Host files, Open MPI's rankfiles (mpirun manual page, "Rankfiles") and the rank maps
that placer writes itself: ``placer/rank-map``, ``placer/node-map``, and CSV.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from placer.base.arrays import earlier_alike
from placer.base.errors import InputError, Problem, refuse
from placer.base.units import counted
from placer.documents import Document
from placer.documents.scalars import visible
from placer.placement.build import why_missing
from placer.placement.placement import Placement
from placer.topology.model import Topology


def placement_of_hostfile(
    text: str, topology: Topology, world_size: int, source: str = "hostfile"
) -> Placement:
    """The placement that a host file gives, a node's GPUs taken in order.

    A line is ``host`` (one rank), ``host:N`` or ``host slots=N`` (the next N ranks);
    ``#`` starts a comment and blank lines are skipped. Rankfiles, node maps and
    rank maps are read as well (``placer.placement.rank_maps``); a rank map says itself
    which GPU a rank takes.
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
        gpu = earlier_alike(node)
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
    # Looking for alike names among thousands takes seconds, once for each bad line.
    is_quick = len(topology.node_names) <= 1000
    is_known = entry.host in topology.unavailable
    few = topology.node_names if is_quick and not is_known else ()
    alike = get_close_matches(entry.host, few, n=1)
    hint = f"did you mean {alike[0]}?" if alike else ""
    host = entry.host if is_known else visible(entry.host)
    return entry.problem(why_missing(host, topology), source, hint)


def _wrong_count(found: int, world_size: int, source: str) -> Problem:
    message = f"the lines place {counted(found, 'rank')}, the job has {world_size}"
    hint = f"one line is one rank; for several, {EXAMPLE[6:]}" if found else EXAMPLE
    return Problem(message, source, hint=hint)


_HOST_LINE = re.compile(
    r"([^\s:]+)(?::([0-9]{1,6})|\s+slots\s*=\s*([0-9]{1,6}))?", re.ASCII
)
_RANK_LINE = re.compile(
    r"rank\s+([0-9]{1,9})\s*=\s*(\S+)(?:\s+slots?\s*=.*)?", re.ASCII
)
_COLUMNS = ("rank", "host", "gpu")
_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)

# More than a node holds.
MOST_RANKS = 999_999
EXAMPLE = 'write "host", "host:4" or "host slots=4"'


@dataclass(frozen=True)
class Entry:
    """So many next ranks go to ``host``."""

    line: int  # where it stands; 0 when unknown
    host: str
    ranks: int = 1
    gpu: int | None = None  # GPU of the one rank; None takes the node's GPUs in turn
    key: str = ""  # path of the entry in a JSON document

    def problem(self, message: str, source: str, hint: str = "") -> Problem:
        """What is wrong with it, and where it stands."""
        column = 1 if self.line else 0
        return Problem(message, source, self.line, column, self.key, hint)


def entries_of(text: str, source: str, problems: list[Problem]) -> list[Entry]:
    """The entries of a file of any kind; lines that are malformed become problems.

    A file that starts with ``{`` is JSON, with the header ``rank,...`` CSV, with
    ``rank N=`` a rankfile, and else a host file.
    """
    if text.lstrip().startswith("{"):
        return _json(text, source)
    lines = [
        (number, words)
        for number, line in enumerate(text.splitlines(), start=1)
        if (words := line.split("#", 1)[0].strip())
    ]
    first = lines[0][1] if lines else ""
    if re.match(r'"?rank"?\s*,', first):
        return _by_rank(_csv(lines, source, problems), source, problems)
    if re.match(r"rank\s+[0-9]+\s*=", first):
        return _by_rank(_rankfile(lines, source, problems), source, problems)
    return list(_host_file(lines, source, problems))


_Lines = list[tuple[int, str]]


def _host_file(lines: _Lines, source: str, problems: list[Problem]) -> Iterator[Entry]:
    for line, words in lines:
        if match := _HOST_LINE.fullmatch(words):
            yield Entry(line, match[1], int(match[2] or match[3] or 1))
        else:
            message = f'not a line of a host file: "{visible(words)}"'
            problems.append(Problem(message, source, line, 1, hint=EXAMPLE))


def _rankfile(
    lines: _Lines, source: str, problems: list[Problem]
) -> Iterator[tuple[int, Entry]]:
    """Rank and entry of every line; a slot is a core, so GPUs are taken in turn."""
    for line, words in lines:
        if match := _RANK_LINE.fullmatch(words):
            yield int(match[1]), Entry(line, match[2])
        else:
            message = f'not a line of a rankfile: "{visible(words)}"'
            hint = 'write "rank 0=host slot=0"'
            problems.append(Problem(message, source, line, 1, hint=hint))


def _csv(
    lines: _Lines, source: str, problems: list[Problem]
) -> Iterator[tuple[int, Entry]]:
    rows = csv.reader(words for _, words in lines)
    names = [name.strip() for name in next(rows)]
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        message = f"no column {', '.join(missing)}"
        problems.append(Problem(message, source, lines[0][0], 1))
        return
    at = [names.index(name) for name in _COLUMNS]
    for (line, words), row in zip(lines[1:], rows, strict=False):
        cells = [row[k].strip() for k in at] if len(row) == len(names) else []
        if cells and _INTEGER.fullmatch(cells[0]) and _INTEGER.fullmatch(cells[2]):
            yield int(cells[0]), Entry(line, cells[1], gpu=int(cells[2]))
        else:
            message = f'not a row of rank, host and gpu: "{visible(words)}"'
            problems.append(Problem(message, source, line, 1))


def _json(text: str, source: str) -> list[Entry]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", source) from None
    document = Document(source, data)
    read = {"placer/rank-map": _rank_map, "placer/node-map": _node_map}.get(
        str(data.get("format"))
    )
    if read is None or data.get("version") != 1:
        message = "neither a rank map nor a node map of version 1"
        hint = "those of `placer emit PLAN json` and torchrun-map; a plan is no map"
        raise InputError(message, source, hint=hint)
    entries = read(document)
    document.fail_if_problems()
    return entries


def _rank_map(document: Document) -> list[Entry]:
    rows = []
    for row in document.root.items("ranks", required=True):
        one = row.section()
        rank, gpu = one.integer("rank", minimum=0), one.integer("gpu", minimum=0)
        rows.append((rank, Entry(0, one.text("host"), gpu=gpu, key=row.key)))
    document.fail_if_problems()
    problems: list[Problem] = []
    entries = _by_rank(rows, document.source, problems)
    refuse(problems)
    return entries


def _node_map(document: Document) -> list[Entry]:
    entries = []
    for row in document.root.items("nodes", required=True):
        one = row.section()
        ranks = min(one.integer("processes"), MOST_RANKS)
        entries.append(Entry(0, one.text("host"), ranks, key=row.key))
    return entries


def _by_rank(
    rows: Iterable[tuple[int, Entry]], source: str, problems: list[Problem]
) -> list[Entry]:
    """The entries by rank; each rank must stand there once, from 0 on."""
    ordered = sorted(rows, key=lambda row: row[0])
    for index, (rank, entry) in enumerate(ordered):
        if rank != index and not problems:
            what = "stands there twice" if rank < index else f"follows rank {index - 1}"
            problems.append(entry.problem(f"rank {rank} {what}", source))
    return [entry for _, entry in ordered]
