"""``nvidia-smi topo -m``: how the GPUs and NICs of a node are connected.

A matrix of cells from near to far: ``NV#`` (# bonded NVLinks), ``PIX``, ``PXB``,
``PHB``, ``NODE``, ``SYS`` (the legend that the command prints). It shows one node, in a
container only the GPUs that are visible there, and never a rack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from placer.errors import Problem, refuse
from placer.readers.findings import Findings, NodeFacts
from placer.readers.labelled import Lines, are_numbers, lines_of_hosts
from placer.readers.one_node import kinds_of_hosts, same_everywhere

_FAR = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4}
_CELL = re.compile(r"\s*(X(?![A-Za-z])|NV[0-9]{1,3}|PIX|PXB|PHB|NODE|SYS)")
_GPU = re.compile(r"GPU[0-9]{1,3}")
_ROW = re.compile(rf"\s*(\S+){_CELL.pattern}")
_HEADER = re.compile(r"\s*GPU[0-9]{1,3}\s+(?:GPU[0-9]|NIC[0-9]|CPU|NUMA|mlx)")
_ENDS = ("CPU", "NUMA", "GPU")
_MAX_DEVICES = 256


def read(text: str, source: str) -> Findings:
    """GPUs, whether they share NVLink, and the nearest NICs of each.

    Without host names in front of the lines it holds for every node that other sources
    list.

    Raises
    ------
    InputError
        If a matrix is cut, not symmetric, or holds a cell that is none.
    """
    hosts, ignored = lines_of_hosts(text, source, _HEADER)
    problems: list[Problem] = []
    matrices: dict[str, _Matrix] = {}
    for host, lines in hosts.items():
        if any(_HEADER.match(line) for _, line in lines):
            matrices[host] = _matrix(lines, host, source, problems)
        else:
            message = f'no matrix of "{host}"' if host else "no matrix in it"
            ignored.append(Problem(message, source, lines[0][0], 1))
    refuse(problems if matrices else ignored)
    kinds = {matrix.nvlink for matrix in matrices.values()}
    # A host without any, where others have it, is broken: no bandwidth fits both.
    mixed = {True, False} <= kinds
    nvlink = True if mixed else kinds.pop() if len(kinds) == 1 else None
    words = {host: matrix.words() for host, matrix in matrices.items()}
    if list(hosts) == [""]:
        return same_everywhere(source, len(matrices[""].gpus), nvlink, [words[""]])
    return Findings(
        source,
        nodes={host: _facts(m, mixed) for host, m in matrices.items()},
        ignored=ignored,
        notes=kinds_of_hosts(words),
        nvlink=nvlink,
        numbers=are_numbers(hosts),
    )


def _facts(matrix: _Matrix, mixed: bool) -> NodeFacts:
    broken = "no NVLink" if mixed and matrix.nvlink is False else ""
    return NodeFacts((), len(matrix.gpus), broken)


@dataclass
class _Matrix:
    """Devices by column, and the cell of each pair."""

    devices: list[str] = field(default_factory=list)
    cells: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def gpus(self) -> list[str]:
        return [device for device in self.devices if _GPU.fullmatch(device)]

    @property
    def nvlinks(self) -> dict[tuple[str, str], str]:
        """The cells of pairs of GPUs that are joined by NVLink."""
        return {
            (a, b): self.cells[a, b]
            for a in self.gpus
            for b in self.gpus
            if a != b and self.cells[a, b].startswith("NV")
        }

    @property
    def nvlink(self) -> bool | None:
        """Whether all pairs of GPUs share NVLink; None when only some do."""
        count, pairs = len(self.nvlinks), len(self.gpus) * (len(self.gpus) - 1)
        return None if not pairs or 0 < count < pairs else count == pairs

    def words(self) -> str:
        """The node in one line."""
        gpus, links = self.gpus, self.nvlinks
        nics = [device for device in self.devices if device not in gpus]
        kinds = "/".join(sorted(set(links.values())))
        parts = [f"{len(gpus)} GPUs", f"{len(nics)} NICs"]
        if self.nvlink is None and links:
            joined = {a for a, _ in links}
            out = ", ".join(gpu for gpu in gpus if gpu not in joined)
            fallen = f", none at {out}" if out else ""
            parts.append(f"{kinds} between some pairs of GPUs only{fallen}")
        else:
            parts.append(f"{kinds} between all GPUs" if links else "no NVLink")
        return ", ".join(parts) + self._rails(gpus, nics)

    def _rails(self, gpus: list[str], nics: list[str]) -> str:
        """The nearest NICs of every GPU; ties are normal."""
        rails: dict[str, list[str]] = {}
        for gpu in gpus if nics else ():
            near = min((self.cells[gpu, nic] for nic in nics), key=_far)
            nearest = [nic for nic in nics if self.cells[gpu, nic] == near]
            rails.setdefault(f"{' '.join(nearest)} ({near})", []).append(gpu)
        listed = "; ".join(f"{' '.join(found)}: {nic}" for nic, found in rails.items())
        return f"; nearest NICs: {listed}" if listed else ""


def _far(cell: str) -> int:
    return _FAR.get(cell, -1)


def _matrix(lines: Lines, host: str, source: str, problems: list[Problem]) -> _Matrix:
    """The matrix after the header of a host; what is wrong goes to ``problems``."""
    matrix = _Matrix()
    of = f' of "{host}"' if host else ""
    before = len(problems)
    first = next(i for i, (_, line) in enumerate(lines) if _HEADER.match(line))
    body = lines[first:]
    # A wide header of a pasted matrix may go on in the next line.
    height = next((i for i, (_, line) in enumerate(body) if _ROW.match(line)), 0)
    headers = body[:height]
    rows = [(number, line) for number, line in body[height:] if line.strip()]
    if not rows or not headers:
        problems.append(Problem(f"the matrix{of} has no rows: cut?", source))
        return matrix
    if again := [number for number, line in rows if _HEADER.match(line)]:
        hint = "let pdsh, clush or srun -l put the host in front of every line"
        message = f"several matrices{of}: whose they are cannot be told"
        problems.append(Problem(message, source, again[0], 1, hint=hint))
        return matrix
    _columns(" ".join(line for _, line in headers), matrix)
    if not 1 <= len(matrix.devices) <= _MAX_DEVICES:
        message = f"{len(matrix.devices)} devices, the most is {_MAX_DEVICES}"
        problems.append(Problem(message, source, headers[0][0], 1))
        return matrix
    for number, line in rows:
        _row(line, matrix, Problem("", source, number, 1), problems)
    if len(problems) == before:
        problems += _missing(matrix, of, source)
    return matrix


def _columns(header: str, matrix: _Matrix) -> None:
    for name in header.split():
        if name in _ENDS:
            break
        matrix.devices.append(name)


def _row(line: str, matrix: _Matrix, at: Problem, problems: list[Problem]) -> None:
    """The cells of a row; a row of no device, such as one of the legend, is none."""
    name, rest = (*line.split(None, 1), "")[:2]
    if name not in matrix.devices:
        return
    position = 0
    cells: list[str] = []
    while len(cells) < len(matrix.devices) and (match := _CELL.match(rest, position)):
        cells.append(match[1])
        position = match.end()
    if len(cells) < len(matrix.devices) or (name, name) in matrix.cells:
        message = f"{name} has {len(cells)} cells for {len(matrix.devices)} devices"
        if (name, name) in matrix.cells:
            message = f"{name} comes twice"
        hint = "paste whole lines: copies lose cells at the end"
        problems.append(Problem(message, at.source, at.line, at.column, hint=hint))
        return
    for other, cell in zip(matrix.devices, cells, strict=True):
        matrix.cells[name, other] = cell


def _missing(matrix: _Matrix, of: str, source: str) -> list[Problem]:
    """Rows that are cut off, and cells that cannot be."""
    cells, devices = matrix.cells, matrix.devices
    if len(set(devices)) < len(devices):
        return [Problem(f"a device comes twice in the header{of}", source)]
    absent = [device for device in devices if (device, device) not in cells]
    if absent:
        return [Problem(f"the matrix{of} has no row {absent[0]}: cut?", source)]
    problems = []
    for i, a in enumerate(devices):
        for b in devices[: i + 1]:
            if cells[a, b] != cells[b, a] or (cells[a, b] == "X") != (a == b):
                message = (
                    f"the matrix{of} cannot be: {a} to {b} is {cells[a, b]}, "
                    f"{b} to {a} is {cells[b, a]}"
                )
                problems.append(Problem(message, source))
    return problems
