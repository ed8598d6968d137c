"""The processes of a job beside its plan: who is wrong, missing or there twice.

As text it is folded, with the first few of everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from placer.base.units import counted
from placer.launch.process import Process
from placer.launch.ranks import HostTable, node_ranks, plan_gpus, shared

if TYPE_CHECKING:
    from placer.launch.habits import Habit
    from placer.placement.plan import Plan

_SHOWN = 8


@dataclass(frozen=True)
class Seats:
    """What the plan wants of every process."""

    unit: str  # ``rank``, or ``node`` when one process a host speaks for all its ranks
    node: list[int]  # index into the plan's nodes, by rank (or node rank)
    gpu: list[int]  # GPU, by rank; empty when the unit is the node


@dataclass(frozen=True)
class Wrong:
    """A process that is not where the plan has it."""

    rank: int
    planned_host: str
    host: str  # as reported
    # planned_gpu and gpu: None when the host is wrong already.
    planned_gpu: int | None = None
    gpu: int | None = None


@dataclass(frozen=True)
class Comparison:
    """Everything in which a job differs from its plan."""

    unit: str  # what a report stands for: ``rank`` or ``node``
    # expected and reported: processes the plan wants, and reports there are.
    expected: int
    reported: int
    # Sizes that processes give their world, where one is not ``expected``.
    world_sizes: tuple[int, ...]
    wrong: tuple[Wrong, ...]  # by rank
    # missing, repeated and outside: ranks without a report, with several, and beyond
    # the plan.
    missing: tuple[int, ...]
    repeated: tuple[int, ...]
    outside: tuple[int, ...]
    strangers: tuple[str, ...]  # hosts that are not in the plan
    shared_gpus: tuple[str, ...]  # GPUs that several processes use, in words
    unknown_gpus: int  # processes on their host whose GPU nothing tells

    @property
    def holds(self) -> bool:
        """Whether every process is where the plan has it."""
        of_ranks = self.wrong, self.missing, self.repeated, self.outside
        return not any((*of_ranks, self.strangers, self.shared_gpus, self.world_sizes))

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data for JSON."""
        return {"ok": self.holds, **asdict(self)}


def seats_of(plan: Plan, processes: Sequence[Process]) -> Seats:
    """What the plan wants of these processes: one a rank, or one a node."""
    nodes = node_ranks(plan)
    sizes = Counter(p.world_size for p in processes if p.world_size is not None)
    if sizes:
        by_node = sizes.most_common(1)[0][0] == len(nodes) != plan.world_size
    else:
        ranks = [p.rank for p in processes if p.rank is not None]
        placed = any(p.local_rank is not None for p in processes)
        by_node = not placed and max(ranks, default=0) < len(nodes) < plan.world_size
    if by_node:
        return Seats("node", nodes, [])
    return Seats("rank", plan.node_of_rank.tolist(), plan.gpu_of_rank.tolist())


def compare(
    plan: Plan, processes: Sequence[Process], *, alone: bool = False
) -> Comparison:
    """How the processes differ from the plan; ``alone``: others are not missed."""
    seats = seats_of(plan, processes)
    expected = len(seats.node)
    reports = Counter(p.rank for p in processes if p.rank is not None)
    table = HostTable(plan.nodes)
    there: dict[int | None, list[Process]] = {}
    for process in processes:
        there.setdefault(table.find(process.host), []).append(process)
    wrong, unknown = _misplaced(plan, seats, there)
    sizes = {p.world_size for p in processes if p.world_size is not None}
    return Comparison(
        unit=seats.unit,
        expected=expected,
        reported=len(processes),
        world_sizes=tuple(sorted(sizes)) if sizes - {expected} else (),
        wrong=tuple(sorted(wrong, key=lambda row: row.rank)),
        missing=() if alone else tuple(r for r in range(expected) if r not in reports),
        repeated=tuple(sorted(r for r, times in reports.items() if times > 1)),
        outside=tuple(sorted(r for r in reports if r >= expected)),
        strangers=tuple(dict.fromkeys(p.host for p in there.get(None, ()))),
        shared_gpus=tuple(_shared(plan, there)) if seats.unit == "rank" else (),
        unknown_gpus=unknown,
    )


def _misplaced(
    plan: Plan, seats: Seats, there: Mapping[int | None, Sequence[Process]]
) -> tuple[list[Wrong], int]:
    """Processes on the wrong host or GPU, and how many GPUs nothing tells.

    ``there``: those on each node.
    """
    wrong: list[Wrong] = []
    unknown = 0
    planned: dict[int, set[int]] = {}
    for node, gpu in zip(seats.node, seats.gpu, strict=False):  # no GPUs for nodes
        planned.setdefault(node, set()).add(gpu)
    for found, running in there.items():
        used = plan_gpus(running, planned.get(-1 if found is None else found, ()))
        for process, own in zip(running, used, strict=True):
            rank = process.rank
            if rank is None or rank >= len(seats.node):
                continue
            host = plan.nodes[seats.node[rank]]
            if found != seats.node[rank]:
                wrong.append(Wrong(rank, host, process.host))
            elif seats.unit == "node":
                continue
            elif own is None:
                unknown += 1
            elif own != seats.gpu[rank]:
                wrong.append(Wrong(rank, host, process.host, seats.gpu[rank], own))
    return wrong, unknown


def _shared(plan: Plan, there: Mapping[int | None, Sequence[Process]]) -> Iterator[str]:
    for node, running in there.items():
        if node is None:
            continue
        for gpu, users in shared(running).items():
            ranks = ", ".join(str(user.rank) for user in users[:8])
            more = ", ..." if len(users) > 8 else ""
            yield f"GPU {gpu} of {plan.nodes[node]}: ranks {ranks}{more}"


def verdict_text(found: Comparison, habits: Sequence[Habit] = ()) -> str:
    """What is wrong and the habit that explains it, or that all holds."""
    unit = f"{found.unit}s"
    if found.holds:
        return f"ok: {_share(found.reported, found)} where the plan has them"
    return "\n".join(
        [*_wrong_lines(found, unit), *_counts(found, unit), *_habits(habits)]
    )


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
    verb = "is" if count == 1 else "are"
    return f"{count:,} of {counted(found.expected, found.unit)} {verb}"


def _wrong_lines(found: Comparison, unit: str) -> Iterator[str]:
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
