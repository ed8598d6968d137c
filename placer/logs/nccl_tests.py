"""Tables of NVIDIA's nccl-tests: times and bandwidths of a collective by size.

Source: NVIDIA/nccl-tests a0b82b22, ``src/common.cu`` and ``doc/PERFORMANCE.md`` (bus
bandwidth). Columns vary: the header says which there are, and rows are counted from the
right, because they leave ``redop`` and ``root`` blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from placer.base.errors import InputError
from placer.documents import known_hint
from placer.logs.steps import clean_lines

PATTERN = r"(?m)#?\s+size\s+count\s+type\b.*\btime\s+algbw\s+busbw"
TESTS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "alltoall",
    "sendrecv",
    "broadcast",
    "reduce",
)
_PREFIX = re.compile(r"\s*(?:\[\d+,\d+\]<std\w+>:|[\w.-]{1,64}: (?=\s*[#\d]))")
_RANK = re.compile(r"Rank\s+(\d{1,7})\s.*?\bon\s+(\S{1,255})\s+device")
_TEST = re.compile(rf"\b({'|'.join(TESTS)})_perf\b")
_USUAL: tuple[str, ...] = ("time", "algbw", "busbw", "#wrong") * 2


@dataclass(frozen=True)
class Row:
    """One size: its buffer (B), time (s), and bandwidths (B/s), out of place."""

    size_bytes: int
    seconds: float
    algorithm_bandwidth: float
    bus_bandwidth: float


@dataclass
class Table:
    """One run of a test."""

    source: str
    test: str = ""  # of `TESTS`; empty when nothing tells it
    rows: list[Row] = field(default_factory=list)
    # Host of each rank; empty when not listed.
    hosts: dict[int, str] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """GPUs, listed or told by the ratio of both bandwidths; 0 when unknown."""
        if self.hosts:
            return len(self.hosts)
        share = self.ratio / 2 if self.test == "all_reduce" else self.ratio
        # (n - 1) / n, or twice that: both are printed with two digits.
        return round(1 / (1 - share)) if 0.4 < share < 0.999 else 0

    @property
    def ratio(self) -> float:
        """Bus bandwidth in algorithm bandwidth, at the largest size; 0 when unknown."""
        largest = max(self.rows, key=lambda row: row.size_bytes)
        if not largest.algorithm_bandwidth:
            return 0.0
        return largest.bus_bandwidth / largest.algorithm_bandwidth

    @property
    def nodes(self) -> int:
        """Hosts, 0 when not listed."""
        return len(set(self.hosts.values()))


def read(text: str, source: str, test: str = "") -> list[Table]:
    """The tables of a text that have any row.

    ``test``: the test, for tables that do not show it.
    """
    if test and test not in TESTS:
        raise InputError(
            "there is no such test", key="--test", hint=known_hint(test, TESTS)
        )
    tables = [table for table in _tables(text, source) if table.rows]
    if not tables:
        raise InputError("no table of nccl-tests in it", source)
    for table in tables:
        table.test = table.test or _by_ratio(table) or test
        if not table.test:
            hint = f"--test NAME: {', '.join(TESTS)}"
            message = "it does not say which test it is of"
            raise InputError(message, source, key="--test", hint=hint)
    return tables


def _tables(text: str, source: str) -> Iterator[Table]:
    """Tables one after the other: a list of ranks or a header begins the next."""
    table, header = Table(source), _USUAL
    for line in clean_lines(text):
        plain = _PREFIX.sub("", line, count=1)
        rank, test = _RANK.search(plain), _TEST.search(plain)
        words = plain.lstrip(" #").split()
        if rank or test:
            if table.rows:
                yield table
                table = Table(source)
            if rank:
                table.hosts[int(rank[1])] = rank[2]
            if test:
                table.test = test[1]
        elif words[:3] == ["size", "count", "type"] and "time" in words:
            header = tuple(words[words.index("time") :])
            if table.rows:
                yield table
                table = Table(source, table.test, hosts=table.hosts)
        else:
            row = _row(words, header)
            if row is not None:
                table.rows.append(row)
    yield table


def _row(words: list[str], header: tuple[str, ...]) -> Row | None:
    """A row of numbers; None for any other line, and for a size of 0."""
    if len(words) < 3 + len(header) or not (words[0].isdigit() and words[1].isdigit()):
        return None
    # Of both halves of a row the first counts: out of place.
    values = words[-len(header) :]
    places = [
        header.index(name) for name in ("time", "algbw", "busbw") if name in header
    ]
    try:
        time, algorithm, bus = (float(values[place]) for place in places)
    except ValueError:
        return None
    size = int(words[0]) if len(words[0]) < 19 else 0
    if not (size and 0 < time < 1e12 and 0 <= bus < 1e9 and 0 <= algorithm < 1e9):
        return None
    return Row(size, time * 1e-6, algorithm * 1e9, bus * 1e9)


def _by_ratio(table: Table) -> str:
    """An all-reduce moves more than its buffer over the bus; nothing else does."""
    return "all_reduce" if 1.01 < table.ratio < 2 else ""
