"""What jobs to come want: nodes of one domain, and how often."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import lcm

from placer.base.errors import InputError, Problem, refuse
from placer.documents import files

# Nodes of one domain, and how often in proportion to the others; the largest first.
Demand = tuple[tuple[int, int], ...]

MOST_NODES = 1_000_000
MOST_OFTEN = 10_000  # in all
_ITEM = re.compile(r"([0-9]{1,9})(?:\s*=\s*([0-9]*\.?[0-9]{1,9}))?")
_HINT = "write nodes, or nodes=how often: 16=4,8=3,1"


def demand_of(given: Mapping[str, float] | str) -> Demand:
    """The demand of a mapping, a text such as ``16=4,8=3,1``, or ``@FILE``.

    A file has an item a line, such as the queue that ``squeue -h -t PD -o %D`` prints.
    An item without a number counts once; equal ones are added up.

    Raises
    ------
    InputError
        If an item is no number of nodes, the file cannot be read, or nothing is wanted;
        with all bad items.
    """
    counts: dict[int, Fraction] = {}
    problems = []
    for text, source, line, column in _items(given):
        item = _ITEM.fullmatch(text)
        nodes = int(item[1]) if item else 0
        often = Fraction(item[2] or 1) if item else Fraction(0)
        if not 1 <= nodes <= MOST_NODES or not often:
            message = f"expected nodes from 1 to {MOST_NODES:,}, got {text!r}"
            key = "" if source else "demand"
            problems.append(Problem(message, source, line, column, key, _HINT))
        counts[nodes] = counts.get(nodes, Fraction(0)) + often
    refuse(problems)
    if not counts:
        raise InputError([Problem("no job is wanted", key="demand", hint=_HINT)])
    scale: Fraction | int = lcm(*(often.denominator for often in counts.values()))
    total = sum(counts.values()) * scale
    if total > MOST_OFTEN:  # so that what is counted stays a whole number of 64 bits
        scale *= Fraction(MOST_OFTEN, total)
    return tuple(
        (n, max(1, round(counts[n] * scale))) for n in sorted(counts, reverse=True)
    )


def _items(given: Mapping[str, float] | str) -> Iterator[tuple[str, str, int, int]]:
    """Each item, with the file, line and column it comes from."""
    if isinstance(given, Mapping):
        yield from ((f"{nodes}={often}", "", 0, 0) for nodes, often in given.items())
    elif given.startswith("@"):
        path = given[1:]
        for number, line in enumerate(files.read_text(path).split("\n"), 1):
            content = line.partition("#")[0]
            if text := content.strip():
                column = len(content) - len(content.lstrip()) + 1
                yield text, files.shown_name(path), number, column
    else:
        yield from ((item.strip(), "", 0, 0) for item in given.split(","))
