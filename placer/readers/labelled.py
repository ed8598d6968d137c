"""Output of one command on many hosts, each line behind its host.

``pdsh`` and ``clush`` print ``host: line``; ``srun -l`` prints ``3: line``, with the
number of the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from placer.errors import Problem, refuse
from placer.readers.findings import MAX_NODES

LABEL = r"[ ]{0,7}[A-Za-z0-9][\w.-]{0,252}:(?:[ ]|$)"

_LABELLED = re.compile(r"[ ]{0,7}([A-Za-z0-9][\w.-]{0,252}):(?:[ ](.*))?")
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}m")

Lines = list[tuple[int, str]]


def lines_of_hosts(
    text: str, source: str, marker: re.Pattern[str]
) -> tuple[dict[str, Lines], list[Problem]]:
    """Numbered lines of every host, and those that have no host though others do.

    Without labels all lines are those of the host ``""``. Escape codes are dropped.

    Parameters
    ----------
    text, source : str
    marker : pattern
        Matches a line of the command's output, which may stand behind a label.

    Raises
    ------
    InputError
        If there are too many hosts.
    """
    lines = list(enumerate(_COLOURS.sub("", text).split("\n"), start=1))
    if not _is_labelled([line for _, line in lines], marker):
        return {"": lines}, []
    hosts: dict[str, Lines] = {}
    ignored = []
    for number, line in lines:
        match = _LABELLED.fullmatch(line)
        if match:
            hosts.setdefault(match[1], []).append((number, match[2] or ""))
        elif line.strip():
            ignored.append(Problem("no host in front", source, number, 1))
    if len(hosts) > MAX_NODES:
        refuse([Problem(f"more than {MAX_NODES} nodes", source)])
    return hosts, ignored


def are_numbers(hosts: Iterable[str]) -> bool:
    """Whether all hosts are numbers, as tasks of ``srun -l`` are."""
    return all(host.isdecimal() for host in hosts)


def _is_labelled(lines: list[str], marker: re.Pattern[str]) -> bool:
    for line in lines:
        if marker.match(line):
            return False
        match = _LABELLED.fullmatch(line)
        if match and match[2] and marker.match(match[2]):
            return True
    return False
