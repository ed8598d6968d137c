"""What compute leaves exposed of gradients, parameters and the user's own groups.

A *peak* is the seconds of the slowest group of an operation, among those of one stage
or all there are. A *window* leaves exposed the largest of some sums of peaks, less what
hides each. Shapes: P stages, V chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.custom import TRAFFIC, group_time, hidden_kinds
from placer.cost.gradients import SyncTime, sync_time
from placer.cost.step import Step
from placer.solve.score.questions import Question, ToldNetwork

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.job.traffic import Group
    from placer.solve.score.operations import Operations

# Random seconds with which windows are compared with the scorer's own sum.
TRIED = 8
SAME = 1e-12


class Entry(NamedTuple):
    """A sum of peaks, each so many times, less what hides it."""

    times: dict[int, float]
    hidden: float


class Window(NamedTuple):
    """The largest of some entries, and of 0, so many times.

    Attributes
    ----------
    seen : int
        What so many windows before it leave counts as hidden here.
    """

    weight: float
    entries: list[Entry]
    seen: int = 0


def add_exposed(model: StepModel, operations: Operations) -> None:
    """Add all that is exposed beside the pipelines."""
    _add_kinds(model, operations)
    if model.job.model is None:
        return
    sync = _Sync.of(model, operations)
    windows = list(sync.windows())
    if not sync.agrees(windows):  # the scorer adds up in a way of its own
        operations.step.ask_exposed(sync.exposed_s)
        return
    for window in windows:
        operations.step.add_window(
            window.weight,
            [list(entry.times) for entry in window.entries],
            [list(entry.times.values()) for entry in window.entries],
            [entry.hidden for entry in window.entries],
            window.seen,
        )


def exposed_by(windows: list[Window], peaks: FloatArray) -> float:
    """Seconds that windows leave exposed, given those of peaks."""
    left: list[float] = []
    for window in windows:
        seen = sum(left[len(left) - window.seen :])
        values = [
            sum(many * peaks[k] for k, many in entry.times.items())
            - (entry.hidden + seen)
            for entry in window.entries
        ]
        left.append(max([0.0, *values]))
    pairs = zip(windows, left, strict=True)
    return float(sum(window.weight * most for window, most in pairs))


@dataclass(frozen=True, eq=False)
class _Sync:
    """Gradients and parameters: sums of peaks of each stage and chunk.

    Attributes
    ----------
    model : StepModel
    peaks : list of ndarray, shape (P,)
        Of each operation, the peak of each stage.
    parts : list of SyncTime
        What each operation adds where its groups take a second.
    """

    model: StepModel
    peaks: list[IntArray]
    parts: list[SyncTime]

    @classmethod
    def of(cls, model: StepModel, operations: Operations) -> _Sync:
        """The operations of a step's synchronisation, added to it."""
        told = ToldNetwork()
        _sync_on(model, told)
        peaks: list[IntArray] = []
        parts: list[SyncTime] = []
        for numbers in _alike(told.asked):
            questions = [told.asked[at] for at in numbers]
            added = operations.add(questions)
            stage = model.job.parallelism.coordinates["pp"][questions[0].members[:, 0]]
            for size, at in enumerate(numbers):
                number = [
                    operations.step.add_peak(
                        added.number,
                        size,
                        np.unique(added.of_row[stage == p]).astype(np.int32),
                    )
                    for p in range(model.job.parallelism.pp)
                ]
                peaks.append(np.array(number))
                parts.append(_sync_on(model, ToldNetwork(_only(at))))
        return cls(model, peaks, parts)

    def time(self, peaks: FloatArray) -> SyncTime:
        """The scorer's own account of so many seconds of each peak."""
        pairs = [
            (part, peaks[n]) for part, n in zip(self.parts, self.peaks, strict=True)
        ]

        def total(name: str) -> FloatArray:
            of_parts = [getattr(part, name) * own[:, None] for part, own in pairs]
            return np.asarray(np.sum(of_parts, axis=0))

        return replace(
            self.parts[0],
            reduce=total("reduce"),
            gather=total("gather"),
            again_reduce=total("again_reduce"),
            first_bucket=sum(part.first_bucket * float(own[0]) for part, own in pairs),
            embedding=sum(part.embedding * float(own.max()) for part, own in pairs),
        )

    def exposed_s(self, peaks: FloatArray) -> float:
        """Exposed seconds, as the scorer adds them up."""
        slowness = np.ones((1, self.model.job.parallelism.pp))
        step = Step(self.model, {}, self.time(peaks), {}, slowness)
        return step.exposed_data_parallel_s

    def agrees(self, windows: list[Window]) -> bool:
        """Whether windows say what the scorer does, whatever the seconds."""
        count = 1 + max((int(n.max()) for n in self.peaks), default=-1)
        if not count:
            return True
        draw = np.random.default_rng(0)
        scale = self.model.windows.backward_s + self.model.windows.forward_s + 1e-6
        for tried in range(TRIED):
            peaks = scale * draw.random(count) * 4.0**tried / 64
            known = self.exposed_s(peaks)
            if abs(exposed_by(windows, peaks) - known) > SAME * max(known, scale):
                return False
        return True

    def windows(self) -> Iterator[Window]:
        """Exposed reductions, gathers and tied embeddings."""
        mode, hidden = self.model.job.data_parallel, self.model.windows
        weight, others = 1 / mode.sync_every, self.model.job.micro_batches - 1
        reduce = mode.overlap_reduce, hidden.backward_s, hidden.backward_window_s
        gather = mode.overlap_gather, hidden.forward_s, hidden.forward_window_s
        last = list(self._pass("reduce", weight, *reduce, bucket=False))
        first = list(self._pass("gather", weight, *gather, bucket=True))
        passes = [("reduce", weight, last), ("gather", weight, first)]
        often = weight * others
        if mode.reduces_each:
            some = self._between("again_reduce", often, reduce[0], reduce[2], 0)
            passes.append(("again_reduce", often, list(some)))
        if mode.gathers_each:
            some = self._between("gather", often, gather[0], gather[2], 0)
            passes.append(("gather", often, list(some)))
        for name, many, seen in passes:
            yield from seen
            yield self._beside(name, many * mode.sm_share, len(seen))
        for part, numbers in zip(self.parts, self.peaks, strict=True):
            if part.embedding:
                ends = [Entry({int(k): part.embedding}, 0.0) for k in numbers]
                yield Window(1.0, ends)

    def _beside(self, name: str, weight: float, seen: int) -> Window:
        """What hidden traffic takes from the work beside it."""
        every = list(range(self.model.job.parallelism.vp))
        stages = range(self.model.job.parallelism.pp)
        return Window(
            weight, [Entry(self._sum(name, p, every), 0.0) for p in stages], seen
        )

    def _pass(
        self,
        name: str,
        weight: float,
        overlap: bool,
        chunk_s: float,
        window_s: float,
        *,
        bucket: bool,
    ) -> Iterator[Window]:
        """The last reduction of a step, or the first gather."""
        yield from self._between(name, weight, overlap, window_s, 1)
        if not overlap:
            return
        covers = np.arange(float(self.model.job.parallelism.pp))
        covers[0] = 1.0 - 1.0 / self.model.windows.buckets
        late = [
            Entry(self._sum(name, p, [0]), float(cover * chunk_s))
            for p, cover in enumerate(covers)
        ]
        if bucket:
            pairs = zip(self.parts, self.peaks, strict=True)
            first = {int(n[0]): part.first_bucket for part, n in pairs}
            late.append(Entry({k: many for k, many in first.items() if many}, 0.0))
        yield Window(weight, late)

    def _between(
        self, name: str, weight: float, overlap: bool, window_s: float, first: int
    ) -> Iterator[Window]:
        """Chunks from the first on beside a full window of compute; else all, bare."""
        stages, chunks = self.model.job.parallelism.pp, self.model.job.parallelism.vp
        if not overlap:
            every = list(range(chunks))
            bare = [Entry(self._sum(name, p, every), 0.0) for p in range(stages)]
            yield Window(weight, bare)
            return
        for v in range(first, chunks):
            entries = [Entry(self._sum(name, p, [v]), window_s) for p in range(stages)]
            yield Window(weight, entries)

    def _sum(self, name: str, stage: int, chunks: list[int]) -> dict[int, float]:
        """What the peaks add to chunks of a stage."""
        found = {}
        for part, numbers in zip(self.parts, self.peaks, strict=True):
            many = float(getattr(part, name)[stage, chunks].sum())
            if many:
                found[int(numbers[stage])] = many
        return found


def _sync_on(model: StepModel, network: ToldNetwork) -> SyncTime:
    return sync_time(network, model.job, model.volumes, model.windows.buckets)


def _only(at: int) -> Callable[[int], float]:
    """The answers that give the groups of one question a second."""
    return lambda question: float(question == at)


def _alike(asked: list[Question]) -> list[list[int]]:
    """Numbers of questions that differ in nothing but the size, together."""

    def key(number: int) -> tuple[str, int, str]:
        one = asked[number]
        return one.kind, id(one.members), one.algorithm

    ordered = sorted(range(len(asked)), key=key)
    return [list(numbers) for _, numbers in groupby(ordered, key)]


def _add_kinds(model: StepModel, operations: Operations) -> None:
    """Groups of the user's own, and the traffic between ranks."""
    job, hidden = model.job, hidden_kinds(model.job)
    cover = model.compute_s * model.hides
    for group in job.groups:
        covered = cover if group.name in hidden else 0.0
        numbers = list(_operations_of(model, operations, group))
        by_roles = model.hides if group.name in hidden else 0.0
        if numbers:  # ranks that are all alone in their groups send nothing
            operations.step.add_kind(numbers, group.per_step, covered, by_roles)
    if job.traffic is not None:
        covered = cover if TRAFFIC in hidden else 0.0
        by_roles = model.hides if TRAFFIC in hidden else 0.0
        numbers = [operations.flows(job.traffic)]
        operations.step.add_kind(numbers, 1.0, covered, by_roles)


def _operations_of(
    model: StepModel, operations: Operations, group: Group
) -> Iterator[int]:
    """The communicators of each size."""
    if group.collective == "relay":  # hops in turn
        yield operations.relay(model, group)
        return
    told = ToldNetwork()
    group_time(told, group, model.job.collectives)
    for question in told.asked:
        yield operations.add([question]).number
