"""How step time spreads when GPUs and links are not equally fast in every step.

In every step each GPU and each scale-out link takes ``1 + sigma z`` times as long as
nominally, ``z`` standard normal and the factor above 0, all independent. Training is
synchronous, so a stage waits for the slowest of its GPUs, a ring for its slowest link,
the step for the slowest replica: the mean rises with the expected maximum of many
factors, and the spread of a maximum is smaller than that of one factor (David and
Nagaraja 2003, *Order Statistics*, 4.2 and 10.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.cost.critical_paths import CriticalPaths, Schedule
from placer.cost.network import PlacedNetwork
from placer.cost.noisy_network import NoisyNetwork
from placer.document import closest
from placer.errors import InputError, Problem

if TYPE_CHECKING:
    from placer.cost.step import Step, StepModel

COMPUTE = "compute"
MOST_DEVIATION = 1.0
_FACTORS_AT_ONCE = 2_000_000
_PERCENTILES = {"p05": 5.0, "p50": 50.0, "p95": 95.0}


def jitter_score(
    model: StepModel,
    gpu_of_rank: IntArray,
    noise: Mapping[str, float] | float,
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Mean, deviation and percentiles of step and exposed scale-out time, over steps.

    Parameters
    ----------
    model : StepModel
    gpu_of_rank : ndarray, shape (R,)
    noise : mapping of str to float, or float
        Relative standard deviation of the time of ``compute`` and of the links of each
        scale-out tier, by name; a number stands for all of them.
    samples, seed : int

    Raises
    ------
    InputError
        If the noise names no scale-out tier of the machine, is not from 0 to 1, or the
        job says nothing about time.
    """
    by_name = _noise_by_name(model, noise)
    noisy = NoisyStep(model, gpu_of_rank)
    found = [noisy.times(factors) for factors in noisy.draw(by_name, samples, seed)]
    step, exposed = (np.concatenate(column) for column in zip(*found, strict=True))
    return {
        "step_time_s": _summary(step),
        "exposed_scale_out_s": _summary(exposed),
        "noise": by_name,
        "samples": samples,
        "seed": seed,
    }


class NoisyStep:
    """One placement, to be timed under many draws of its GPUs' and links' speeds.

    Parameters
    ----------
    model : StepModel
    gpu_of_rank : ndarray, shape (R,)
    """

    def __init__(self, model: StepModel, gpu_of_rank: IntArray) -> None:
        job = model.job
        self._model = model
        self._network = NoisyNetwork(PlacedNetwork(model.fabric, gpu_of_rank))
        self.links = self._network.links
        free = model.free_scale_out.step(gpu_of_rank)
        self._compute = free.patterns(())
        self._free = _Timed.of(free)
        self._schedule = Schedule(job.micro_batches, job.parallelism.vp, job.overlap.pp)
        self._paths: dict[str, CriticalPaths] = {}
        at = job.parallelism.coordinates
        stage = at["dp"] * job.parallelism.pp + at["pp"]
        self._ranks_by_stage = np.argsort(stage, kind="stable")

    def draw(
        self, noise: Mapping[str, float], samples: int, seed: int
    ) -> Iterator[FloatArray]:
        """Factors of every rank's GPU, then of every link, some samples at a time."""
        tiers = self._model.fabric.topology.tiers
        by_tier = np.array([noise.get(tier.name, 0.0) for tier in tiers])
        num_ranks = self._model.job.world_size
        deviation = np.concatenate(
            (np.full(num_ranks, noise[COMPUTE]), self.links.spread(by_tier))
        )
        generator = np.random.default_rng(seed)
        at_once = max(1, _FACTORS_AT_ONCE // len(deviation))
        for first in range(0, samples, at_once):
            shape = min(at_once, samples - first), len(deviation)
            yield _positive(generator, deviation, shape)

    def times(self, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Step time and exposed scale-out time of each sample, s; both shape (S,).

        Parameters
        ----------
        factors : ndarray, shape (S, R + L)
            How many times its nominal time every rank's GPU and every link takes.
        """
        model, num_ranks = self._model, self._model.job.world_size
        slowest_gpu = self._slowest_gpu(factors[:, :num_ranks])
        timed = [
            _Timed.of(model.step_on(self._network.at(row)))
            for row in factors[:, num_ranks:]
        ]
        step = self._pipeline("placed", slowest_gpu, timed)
        step += np.array([item.after for item in timed]) + model.fixed_s
        free = self._pipeline("free", slowest_gpu, [self._free] * len(timed))
        free += self._free.after + model.fixed_s
        return step, np.maximum(step - free, 0.0)

    def _slowest_gpu(self, factors: FloatArray) -> FloatArray:
        """Factor of the slowest GPU of each stage; shape (S, D, P)."""
        axes = self._model.job.parallelism
        by_stage = factors[:, self._ranks_by_stage]
        slowest: FloatArray = by_stage.reshape(len(factors), axes.dp, axes.pp, -1).max(
            axis=3
        )
        return slowest

    def _pipeline(
        self, name: str, slowest_gpu: FloatArray, timed: list[_Timed]
    ) -> FloatArray:
        """Seconds of the slowest replica of each sample; shape (S,)."""
        last = slowest_gpu.shape[2] - 1
        stage = [*range(last + 1)] * 3 + [0, 0, last, last]  # as patterns are laid out
        longer = self._compute * (slowest_gpu[:, :, stage] - 1.0)
        patterns = np.stack([item.patterns for item in timed]) + longer
        if name not in self._paths:
            rows = patterns.reshape(-1, patterns.shape[2])
            self._paths[name] = CriticalPaths.near(self._schedule, rows)
        return self._paths[name].slowest(patterns)


@dataclass(frozen=True, eq=False)
class _Timed:
    """One step in which all GPUs have their nominal speed.

    Attributes
    ----------
    patterns : ndarray, shape (D, 3 P + 4), s
        Times of each replica, as `placer.cost.schedule.pipeline_times` takes them.
    after : float, s
        On top of the pipeline: data parallelism and custom groups.
    """

    patterns: FloatArray
    after: float

    @classmethod
    def of(cls, step: Step) -> _Timed:
        return cls(
            step.patterns(tuple(step.stage_times)),
            step.exposed_data_parallel_s + sum(step.exposed_custom_s.values()),
        )


def _positive(
    generator: np.random.Generator, deviation: FloatArray, shape: tuple[int, int]
) -> FloatArray:
    """Factors ``1 + deviation z``, drawn again until they are above 0."""
    factors = 1.0 + deviation * generator.standard_normal(shape)
    while (low := factors <= 0.0).any():
        _, column = np.nonzero(low)
        factors[low] = 1.0 + deviation[column] * generator.standard_normal(len(column))
    return factors


def _noise_by_name(
    model: StepModel, noise: Mapping[str, float] | float
) -> dict[str, float]:
    """The deviation of compute and of every scale-out tier."""
    tiers = model.fabric.topology.tiers[model.fabric.scale_up_tier + 1 :]
    known = [COMPUTE, *(tier.name for tier in tiers)]
    given = noise if isinstance(noise, Mapping) else dict.fromkeys(known, noise)
    everything = f"known: {', '.join(known)}"
    problems = [
        Problem(
            f'"{name}" is not compute or a scale-out tier',
            key="jitter",
            hint=closest(name, known) or everything,
        )
        for name in given
        if name not in known
    ]
    problems += [
        Problem(f"expected 0 to {MOST_DEVIATION:g}, got {value:g}", key="jitter")
        for value in given.values()
        if not 0.0 <= value <= MOST_DEVIATION
    ]
    job = model.job
    if not problems and not (job.model or job.groups or job.traffic):
        problems.append(Problem("the job says nothing about time", key="jitter"))
    if problems:
        raise InputError(problems)
    return {name: float(given.get(name, 0.0)) for name in known}


def _summary(seconds: FloatArray) -> dict[str, float]:
    """Mean, standard deviation and percentiles."""
    return {
        "mean": float(seconds.mean()),
        "std": float(seconds.std(ddof=1)) if len(seconds) > 1 else 0.0,
    } | {
        name: float(np.percentile(seconds, share))
        for name, share in _PERCENTILES.items()
    }
