"""Runs a sweep: points through an engine, rows back in the order of the grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.api.inputs import read_inputs
from placer.workers.engine import Engine, Sequential, Stop

if TYPE_CHECKING:
    from placer.sweep.grid import Point
    from placer.sweep.point import Row, Task


def _silent(_done: int, _total: int) -> None:
    pass


def sweep(
    task: Task,
    points: Sequence[Point],
    engine: Engine | None = None,
    progress: Callable[[int, int], None] = _silent,
    stop: Stop = lambda: False,
) -> list[Row]:
    """The rows of the points, in their order and the same whatever the engine.

    Parameters
    ----------
    task : Task
    points : sequence of Point
    engine : Engine, optional
        Where points are worked out; this process by default.
    progress : callable
        Told how many points are done, and how many there are.
    stop : callable
        Asked now and then; once it is true the rows done so far are returned.

    Raises
    ------
    InputError
        If topology or job cannot be read, or do not fit each other.
    """
    topology, job = read_inputs(task.topology, task.job)
    task = replace(task, topology=topology, job=job)
    rows: dict[int, Row] = {}
    progress(0, len(points))
    with (engine or Sequential()).opened(task, stop) as run:
        for index, row in run(points):
            rows[index] = row
            progress(len(rows), len(points))
    return ranked(_with_efficiency([(points[i], rows[i]) for i in sorted(rows)]))


def ranked(rows: Sequence[Row]) -> list[Row]:
    """The rows in their order, those with a placement with their ``rank``.

    1 is the one that trains the most samples a second, or where nothing is timed has
    the least hop cost.
    """
    order = sorted(
        (i for i, row in enumerate(rows) if _cost(row)), key=lambda i: _cost(rows[i])
    )
    place = {index: rank for rank, index in enumerate(order, 1)}
    return [
        row | ({"rank": place[i]} if i in place else {}) for i, row in enumerate(rows)
    ]


def _cost(row: Row) -> float:
    """Seconds a sample, hop cost without a time; 0 without a placement."""
    step = row.get("step_time_s", 0.0)
    if step:
        return float(step / row.get("global_batch", 1))
    return float(row.get("hop_cost", 0.0))


def _with_efficiency(done: Sequence[tuple[Point, Row]]) -> list[Row]:
    """The rows with their weak-scaling efficiency where ``dp`` is swept.

    Every replica does the same work whatever ``dp`` is, so it is the step time of the
    first row that differs in ``dp`` alone over that of the row.
    """
    first: dict[tuple[tuple[str, float], ...], float] = {}
    rows = []
    for point, row in done:
        step = row.get("step_time_s", 0.0)
        if "dp" in point and step > 0:
            rest = tuple((key, point[key]) for key in point if key != "dp")
            row["weak_scaling_efficiency"] = first.setdefault(rest, step) / step
        rows.append(row)
    return rows
