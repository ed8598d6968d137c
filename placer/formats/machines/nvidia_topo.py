"""``nvidia-smi topo -m``: how the GPUs and NICs of a node are connected.

A matrix of cells from near to far: ``NV#`` (# bonded NVLinks), ``PIX``, ``PXB``,
``PHB``, ``NODE``, ``SYS``, once ``SOC`` (the legend that the command prints). It shows
one node, in a container only the GPUs that are visible there, and never a rack.
"""

from __future__ import annotations

import re

from placer.base.errors import Problem, refuse
from placer.base.units import counted
from placer.formats.machines.findings import Findings
from placer.formats.machines.gpu_matrix import Matrix, Style, findings_of, matrix_of
from placer.formats.machines.labelled import Lines, lines_of_hosts
from placer.topology.affinity import Affinity

_FAR = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4, "SOC": 4}
_KINDS = rf"NV[0-9]{{1,3}}|{'|'.join(_FAR)}"
_STYLE = Style(
    link="NVLink",
    header=re.compile(r"\s*GPU[0-9]{1,3}\s*(?:GPU[0-9]|NIC[0-9]|CPU|NUMA|mlx)"),
    cell=re.compile(rf"\s*(X(?=[^A-Za-z]|$|{_KINDS})|{_KINDS})"),
    names=r"(?:GPU|NIC)[0-9]{1,3}|mlx[0-9]{1,2}_(?:bond_)?[0-9]{1,3}",
    gpu=re.compile(r"GPU[0-9]{1,3}"),
    own=("X",),
    linked="NV",
    ends=("CPU", "NUMA", "GPU"),
)
_NUMA = "NUMA Affinity"
_TITLE = re.compile(r"CPU Affinity|GPU NUMA ID|NUMA Affinity")
_LEGEND = re.compile(r"\s*(NIC[0-9]{1,3})\s*:\s*([A-Za-z0-9_.-]{1,64})\s*")


def read(text: str, source: str) -> Findings:
    """GPUs, the islands that NVLink joins, and NUMA node and nearest NICs of each.

    Without host names in front of the lines it holds for every node that other sources
    list.
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
    affinities = {
        host: Affinity(_numa_nodes(matrix), _nics_by_name(matrix, hosts[host]))
        for host, matrix in matrices.items()
    }
    return findings_of(source, matrices, words, ignored, affinities)


def _words(matrix: Matrix) -> str:
    """The node in one line."""
    gpus, _, links = matrix.words().partition(", ")
    return f"{gpus}, {counted(len(_nics(matrix)), 'NIC')}, {links}{_rails(matrix)}"


def _nics(matrix: Matrix) -> list[str]:
    return [device for device in matrix.devices if device not in matrix.gpus]


def _rails(matrix: Matrix) -> str:
    """The nearest NICs of every GPU in words."""
    rails: dict[str, list[str]] = {}
    for gpu, nearest in _nearest(matrix).items():
        near = matrix.cells[gpu, nearest[0]]
        rails.setdefault(f"{' '.join(nearest)} ({near})", []).append(gpu)
    listed = "; ".join(f"{' '.join(found)}: {nic}" for nic, found in rails.items())
    return f"; nearest NICs: {listed}" if listed else ""


def _nearest(matrix: Matrix) -> dict[str, list[str]]:
    """The nearest NICs of every GPU, none without any; ties are normal."""
    nics = _nics(matrix)
    nearest = {}
    for gpu in matrix.gpus if nics else ():
        cells = [matrix.cells[gpu, nic] for nic in nics]
        near = min(cells, key=lambda cell: _FAR.get(cell, -1))
        nearest[gpu] = [nic for nic in nics if matrix.cells[gpu, nic] == near]
    return nearest


def _nics_by_name(matrix: Matrix, lines: Lines) -> tuple[tuple[str, ...], ...]:
    """The nearest NICs of every GPU, as the legend calls them."""
    found = (_LEGEND.fullmatch(line) for _, line in lines)
    names = {match[1]: match[2] for match in found if match}
    return tuple(
        tuple(names.get(nic, nic) for nic in nearest)
        for nearest in _nearest(matrix).values()
    )


def _numa_nodes(matrix: Matrix) -> tuple[int, ...]:
    """NUMA node of every GPU; none where one is not told, or is several."""
    titles = _TITLE.findall(" ".join(matrix.header.split()))
    if _NUMA not in titles:
        return ()
    at = titles.index(_NUMA)
    numbers = []
    for gpu in matrix.gpus:
        rest = matrix.rests[gpu]
        cells = rest.split("\t")[1:] if "\t" in rest else rest.split()
        # Without tabs a row with an empty cell does not show which one it is.
        sure = "\t" in rest or len(cells) == len(titles)
        if not (
            sure and re.fullmatch(r"\s*[0-9]{1,3}\s*", "".join(cells[at : at + 1]))
        ):
            return ()
        numbers.append(int(cells[at]))
    return tuple(numbers)
