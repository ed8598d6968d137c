"""A printed matrix of devices: what joins each two, as SMI tools show it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from placer.base.errors import MOST_PROBLEMS, Problem
from placer.base.units import counted
from placer.formats.machines.findings import (
    Findings,
    NodeFacts,
    kinds_of_hosts,
    same_everywhere,
)
from placer.formats.machines.islands import (
    Parts,
    island_words,
    islands,
    of_host,
    usual_islands,
)
from placer.formats.machines.labelled import Lines, are_numbers
from placer.topology.affinity import Affinity

MAX_DEVICES = 256
# Characters of a device's name.
_LONGEST = 64


@dataclass(frozen=True)
class Style:
    """How a tool prints its matrix."""

    link: str  # what joins GPUs: ``NVLink`` or ``XGMI``
    header: re.Pattern[str]  # matches a line that names the columns
    # Matches a cell and the blanks before it; its group is the cell.
    cell: re.Pattern[str]
    gpu: re.Pattern[str]  # matches the whole name of a GPU
    names: str  # pattern of the usual names of devices, which tells glued ones apart
    own: tuple[str, ...]  # what a cell of a device to itself may be
    linked: str  # how cells of pairs joined by a link begin
    ends: tuple[str, ...] = ()  # words of the header behind the devices


@dataclass
class Matrix:
    """Devices by column, the cell of each pair, and what stands behind the cells.

    ``header`` is the text that names the columns, ``rests`` the end of each row.
    """

    style: Style
    devices: list[str] = field(default_factory=list)
    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    header: str = ""
    rests: dict[str, str] = field(default_factory=dict)

    @cached_property
    def gpus(self) -> list[str]:
        """The GPUs among the devices."""
        return [name for name in self.devices if self.style.gpu.fullmatch(name)]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of GPUs, by position, that a link joins."""
        return [
            (a, b)
            for b, second in enumerate(self.gpus)
            for a, first in enumerate(self.gpus[:b])
            if self.cells[first, second].startswith(self.style.linked)
        ]

    @cached_property
    def islands(self) -> Parts:
        """The GPUs that links join, by position in ``gpus``; a lone one is alone."""
        return islands(len(self.gpus), self.pairs)

    @property
    def split(self) -> bool:
        """Whether links join some GPUs, but not all to one island."""
        return bool(self.pairs) and len(self.islands) > 1

    @property
    def joined(self) -> bool | None:
        """Whether links join all GPUs to one island; None when there is one GPU."""
        return len(self.islands) == 1 if len(self.gpus) > 1 else None

    def words(self) -> str:
        """The GPUs and their links in one line."""
        link = self.style.link
        kinds = {self.cells[self.gpus[a], self.gpus[b]] for a, b in self.pairs}
        found = "/".join(sorted(kinds))
        over = math.comb(len(self.gpus), 2) - len(self.pairs)
        words = counted(len(self.gpus), "GPU")
        if not self.pairs:
            return f"{words}, no {link}"
        if self.split:
            listed = island_words(self.gpus, self.islands)
            return f"{words}, {len(self.islands)} {link} islands: {listed}"
        if over:
            return (
                f"{words}, {found} between them, taken for one island although "
                f"{over} pairs have no {link} of their own"
            )
        return f"{words}, {found} between all GPUs"


def findings_of(
    source: str,
    matrices: Mapping[str, Matrix],
    words: Mapping[str, str],
    ignored: list[Problem],
    affinities: Mapping[str, Affinity],
) -> Findings:
    """What the matrices of hosts say; that of the host ``""`` is of every node.

    A host without links, or of smaller islands than others, has lost links: it is
    unavailable. So is one with fewer GPUs, where hosts are islands.
    """
    whole = any(matrix.joined for matrix in matrices.values())
    split = {
        host: (matrix.gpus, matrix.islands)
        for host, matrix in matrices.items()
        if matrix.split and not whole
    }
    link = next(matrix.style.link for matrix in matrices.values())
    usual = usual_islands(source, split, link) if split else ()
    kinds = {matrix.joined for matrix in matrices.values()}
    nvlink = True if whole or usual else False if False in kinds else None
    nodes = {
        host: NodeFacts((), len(matrix.gpus), _lost(matrix, whole, usual))
        for host, matrix in matrices.items()
    }
    sound = [host for host, facts in nodes.items() if not facts.unavailable]
    most = max((len(matrices[host].gpus) for host in sound), default=0)
    near = {affinities[h] for h in sound if len(matrices[h].gpus) == most}
    findings = Findings(
        source,
        nvlink=nvlink,
        islands=usual,
        affinity=near.pop() if len(near) == 1 else Affinity(),
        ignored=ignored,
    )
    if list(matrices) == [""]:
        findings.notes = [words[""]]
        return same_everywhere(findings, most)
    findings.nodes = nodes
    findings.notes = kinds_of_hosts(words)
    findings.numbers = are_numbers(matrices)
    return findings


def _lost(matrix: Matrix, whole: bool, usual: Parts) -> str:
    """Why a host is unavailable; empty when it is not."""
    link, gpus = matrix.style.link, sum(map(len, usual))
    told = matrix.joined is False
    if matrix.islands == usual or (not usual and not (whole and told)):
        return ""
    if usual and len(matrix.gpus) != gpus:
        return f"{counted(len(matrix.gpus), 'GPU')} where others have {gpus} in islands"
    return f"{len(matrix.islands)} {link} islands" if matrix.split else f"no {link}"


def matrix_of(
    lines: Lines, host: str, source: str, style: Style, problems: list[Problem]
) -> Matrix:
    """The matrix after the header of a host; what is wrong goes to ``problems``."""
    matrix = Matrix(style)
    row = re.compile(rf"\s*(\S+){style.cell.pattern}")
    of = of_host(host)
    before = len(problems)
    first = next(i for i, (_, line) in enumerate(lines) if style.header.match(line))
    body = lines[first:]
    # A wide header of a pasted matrix may go on in the next line.
    height = next((i for i, (_, line) in enumerate(body) if row.match(line)), 0)
    headers = [line for _, line in body[:height]]
    rows = body[height:]
    if not headers or not any(line.strip() for _, line in rows):
        problems.append(Problem(f"the matrix{of} has no rows: cut?", source))
        return matrix
    again = next((number for number, line in rows if style.header.match(line)), 0)
    if again:
        hint = "let pdsh, clush or srun -l put the host in front of every line"
        message = f"several matrices{of}: whose they are cannot be told"
        problems.append(Problem(message, source, again, 1, hint=hint))
        return matrix
    matches = (row.match(line) for _, line in rows)
    names = (match[1] for match in matches if match)
    in_rows = dict.fromkeys(name for name in names if len(name) <= _LONGEST)
    _columns(" ".join(headers), in_rows, matrix)
    if not 1 <= len(matrix.devices) <= MAX_DEVICES:
        message = f"{len(matrix.devices)} devices, the most is {MAX_DEVICES}"
        problems.append(Problem(message, source, body.first, 1))
        return matrix
    if glued := next((name for name in matrix.devices if len(name) > _LONGEST), ""):
        hint = "paste the matrix with its blanks"
        message = f"names of columns{of} run together: {glued[:_LONGEST]}..."
        problems.append(Problem(message, source, body.first, 1, hint=hint))
        return matrix
    # A terminal that lost the tabs may have glued a name to its first cell.
    start = re.compile(rf"\s*({_any_of(matrix.devices)})(?=\s|$|{style.cell.pattern})")
    for number, line in rows:
        if match := start.match(line):
            place = Problem("", source, number, 1)
            _row(match[1], line[match.end() :], matrix, place, problems)
        if len(problems) > MOST_PROBLEMS:
            break
    if len(problems) == before:
        problems += _missing(matrix, of, source)
    return matrix


def _columns(header: str, in_rows: Mapping[str, None], matrix: Matrix) -> None:
    """The devices that a header names; glued names are those of rows, or usual ones."""
    style = matrix.style
    matrix.header = header
    name = rf"(?>{_any_of(islice(in_rows, MAX_DEVICES))}|{style.names})"
    glued = re.compile(rf"({name}++)({_any_of(style.ends)})?")
    for word in header.split():
        if word in style.ends:
            break
        found = None if word in in_rows else glued.fullmatch(word)
        matrix.devices += re.findall(name, found[1]) if found else [word]
        if found and found[2]:
            break


def _any_of(names: Iterable[str]) -> str:
    """A pattern of any of these names, the longest first."""
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"


def _row(
    name: str, rest: str, matrix: Matrix, at: Problem, problems: list[Problem]
) -> None:
    """The cells of the row of a device."""
    position = 0
    cells: list[str] = []
    while len(cells) < len(matrix.devices) and (
        match := matrix.style.cell.match(rest, position)
    ):
        cells.append(match[1])
        position = match.end()
    if len(cells) < len(matrix.devices) or (name, name) in matrix.cells:
        message = f"{name} has {len(cells)} cells for {len(matrix.devices)} devices"
        if (name, name) in matrix.cells:
            message = f"{name} comes twice"
        hint = "paste whole lines: copies lose cells at the end"
        problems.append(Problem(message, at.source, at.line, at.column, hint=hint))
        return
    matrix.rests[name] = rest[position:]
    for other, cell in zip(matrix.devices, cells, strict=True):
        matrix.cells[name, other] = cell


def _missing(matrix: Matrix, of: str, source: str) -> list[Problem]:
    """Rows that are cut off, and cells that cannot be."""
    cells, devices, own = matrix.cells, matrix.devices, matrix.style.own
    if len(set(devices)) < len(devices):
        return [Problem(f"a device comes twice in the header{of}", source)]
    absent = [device for device in devices if (device, device) not in cells]
    if absent:
        hint = "names of columns may run together: paste the matrix with its blanks"
        message = f"the matrix{of} has no row {absent[0]}: cut?"
        return [Problem(message, source, hint=hint)]
    problems = []
    for i, a in enumerate(devices):
        for b in devices[: i + 1]:
            if cells[a, b] != cells[b, a] or (cells[a, b] in own) != (a == b):
                message = (
                    f"the matrix{of} cannot be: {a} to {b} is {cells[a, b]}, "
                    f"{b} to {a} is {cells[b, a]}"
                )
                problems.append(Problem(message, source))
    return problems
