"""One point of a sweep: its inputs, its best placement, its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from placer.api.inputs import read_inputs
from placer.api.place import place
from placer.base.errors import InfeasibleError, InputError, PlacerError
from placer.cost.footprint.stages import memory_score
from placer.cost.work import on_gpu
from placer.report.score_text import misfit
from placer.solve.problem.effort import NORMAL
from placer.sweep.inputs import job_at, machine_at
from placer.workers.engine import Engine, Sequential, Stop

if TYPE_CHECKING:
    from placer.api.options import ObjectiveName
    from placer.api.result import Result
    from placer.job.model import Job
    from placer.sweep.grid import Point
    from placer.topology.model import Topology


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

    ``engine``: where points are worked out; this process by default. ``progress``: told
    how many points are done, and how many there are. ``stop``: asked now and then; once
    it is true the rows done so far are returned.
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


Row = dict[str, Any]

_SCORE_KEYS = ("step_time_s", "exposed_scale_out_s", "hop_cost")
_BOUND_KEYS = ("objective", "lower_bound", "gap", "status")


@dataclass(frozen=True, eq=False)
class Task:
    """What all points of a sweep share; it can be pickled."""

    # `sweep` takes what `read_topology` takes, and for the job what `read_job` takes.
    topology: Topology
    job: Job
    # The allocation in launch order; every usable node when None.
    hosts: tuple[str, ...] | None = None
    # ``time`` or ``hop-cost``, as in `placer.place`.
    objective: ObjectiveName | None = None
    time_limit: float = 60.0  # s: for each point
    seed: int = 0
    framework: str = "megatron"  # whose rules the points obey

    def job_at(self, point: Point) -> Job:
        """The job with the sizes of a point; its machine says what its GPUs reach."""
        return job_at(on_gpu(self.job, self.topology.gpu), point, self.framework)

    def answer(
        self, point: Point, stop: Callable[[], bool] = lambda: False
    ) -> Row | None:
        """The row of one point; None when ``stop`` cut its search short.

        A point without a placement is a row too: its ``status`` is ``infeasible``, or
        ``invalid`` when there is no such job, and ``error`` says why.
        """
        row: Row = dict(point)
        try:
            job = self.job_at(point)
            row["world_size"] = job.world_size
            if job.model is not None:
                row["global_batch"] = _global_batch(job)
            memory = machine_at(self.topology, point).gpu.memory
            if too_much := misfit(memory_score(job, memory)):
                raise InfeasibleError(too_much)
            result = self.placed(point, stop)
        except (InputError, InfeasibleError) as error:
            status = "infeasible" if isinstance(error, InfeasibleError) else "invalid"
            return row | {"status": status, "error": _text(error)}
        if result.stop_reason == "interrupted":
            return None
        row |= {key: result.score[key] for key in _SCORE_KEYS if key in result.score}
        return row | {key: result.bound[key] for key in _BOUND_KEYS}

    def placed(self, point: Point, stop: Callable[[], bool] = lambda: False) -> Result:
        """The best placement of one point.

        Raises `InputError`, `InfeasibleError` if there is none.
        """
        return place(
            machine_at(self.topology, point),
            self.job_at(point),
            hosts=self.hosts,
            objective=self.objective,
            time_limit=self.time_limit,
            seed=self.seed,
            effort=NORMAL,  # the best there is, not the order in use
            workers=1,  # points run side by side
            stop=stop,
        )


def _global_batch(job: Job) -> int:
    return job.parallelism.dp * job.micro_batches * job.micro_batch


def _text(error: PlacerError) -> str:
    """The error on one line, without the places of a file that nobody wrote."""
    if isinstance(error, InputError):
        parts = (
            ": ".join(part for part in (problem.key, problem.message) if part)
            for problem in error.problems
        )
        return "; ".join(parts)
    if isinstance(error, InfeasibleError):
        hints = f" ({'; '.join(error.hints)})" if error.hints else ""
        return error.reason.replace("\n", "; ") + hints
    return str(error)
