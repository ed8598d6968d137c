"""``nvidia-smi topo -m``: how the GPUs and NICs of a node are connected.

A matrix of cells from near to far: ``NV#`` (# bonded NVLinks), ``PIX``, ``PXB``,
``PHB``, ``NODE``, ``SYS`` (the legend that the command prints). It shows one node, in a
container only the GPUs that are visible there, and never a rack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placer.errors import Problem, refuse
from placer.readers.gpu_matrix import Matrix, Style, findings_of, matrix_of
from placer.readers.labelled import lines_of_hosts

if TYPE_CHECKING:
    from placer.readers.findings import Findings

_FAR = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4}
_STYLE = Style(
    link="NVLink",
    header=re.compile(r"\s*GPU[0-9]{1,3}\s+(?:GPU[0-9]|NIC[0-9]|CPU|NUMA|mlx)"),
    cell=re.compile(r"\s*(X(?![A-Za-z])|NV[0-9]{1,3}|PIX|PXB|PHB|NODE|SYS)"),
    gpu=re.compile(r"GPU[0-9]{1,3}"),
    own=("X",),
    linked="NV",
    ends=("CPU", "NUMA", "GPU"),
)


def read(text: str, source: str) -> Findings:
    """GPUs, whether NVLink joins them, and the nearest NICs of each.

    Without host names in front of the lines it holds for every node that other sources
    list.

    Raises
    ------
    InputError
        If a matrix is cut, not symmetric, or holds a cell that is none, or NVLink joins
        the GPUs to several islands.
    """
    hosts, ignored = lines_of_hosts(text, source, _STYLE.header)
    problems: list[Problem] = []
    matrices: dict[str, Matrix] = {}
    for host, lines in hosts.items():
        if any(_STYLE.header.match(line) for _, line in lines):
            matrices[host] = matrix_of(lines, host, source, _STYLE, problems)
        else:
            message = f'no matrix of "{host}"' if host else "no matrix in it"
            ignored.append(Problem(message, source, lines.first, 1))
    refuse(problems if matrices else ignored)
    words = {host: _words(matrix) for host, matrix in matrices.items()}
    return findings_of(source, matrices, words, ignored)


def _words(matrix: Matrix) -> str:
    """The node in one line."""
    nics = [device for device in matrix.devices if device not in matrix.gpus]
    gpus, _, links = matrix.words().partition(", ")
    return f"{gpus}, {len(nics)} NICs, {links}{_rails(matrix, nics)}"


def _rails(matrix: Matrix, nics: list[str]) -> str:
    """The nearest NICs of every GPU; ties are normal."""
    rails: dict[str, list[str]] = {}
    for gpu in matrix.gpus if nics else ():
        near = min((matrix.cells[gpu, nic] for nic in nics), key=_far)
        nearest = [nic for nic in nics if matrix.cells[gpu, nic] == near]
        rails.setdefault(f"{' '.join(nearest)} ({near})", []).append(gpu)
    listed = "; ".join(f"{' '.join(found)}: {nic}" for nic, found in rails.items())
    return f"; nearest NICs: {listed}" if listed else ""


def _far(cell: str) -> int:
    return _FAR.get(cell, -1)
