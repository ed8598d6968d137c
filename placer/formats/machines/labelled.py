"""Output of one command on many hosts, each line behind its host.

``pdsh`` and ``clush`` print ``host: line``; ``srun -l`` prints ``3: line``, with the
number of the task.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from placer.base.errors import InputError, Problem
from placer.formats.machines.findings import MAX_NODES

LABEL = r"[ ]{0,7}[A-Za-z0-9][\w.-]{0,252}:(?:[ ]|$)"

_LABELLED = re.compile(r"[ ]{0,7}([A-Za-z0-9][\w.-]{0,252}):(?:[ ](.*))?")
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}m")


class Lines:
    """Numbered lines of a text, cut out of it one at a time.

    Ten million short lines at once would take fifty times their text.
    """

    def __init__(self, text: str, numbers: Sequence[int]) -> None:
        self._text = text
        self._numbers = numbers

    def __iter__(self) -> Iterator[tuple[int, str]]:
        lines = StringIO(f"{self._text}\n", newline="\n")
        for number, line in zip(self._numbers, lines, strict=False):
            yield number, line[:-1]

    def __getitem__(self, part: slice) -> Lines:
        count = len(self._numbers)
        first, last, _ = part.indices(count)
        start = self._start(first, 0, 0)
        end = len(self._text)
        if last < count:
            end = max(start, self._start(last, first, start) - 1)
        return Lines(self._text[start:end], self._numbers[first:last])

    def _start(self, line: int, known: int, start: int) -> int:
        """Where a line starts, from where one before it does."""
        for _ in range(line - known):
            start = self._text.find("\n", start) + 1
        return start

    @property
    def first(self) -> int:
        """Number of the first line."""
        return self._numbers[0]


def lines_of_hosts(
    text: str, source: str, marker: re.Pattern[str]
) -> tuple[dict[str, Lines], list[Problem]]:
    """Numbered lines of every host, and those that have no host though others do.

    Without labels all lines are those of the host ``""``. Escape codes are dropped.

    ``marker``: matches a line of the command's output, which may stand behind a label.
    """
    text = _COLOURS.sub("", text)
    lines = Lines(text, range(1, text.count("\n") + 2))
    if not _is_labelled(lines, marker):
        return {"": lines}, []
    found: dict[str, tuple[bytearray, array[int]]] = {}
    ignored = []
    for number, line in lines:
        match = _LABELLED.fullmatch(line)
        if match:
            written, numbers = found.setdefault(match[1], (bytearray(), array("I")))
            written += f"{match[2] or ''}\n".encode("utf-8", "surrogatepass")
            numbers.append(number)
        elif line.strip():
            ignored.append(Problem("no host in front", source, number, 1))
        if len(found) > MAX_NODES:
            raise InputError(f"more than {MAX_NODES} nodes", source)
        if len(ignored) > MAX_NODES:
            message = f"more than {MAX_NODES} lines have no host in front"
            raise InputError(message, source, number, 1)
    hosts = {
        host: Lines(written[:-1].decode("utf-8", "surrogatepass"), numbers)
        for host, (written, numbers) in found.items()
    }
    return hosts, ignored


def are_numbers(hosts: Iterable[str]) -> bool:
    """Whether all hosts are numbers, as tasks of ``srun -l`` are."""
    return all(host.isdecimal() for host in hosts)


def _is_labelled(lines: Lines, marker: re.Pattern[str]) -> bool:
    for _, line in lines:
        if marker.match(line):
            return False
        match = _LABELLED.fullmatch(line)
        if match and match[2] and marker.match(match[2]):
            return True
    return False
