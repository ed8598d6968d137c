"""What was measured, one entry a configuration, and how its runs scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import pi
from statistics import fmean, median

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.calibrate.measurements import Point, timed, work_ratio
from placer.cost.step import StepModel
from placer.job.decode import job_digest
from placer.job.model import Job
from placer.job.paces import rounds
from placer.placement.baselines import baseline

_APART = 1e-4  # relative: the two micro-batch times between which a line is drawn
_STATED = 1000  # degrees of freedom of a spread that the user states
# Variance of a median of three or more over that of a mean, for many runs (Kendall and
# Stuart, The Advanced Theory of Statistics I, 10.10); of two it is the mean.
_MEDIAN = pi / 2


@dataclass(frozen=True, eq=False)
class Configuration:
    """One job on one machine, however often it ran."""

    point: Point  # the first point of it
    base: Job  # the job whose micro-batch time is asked for
    runs_s: tuple[float, ...]  # s: all its runs

    @property
    def step_s(self) -> float:
        """The median of the runs, s."""
        return median(self.runs_s)

    @cached_property
    def ratio(self) -> float:
        """Work of its micro-batch in that of the base."""
        return work_ratio(self.point.job, self.base)

    @cached_property
    def slope(self) -> float:
        """Micro-batch times of the base in a step, without communication.

        All at the pace of the slowest GPU; the base's is that of the usual speed.
        """
        machine = self.point.topology
        slowest = machine.speed_of_node[machine.node_of_gpu[self._gpus]].min()
        return self.ratio * rounds(self.point.job) / float(slowest)

    def rise(self, time: float) -> float:
        """How much the step grows with the micro-batch time near ``time``."""
        near, far = self.predicted_s(time), self.predicted_s(time * (1 + _APART))
        return (far - near) / (time * _APART)

    def predicted_s(self, time: float) -> float:
        """The step without fixed time that the model gives, s."""
        job = timed(self.point.job, time * self.ratio)
        return StepModel(self.point.topology, job).step(self._gpus).step_time_s

    @cached_property
    def _gpus(self) -> IntArray:
        placed = baseline("given-order", self.point.topology, self.point.job)
        return placed.gpu_of_rank


def configurations(
    points: Sequence[Point], base: Job
) -> tuple[list[Configuration], list[int]]:
    """Points of one machine and job as one, and where each point went.

    Points that are fitted and points that are not stay apart.
    """
    found: dict[tuple[object, ...], Configuration] = {}
    keys = []
    for point in points:
        machine = point.topology
        key = (machine.name, machine.node_names, job_digest(point.job), point.fit)
        known = found.get(key)
        runs = (known.runs_s if known else ()) + point.runs_s
        found[key] = Configuration(known.point if known else point, base, runs)
        keys.append(key)
    place = {key: index for index, key in enumerate(found)}
    return list(found.values()), [place[key] for key in keys]


@dataclass(frozen=True, eq=False)
class Scatter:
    """How runs of one configuration differ, relative to their step."""

    run: float  # variance of one run; 0 when unknown
    # (n,): variance of the median of the runs of each configuration.
    medians: FloatArray
    degrees: int  # degrees of freedom behind them; 0 when unknown


def scatter_of(
    runs: Sequence[Sequence[float]], stated: Sequence[float] | None = None
) -> Scatter:
    """The scatter of runs: one for all from repeated runs, or what is stated.

    ``runs`` (s): the runs of each configuration. ``stated`` (s): standard deviation of
    a run of each configuration where it is known otherwise, or 0.
    """
    medians = [median(own) for own in runs]
    given = [
        (deviation / step) ** 2
        for deviation, step in zip(stated or [0.0] * len(runs), medians, strict=True)
    ]
    repeated = [own for own in runs if len(own) > 1]
    degrees = sum(len(own) - 1 for own in repeated)
    squares = sum(float(np.var(own)) * len(own) / fmean(own) ** 2 for own in repeated)
    known = [variance for variance in given if variance]
    run = squares / degrees if squares else fmean(known or [0.0])
    variances = [
        (variance or run) * _of_median(len(own))
        for variance, own in zip(given, runs, strict=True)
    ]
    return Scatter(
        run, np.array(variances), degrees if squares else _STATED * bool(known)
    )


def _of_median(runs: int) -> float:
    """Variance of the median of runs, in that of one."""
    return (_MEDIAN if runs > 2 else 1.0) / runs
