"""Efficiencies of a machine's tiers, and the rate of work, from steps of some layouts.

What a few layouts took tells how long traffic takes as training sends it, beside other
work and through a framework's own buffers: less than tests of links alone let one hope.
Every layout has its degrees, its micro-batch and its recomputation; the job's time of a
micro-batch gives that of each (`placer.job.pace`). Constants are that time and the
efficiency of every tier that traffic takes, as logarithms of how they differ from what
the job and the machine say (`placer.calibrate.beliefs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isnan, log
from statistics import NormalDist

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.errors import InputError
from placer.calibrate.beliefs import most_likely
from placer.calibrate.measurements import Measurements, Point, timed
from placer.cost.step import StepModel
from placer.cost.work import on_gpu
from placer.job.decode import job_digest
from placer.job.model import Job
from placer.job.pace import compute_at
from placer.job.work import micro_batch_time, micro_batch_work
from placer.placement.baselines import baseline
from placer.topology.model import Tier, Topology

# How far steps of public grids are from the model's, with its constants: 2 to 13 %
# (docs/evidence/tune.md).
MODEL_ERROR = 0.05
# How far an efficiency is believed to be from the machine's, at one standard deviation:
# a factor of 1.5 inside NVLink, of 4 between its domains. All-reduces over whole nodes
# reach from a tenth of their links (A100 and Omni-Path: bigscience-workshop/bigscience,
# experiments/bandwidth) to nearly all (GB200: coreweave/nccl-tests).
_INSIDE, _BETWEEN = log(1.5), log(4.0)
# Half a 95 % interval in standard deviations; the deviation of a step is given.
_HALF = NormalDist().inv_cdf(0.975)
Interval = tuple[float, float]


@dataclass(frozen=True)
class TierEfficiency:
    """Share of its line rate that a tier reaches."""

    tier: str
    before: float
    after: float
    interval: Interval  # 95 %; what the machine said is part of it


@dataclass(frozen=True, eq=False)
class LinkFit:
    """What layouts say of a machine and a job."""

    topology: Topology  # with the efficiencies that were found
    job: Job  # with the time of its micro-batch that was found
    by_rate: bool  # whether the job had a rate rather than a time
    micro_batch_interval_s: Interval  # s
    tiers: tuple[TierEfficiency, ...]  # those that traffic takes, innermost first
    points: tuple[Point, ...]
    # steps_s and left_out_s, s: with all constants, and with those that the other
    # points give; the latter not a number where they cannot.
    steps_s: tuple[float, ...]
    left_out_s: tuple[float, ...]

    @property
    def micro_batch_s(self) -> float:
        """Time of a micro-batch, s."""
        return self.job.compute.micro_batch_time

    @property
    def tflops_per_gpu(self) -> float:
        """Rate of a GPU in a micro-batch, 1e12 FLOP/s; 0 without a model."""
        return micro_batch_work(self.job) / self.micro_batch_s / 1e12

    def left_out_errors(self) -> tuple[float, ...]:
        """Errors of the points that the others predict, relative."""
        pairs = zip(self.points, self.left_out_s, strict=True)
        return tuple(s / point.step_s - 1 for point, s in pairs if not isnan(s))


def fit_links(measurements: Measurements) -> LinkFit:
    """The most likely time of a micro-batch and efficiencies of tiers."""
    base, points = measurements.job, [p for p in measurements.points if p.fit]
    machine = points[0].topology
    if any(point.topology.name != machine.name for point in points):
        raise InputError("points of several machines have no efficiencies in common")
    if base.model is None:
        raise InputError("layouts need a job with a model: its work follows from it")
    time = micro_batch_time(base)
    measured = np.array([point.step_s for point in points])
    every = [tier.name for tier in machine.tiers]

    placed = [baseline("given-order", p.topology, p.job).gpu_of_rank for p in points]

    def steps(constants: FloatArray, names: Sequence[str]) -> FloatArray:
        share = dict(zip(names, np.exp(constants[1:]).tolist(), strict=True))
        job = timed(base, time * exp(float(constants[0])), base.compute.fixed_s)
        pairs = zip(points, placed, strict=True)
        return np.array([_step(point, gpus, job, share) for point, gpus in pairs])

    zero = np.zeros(len(every) + 1)
    flat = steps(zero, every)
    used = [
        name
        for index, name in enumerate(every)
        if (steps(-np.eye(len(zero))[index + 1], every) != flat).any()
    ]
    beliefs = beliefs_of(tier for tier in machine.tiers if tier.name in used)
    found = most_likely(
        lambda constants: steps(constants, used), measured, MODEL_ERROR, beliefs
    )
    half = _HALF * np.sqrt(np.diag(found.covariance))
    share = dict(zip(used, np.exp(found.values[1:]).tolist(), strict=True))
    after = with_efficiencies(machine, share)
    words = _source(len(points), [*share])
    sources = (*machine.sources, words) if used else machine.sources
    job = timed(base, time * exp(found.values[0]), base.compute.fixed_s)
    return LinkFit(
        topology=replace(after, sources=sources),
        job=replace(job, sha256=job_digest(job)),
        by_rate=base.compute.tflops_per_gpu > 0,
        micro_batch_interval_s=_around(job.compute.micro_batch_time, half[0]),
        tiers=tuple(
            TierEfficiency(
                one.name,
                one.efficiency,
                min(1.0, one.efficiency * share[one.name]),
                _around(one.efficiency * share[one.name], half[1 + used.index(name)]),
            )
            for one, name in zip(machine.tiers, every, strict=True)
            if name in used
        ),
        points=tuple(points),
        steps_s=tuple(found.steps.tolist()),
        left_out_s=tuple(found.left_out.tolist()),
    )


def beliefs_of(tiers: Iterable[Tier]) -> FloatArray:
    """Deviations of the constants: anything of the time, then of each tier."""
    return np.array([inf, *(_INSIDE if t.scale_up else _BETWEEN for t in tiers)])


def with_efficiencies(machine: Topology, share: Mapping[str, float]) -> Topology:
    """The machine whose tiers reach so many times what they did, at most all."""
    tiers = [
        replace(tier, efficiency=min(1.0, tier.efficiency * share.get(tier.name, 1.0)))
        for tier in machine.tiers
    ]
    return replace(machine, tiers=tuple(tiers))


def _step(
    point: Point,
    gpus: IntArray,
    base: Job,
    share: Mapping[str, float],
) -> float:
    """The model's step of a point, when ``base`` has its time."""
    base = on_gpu(base, point.topology.gpu)
    job = replace(
        point.job, compute=compute_at(base, on_gpu(point.job, point.topology.gpu))
    )
    machine = with_efficiencies(point.topology, share)
    return StepModel(machine, job).step(gpus).step_time_s


def _around(value: float, half: float) -> Interval:
    return float(value * exp(-half)), float(value * exp(half))


def _source(points: int, tiers: Sequence[str]) -> str:
    """What a topology file says of it."""
    return f"tiers {', '.join(tiers)}: efficiency of steps of {points} layouts"
