"""``rocm-smi --showtopo`` and ``amd-smi topology``: which GPUs of a node XGMI joins.

Both print a matrix of link types among others: ``XGMI``, ``PCIE``, and ``XXXX`` or
``N/A`` where it could not be read (ROCm/rocm_smi_lib, ``python_smi_tools/rocm_smi.py``;
AMD SMI documentation, ``amd-smi topology``). The hops beside it do not count links:
they are 1 for every pair that XGMI joins. ``rocm-smi --json`` gives the upper half of
the matrix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations

from placer.base.errors import InputError, Problem, refuse
from placer.documents import parse_answer
from placer.formats.machines.findings import Findings
from placer.formats.machines.gpu_matrix import (
    MAX_DEVICES,
    Matrix,
    Style,
    findings_of,
    matrix_of,
)
from placer.formats.machines.islands import of_host
from placer.formats.machines.labelled import Lines, lines_of_hosts
from placer.topology.affinity import Affinity

_BUSID = r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]"
_STYLE = Style(
    link="XGMI",
    header=re.compile(
        rf"\s*(?:GPU[0-9]{{1,3}}|{_BUSID})(?:\s*(?:GPU[0-9]|{_BUSID})|\s*$)"
    ),
    cell=re.compile(r"(?:^|\s+)(XGMI|PCIE|XXXX|N/A|SELF|0)(?!\S)"),
    gpu=re.compile(rf"GPU[0-9]{{1,3}}|{_BUSID}"),
    names=rf"GPU[0-9]{{1,3}}|{_BUSID}",
    own=("0", "SELF"),
    linked="XGMI",
)
_TITLE = re.compile(r"=+ Link Type between two GPUs =+\s*$|LINK TYPE TABLE:\s*$")
_ANY_TITLE = re.compile(r"\s*=+|[A-Z -]+TABLE:")
_PAIR = re.compile(
    r"\(Topology\) Link type between DRM devices ([0-9]{1,3}) and ([0-9]{1,3})"
)
_NUMA = "(Topology) Numa Node"
# Some versions print GPU[0], some GPU 0.
_NUMA_LINE = re.compile(
    r"GPU(?:\[([0-9]{1,3})\]|\s*([0-9]{1,3}))\s*:\s*\(Topology\) Numa Node:\s*"
    r"([0-9]{1,3})\s*"
)
_CARD = re.compile(r"card([0-9]{1,3})")
_HOW = "rocm-smi --showtopo, or amd-smi topology, prints it"


def read(text: str, source: str) -> Findings:
    """GPUs, the islands that XGMI joins, and the NUMA node of each.

    Without host names in front of the lines it holds for every node that other sources
    list.
    """
    ignored: list[Problem] = []
    problems: list[Problem] = []
    matrices: dict[str, Matrix] = {}
    numa: dict[str, dict[str, int]] = {}
    if text.lstrip().startswith(("{", "[")):
        matrices[""], numa[""] = _of_json(text, source)
    else:
        hosts, ignored = lines_of_hosts(text, source, _TITLE)
        for host, lines in hosts.items():
            if table := _table(lines, host, source, problems):
                matrices[host] = matrix_of(table, host, source, _STYLE, problems)
                found = (_NUMA_LINE.fullmatch(line) for _, line in lines)
                numa[host] = {f"GPU{m[1] or m[2]}": int(m[3]) for m in found if m}
            else:
                message = f"no link types between GPUs{of_host(host)} in it"
                ignored.append(Problem(message, source, lines.first, 1, hint=_HOW))
        refuse(problems if matrices or problems else ignored)
    for host, matrix in matrices.items():
        problems += _unread(matrix, host, source)
    refuse(problems)
    words = {host: matrix.words() for host, matrix in matrices.items()}
    affinities = {
        host: Affinity(_numa_nodes(matrix, numa[host]))
        for host, matrix in matrices.items()
    }
    return findings_of(source, matrices, words, ignored, affinities)


def _numa_nodes(matrix: Matrix, numa: Mapping[str, int]) -> tuple[int, ...]:
    """NUMA node of every GPU; none where one is not told."""
    known = [numa[gpu] for gpu in matrix.gpus if gpu in numa]
    return tuple(known) if len(known) == len(matrix.gpus) else ()


def _table(
    lines: Lines, host: str, source: str, problems: list[Problem]
) -> Lines | None:
    """The lines below the title of the link types, up to the next title."""
    starts = [i for i, (_, line) in enumerate(lines) if _TITLE.match(line)]
    if len(starts) > 1:
        message = f"several matrices{of_host(host)}: whose they are cannot be told"
        problems.append(Problem(message, source, lines[starts[1] :].first, 1))
    if len(starts) != 1:
        return None
    below = lines[starts[0] + 1 :]
    ends = (i for i, (_, line) in enumerate(below) if _ANY_TITLE.match(line))
    table = below[: next(ends, None)]
    if any(_STYLE.header.match(line) for _, line in table):
        return table
    problems.append(Problem("the matrix is cut", source, lines[starts[0] :].first, 1))
    return None


def _of_json(text: str, source: str) -> tuple[Matrix, dict[str, int]]:
    """The matrix of ``rocm-smi --showtopo --json``, and NUMA nodes of GPUs."""
    file = parse_answer(text, source)
    if isinstance(file.top.content, list):
        file.top.problem("amd-smi's JSON is not read", _HOW)
        file.fail_if_problems()
    numa: dict[str, int] = {}
    found: set[int] = set()
    for key, item in file.top.entries():
        if card := _CARD.fullmatch(key):
            found.add(int(card[1]))
            node = item.name(_NUMA) if item.kind == "mapping" else ""
            if re.fullmatch(r"[0-9]{1,3}", node):
                numa[f"GPU{int(card[1])}"] = int(node)
    types: dict[tuple[int, int], str] = {}
    system = file.top.at("system")
    for key, item in system.entries() if system else ():
        if pair := _PAIR.fullmatch(key):
            a, b = sorted((int(pair[1]), int(pair[2])))
            types[a, b] = item.name()
            found |= {a, b}
    if not types and len(found) != 1:
        file.top.problem("no link types between GPUs in it", _HOW)
    file.fail_if_problems()
    gpus = sorted(found)
    if len(gpus) > MAX_DEVICES:
        raise InputError(f"{len(gpus)} devices, the most is {MAX_DEVICES}", source)
    absent = [(a, b) for a, b in combinations(gpus, 2) if (a, b) not in types]
    refuse(
        [Problem(f"no link type of GPU{a} and GPU{b}: cut?", source) for a, b in absent]
    )
    cells = {(f"GPU{a}", f"GPU{b}"): kind for (a, b), kind in types.items()}
    return Matrix(_STYLE, [f"GPU{gpu}" for gpu in gpus], cells), numa


def _unread(matrix: Matrix, host: str, source: str) -> list[Problem]:
    """Pairs of GPUs whose link the tool could not read."""
    of = of_host(host)
    return [
        Problem(f"the link of {a} and {b}{of} was not read: {cell}", source)
        for a, b in combinations(matrix.gpus, 2)
        if (cell := matrix.cells[a, b]) not in ("XGMI", "PCIE")
    ]
