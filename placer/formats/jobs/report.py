"""What was read, derived, assumed, left out and ignored, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placer.base.errors import Problem
from placer.formats.jobs.convert import origin
from placer.formats.jobs.findings import Fact, Findings, Kind, Remark, one_line, shown

_MOST = 4


def summary(found: Findings) -> str:
    """One line: how much of each kind, with what is not plainly read.

    ``read 24, derived 7 (dp 64 = 1,024 GPUs / (tp 8 x pp 2)), assumed 2 (...), ...``
    """
    parts = []
    for kind in ("given", "read", "derived", "assumed"):
        facts = _of_kind(found, kind)
        if not facts:
            continue
        told = []
        for key, fact in facts:
            if kind == "assumed":
                told.append(f"{key} {shown(fact.value)}: {fact.origin}")
            elif kind == "derived" and key == "parallelism.dp":
                told.append(f"dp {shown(fact.value)} = {fact.origin}")
        parts.append(_counted(kind, len(facts), told))
    if found.not_modelled:
        told = [_told(remark) for remark in found.not_modelled]
        parts.append(_counted("not modelled", len(told), told))
    if found.ignored:
        parts.append(_counted("ignored", len(found.ignored), []))
    return one_line(", ".join(parts))


def lines(found: Findings) -> Iterator[str]:
    """A line for each key: what it is and where it comes from."""
    for key, fact in found.facts.items():
        yield one_line(f"{key}: {shown(fact.value)}: {origin(fact)}")
    for words, remarks in (
        ("not modelled", found.not_modelled),
        ("ignored", found.ignored),
    ):
        for remark in remarks:
            yield one_line(f"{words}: {_told(remark)}: {remark.place}")


def doubts(found: Findings) -> list[Problem]:
    """What is assumed and what is not modelled, each as a problem."""
    problems = [
        Problem(f"assumed {shown(fact.value)}: {fact.origin}", *fact.place, key)
        for key, fact in _of_kind(found, "assumed")
    ]
    problems += [
        Problem(f"not modelled: {_told(remark)}", *remark.place)
        for remark in found.not_modelled
    ]
    return problems


def _of_kind(found: Findings, kind: Kind) -> list[tuple[str, Fact]]:
    return [(key, fact) for key, fact in found.facts.items() if fact.kind == kind]


def _told(remark: Remark) -> str:
    return f"{remark.key}, {remark.reason}" if remark.reason else remark.key


def _counted(words: str, count: int, told: Sequence[str]) -> str:
    """So many of a kind, with the first of them in brackets."""
    if not told:
        return f"{words} {count}"
    more = f"; {len(told) - _MOST} more" if len(told) > _MOST else ""
    return f"{words} {count} ({'; '.join(told[:_MOST])}{more})"
