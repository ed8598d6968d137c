"""One point of a sweep: its inputs, its best placement, its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from placer.api.options import ObjectiveName
from placer.api.place import place
from placer.api.result import Result
from placer.base.errors import InfeasibleError, InputError, PlacerError, Problem, refuse
from placer.cost.footprint.stages import memory_score
from placer.cost.work import on_gpu
from placer.documents import closest
from placer.job.decode import job_digest
from placer.job.model import Job
from placer.job.resize import resized
from placer.report.score_text import misfit
from placer.solve.problem.params import NORMAL
from placer.sweep.grid import (
    GLOBAL_BATCH,
    GPUS,
    NIC_RATE,
    OVERSUBSCRIPTION,
    SIZES,
    Axes,
    Point,
)
from placer.topology.model import Topology
from placer.tune.choice import Choice, overlap_at
from placer.tune.space import broken
from placer.workers.engine import Engine, Sequential, Stop


def sweep(
    task: Task,
    points: Sequence[Point],
    engine: Engine | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stop: Stop = lambda: False,
) -> list[Row]:
    """The rows of the points, in their order and the same whatever the engine.

    ``engine``: where points are worked out; this process by default. ``progress``: told
    how many points are done, and how many there are. ``stop``: asked now and then; once
    it is true the rows done so far are returned.
    """
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
                axes = job.parallelism
                row["global_batch"] = axes.dp * job.micro_batches * job.micro_batch
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


def job_at(job: Job, point: Point, framework: str = "megatron") -> Job:
    """The job with the sizes of a point, checked as if its file had them.

    It obeys the rules of a framework, but for those that the job itself breaks: what
    runs already knows better.
    """
    sizes = {key: int(point[key]) for key in SIZES if key in point}
    gpus, batch = sizes.pop(GPUS, 0), sizes.pop(GLOBAL_BATCH, 0)
    axes = {axis: job.parallelism.size(axis) for axis in ("tp", "cp", "pp", "dp")}
    axes |= {axis: size for axis, size in sizes.items() if axis in axes}
    if gpus:
        replica = axes["tp"] * axes["cp"] * axes["pp"]
        axes["dp"] = sizes["dp"] = _shared(gpus, replica, "tp x cp x pp", GPUS)
    if batch:
        samples = axes["dp"] * job.micro_batch
        what = "dp x micro_batch"
        sizes["micro_batches"] = _shared(batch, samples, what, GLOBAL_BATCH)
    found = resized(job, **sizes)
    if found is job or job.model is None:
        return found
    choice, rules = Choice.of(found), (job, job.model, framework)
    new = broken(choice, *rules) - broken(Choice.of(job), *rules)
    refuse(Problem(f"{framework} refuses {reason}") for reason in sorted(new))
    overlap = overlap_at(job, choice)
    if overlap == found.overlap:
        return found
    found = replace(found, overlap=overlap)
    return replace(found, sha256=job_digest(found))


def _shared(number: int, parts: int, what: str, key: str) -> int:
    """What each part gets of a number that must divide."""
    if number % parts:
        message = f"{what} = {parts:,} does not divide {number:,}"
        raise InputError(message, key=key)
    return number // parts


def machine_at(topology: Topology, point: Point) -> Topology:
    """The machine with the scale-out rates and oversubscriptions of a point."""
    tiers = list(topology.tiers)
    for key, value in point.items():
        name, _, tier = key.partition("_")
        if key == NIC_RATE:
            _require_scale_out(topology)
            inner = tiers[0].bandwidth
            for t in range(topology.scale_up_tier + 1, len(tiers)):
                # A distance that followed the rate follows it again.
                followed = tiers[t].distance == inner / tiers[t].bandwidth
                distance = inner / value if followed else tiers[t].distance
                rate = float(value)
                tiers[t] = replace(tiers[t], bandwidth=rate, distance=distance)
        elif name == OVERSUBSCRIPTION:
            t = _scale_out_tier(topology, tier)
            tiers[t] = replace(tiers[t], oversubscription=float(value))
    if tuple(tiers) == topology.tiers:
        return topology
    # Not the machine of the file any more, so not its digest either.
    return replace(topology, tiers=tuple(tiers), sha256="")


def check_axes(topology: Topology, axes: Axes) -> None:
    """Nothing, when the machine has what the axes want to change."""
    outermost = topology.tiers[-1].name
    swept = []
    for key, values in axes.items():
        machine_at(topology, {key: values[0]})
        name, _, tier = key.partition("_")
        if name == OVERSUBSCRIPTION:
            swept.append(tier or outermost)
    for tier in swept:
        if swept.count(tier) > 1:
            raise InputError(f"the oversubscription of tier {tier} is swept twice")


def _scale_out_tier(topology: Topology, name: str) -> int:
    _require_scale_out(topology)
    names = [tier.name for tier in topology.tiers]
    if name and name not in names:
        hint = closest(name, names) or f"its tiers are {', '.join(names)}"
        message = f'the topology {topology.name} has no tier "{name}"'
        raise InputError(message, key=OVERSUBSCRIPTION, hint=hint)
    t = topology.tier_index(name) if name else len(names) - 1
    if t <= topology.scale_up_tier:
        message = f"tier {name} is NVLink, which has no shared uplinks"
        raise InputError(message, key=OVERSUBSCRIPTION)
    return t


def _require_scale_out(topology: Topology) -> None:
    if topology.scale_up_tier + 1 == len(topology.tiers):
        raise InputError(f"the topology {topology.name} has no tier above NVLink")
