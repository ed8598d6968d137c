"""A comparison of a job with its plan as text: folded, the first few of everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.launch.compare import Comparison, Wrong
    from placer.launch.habits import Habit

_SHOWN = 8


def verdict_text(found: Comparison, habits: Sequence[Habit] = ()) -> str:
    """What is wrong and the habit that explains it, or that all holds."""
    unit = f"{found.unit}s"
    if found.holds:
        return f"ok: {_share(found.reported, found)} where the plan has them"
    return "\n".join([*_wrong(found, unit), *_counts(found, unit), *_habits(habits)])


def notes(found: Comparison, unreadable: Sequence[int] = ()) -> Iterator[str]:
    """What could not be compared, one sentence each."""
    if found.unknown_gpus:
        yield (
            f"processes whose GPU is not compared: {found.unknown_gpus:,}; nothing in "
            "their environment tells which one of the host's it is"
        )
    if unreadable:
        lines = ranges(sorted(set(unreadable)))
        yield f"reports that cannot be read: {len(unreadable):,}, in lines {lines}"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, neighbours joined: ``0-3, 7``; the first few only."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    ]
    shown = [str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(runs) > _SHOWN else "")


def _share(count: int, found: Comparison) -> str:
    plural = "s" if found.expected != 1 else ""
    verb = "is" if count == 1 else "are"
    return f"{count:,} of {found.expected:,} {found.unit}{plural} {verb}"


def _wrong(found: Comparison, unit: str) -> Iterator[str]:
    if not found.wrong:
        return
    yield f"wrong: {_share(len(found.wrong), found)} not where the plan has them"
    lines = _folded(found.wrong)
    for count, line in islice(lines, _SHOWN):
        label = unit if count > 1 else found.unit
        yield f"  {label} {line}"
    if more := sum(count for count, _ in lines):
        yield f"  and {more:,} more {unit}"


def _folded(wrong: Sequence[Wrong]) -> Iterator[tuple[int, str]]:
    """Neighbouring ranks with the same fault, as a count and a line."""

    def fault(numbered: tuple[int, Wrong]) -> tuple[int, str, str, bool]:
        position, row = numbered
        return row.rank - position, row.planned_host, row.host, row.gpu is None

    for (_, planned, host, whole), group in groupby(enumerate(wrong), fault):
        rows = [row for _, row in group]
        ranks = ranges([row.rank for row in rows])
        if whole:
            yield len(rows), f"{ranks}: planned on {planned}, run on {host}"
        else:
            wanted = _gpus([row.planned_gpu for row in rows])
            used = _gpus([row.gpu for row in rows])
            yield len(rows), f"{ranks} on {host}: planned on GPU {wanted}, use {used}"


def _gpus(numbers: Sequence[int | None]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return shown + (", ..." if len(numbers) > _SHOWN else "")


def _counts(found: Comparison, unit: str) -> Iterator[str]:
    for what, ranks in (
        ("missing", found.missing),
        ("reported more than once", found.repeated),
        ("not in the plan", found.outside),
    ):
        if ranks:
            label = unit if len(ranks) > 1 else found.unit
            yield f"{what}: {len(ranks):,} {label} ({ranges(ranks)})"
    if found.world_sizes:
        sizes = ", ".join(map(str, found.world_sizes[:_SHOWN]))
        yield f"world size: processes say {sizes}, the plan has {found.expected:,}"
    for what, names in (
        ("hosts that are not in the plan", found.strangers),
        ("GPUs used more than once", found.shared_gpus),
    ):
        if names:
            more = len(names) - _SHOWN
            rest = f" and {more:,} more" if more > 0 else ""
            yield f"{what}: {'; '.join(names[:_SHOWN])}{rest}"


def _habits(habits: Sequence[Habit]) -> Iterator[str]:
    if len(habits) > 1:
        yield "explained by one of:"
    for habit in habits:
        start = "  " if len(habits) > 1 else "explained: "
        yield f"{start}{habit.text} ({habit.name})"
        yield f"{'    ' if len(habits) > 1 else '  '}hint: {habit.hint}"
