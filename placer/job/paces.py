"""How long the chunks of a pipeline take beside one another.

A stage takes the time of what it holds (`placer.job.pace`), and the known time of a
micro-batch is that of the slowest stage. The others wait for it, but the first
micro-batch passes them, and the last comes back, in their own time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray
from placer.job.least_pipeline import ChunkTimes, least_pipeline
from placer.job.model import Job
from placer.job.pace import Held, Rates, Share, held_by, rates, share_of
from placer.job.parallel import EndStages


class Paces(NamedTuple):
    """Times of chunks, in that of the mean chunk of the slowest stage."""

    # (P,): of each stage, the mean of its chunks without the first and the last of all.
    full: FloatArray
    # first and last: the first and the last chunk of all.
    first: float
    last: float
    # What of these two goes before and after their layers; one chunk has both.
    ends: tuple[float, float]
    stage: FloatArray  # (P,): the mean of all chunks of a stage; 1 for the slowest


def paces(job: Job) -> Paces:
    """How long chunks take beside one another; all alike without a model."""
    axes = job.parallelism
    if job.model is None:
        alike = np.ones(axes.pp)
        return Paces(alike, 1.0, 1.0, (0.0, 0.0), alike)
    model = job.model
    layers, at = held_by(job, model), rates(job, model)
    return paces_at(share_of(job, model), layers, job.stages, at)


def paces_at(share: Share, layers: Held, counted: EndStages, at: Rates) -> Paces:
    """How long chunks take beside one another at such rates."""
    stages = len(layers.stages)
    times, ends = _each(share, layers, counted, at)
    each = times.reshape(-1, stages)
    first, last = float(each[0, 0]), float(each[-1, -1])
    stage = each.mean(axis=0)
    is_end = np.zeros(each.shape, dtype=bool)
    is_end[0, 0] = is_end[-1, -1] = True
    others = np.where(is_end, 0.0, each).sum(axis=0)
    number = (~is_end).sum(axis=0)
    full = np.where(number, others / np.maximum(number, 1), stage)
    return Paces(full, first, last, ends, stage)


def rounds(job: Job) -> float:
    """Micro-batch times of the slowest stage in a step: micro-batches and bubble.

    As if no message took any time, and forwards a third of the work.
    """
    found, vp = paces(job), job.parallelism.vp
    third = np.array([1 / 3, 2 / 3]) / vp
    times = ChunkTimes(
        np.outer(third, found.full), third * found.first, third * found.last
    )
    return least_pipeline(times, job.micro_batches, vp)


def _each(
    share: Share, layers: Held, counted: EndStages, at: Rates
) -> tuple[FloatArray, tuple[float, float]]:
    """Time of each chunk, in that of the mean chunk of the slowest stage; and of ends.

    An embedding or a loss that counts for layers takes as long as they do, unless its
    stage were slower than the slowest then.
    """
    layer = share.stage(1.0).seconds(at, share.beside)
    ended = share.last(0.0).seconds(at, share.beside)
    times = layer * np.array(layers.chunks)
    times[-1] += ended
    stages = times.reshape(-1, len(layers.stages)).sum(axis=0)
    slowest = float(stages.max())
    if not slowest:
        return np.ones(len(times)), (0.0, 0.0)
    ends = [0.0, ended]
    for end, lacks in (
        (0, counted.embedding * layer),
        (-1, max(0.0, counted.loss * layer - ended)),
    ):
        added = min(lacks, max(0.0, slowest - float(stages[end])))
        times[end] += added
        stages[end] += added
        ends[end] += added
    if len(times) == 1:
        ends = [sum(ends)] * 2
    scale = len(times) / len(stages) / slowest
    return times * scale, (ends[0] * scale, ends[1] * scale)
