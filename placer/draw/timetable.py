"""When each piece of a pipeline's work runs.

`placer.cost.schedule` walks the same work, and only wants to know when all is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from placer.cost.pipeline_order import blocks
from placer.cost.schedule import PipelineWalk, Stages
from placer.cost.step import Step, stages_of


@dataclass(frozen=True)
class Piece:
    """One chunk of one micro-batch on one stage, forward or backward."""

    stage: int
    work: int  # kind of work of `Operation`
    is_forward: bool
    micro_batch: int
    chunk: int
    # start_s and end_s, s: from the start of the pipeline.
    start_s: float
    end_s: float


def timetable(
    stages: Stages, micro_batches: int, chunks: int, overlap: bool
) -> list[Piece]:
    """All pieces of a replica's pipeline, in an order in which they can run.

    ``overlap``: whether a rank computes on while its message travels.
    """
    num_stages = len(stages.forward)
    seconds = work_s(stages)
    walk = PipelineWalk[float](
        seconds, stages.hop * 2, overlap, max, [0.0] * num_stages
    )
    done: dict[tuple[int, bool], int] = {}
    items = _items(num_stages, micro_batches, chunks)
    pieces = []
    for operation in chain(*blocks(num_stages, micro_batches, chunks)):
        stage, work, source, *_ = operation
        start = max(walk.clock[stage], walk.arrived.get(source, 0.0))
        end = start + seconds[work]
        walk.do((operation,))
        ends = work >= 2 * num_stages  # of these every other one
        is_forward = work % 2 == 0 if ends else work < num_stages
        nth = done.get((stage, is_forward), 0)
        done[stage, is_forward] = nth + 1
        batch, chunk = items[nth]
        own = chunk if is_forward else chunks - 1 - chunk
        pieces.append(Piece(stage, work, is_forward, batch, own, start, end))
    return pieces


def work_s(stages: Stages) -> tuple[float, ...]:
    """Seconds of each kind of work of `Operation`."""
    return (*stages.forward, *stages.backward, *stages.ends)


def slowest_pipeline(step: Step) -> tuple[int, Stages, Stages]:
    """The replica that sets the step, its times, and those without communication."""
    replica = step.slowest_replica()
    every = step.patterns(step.axes)[replica]
    return replica, stages_of(every), stages_of(step.patterns(())[replica])


def _items(num_stages: int, micro_batches: int, chunks: int) -> list[tuple[int, int]]:
    """Micro-batch and chunk of each forward of a rank, in order."""
    group = num_stages * chunks
    total = -(-micro_batches // num_stages) * group
    found = [
        (i // group * num_stages + i % num_stages, i % group // num_stages)
        for i in range(total)
    ]
    return [(batch, chunk) for batch, chunk in found if batch < micro_batches]
