"""What reduction and gather of every chunk take, and what of them is exposed."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from tests.cost.reference.algorithms import all_reduces, gathers
from tests.cost.reference.groups import coordinates, groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.job.model import Job
    from tests.cost.reference.machine import Machine
    from tests.cost.reference.sizes import Sizes

Chunks = list[list[float]]  # by pipeline rank and chunk


def exposed_sync(machine: Machine, job: Job, size: Sizes, gpus: list[int]) -> float:
    """What one step's data-parallel traffic adds, seconds."""
    if job.model is None:
        return 0.0
    return _Sync(machine, job, size, gpus).exposed()


class _Sync:
    def __init__(
        self, machine: Machine, job: Job, size: Sizes, gpus: list[int]
    ) -> None:
        self.machine, self.job, self.size, self.gpus = machine, job, size, gpus
        self.axes, self.mode = job.parallelism, job.data_parallel
        self.at = coordinates(job.parallelism)
        full = self.mode.sharding in ("zero3", "hsdp")
        self.gathered = size.held if full else size.trained
        ends = True, self._is_last(0, 0)
        first = self.gathered("dp_cp", *ends) + self.gathered("edp", *ends)
        self.buckets = max(1.0, first / self.mode.bucket_parameters)
        self.gathers = full and not self.mode.keep_parameters
        self.reduces = self.gathers or (
            self.mode.sharding == "zero2" and not self.mode.reduce_once
        )
        self.reduce, self.outer, self.gather = (self._nothing() for _ in range(3))
        self.bucket = 0.0

    def exposed(self) -> float:
        for axis in ("dp_cp", "edp"):
            ranks = groups(self.axes, axis)
            if len(ranks[0]) > 1:
                trained = self._chunks(self.size.trained, axis)
                self._add(ranks, trained, self._chunks(self.gathered, axis))
        reduce = self._sum(self.reduce, self.gather) if self.gathers else self.reduce
        last = self._sum(reduce, self.outer)
        seen = self._slowed(last, self._tail(last))
        seen += self._slowed(self.gather, self._head(self.gather))
        others = self.job.micro_batches - 1
        if self.reduces:
            overlap, window = self.mode.overlap_reduce, self._beside_backward()
            each = self._between(reduce, window, overlap)
            seen += others * self._slowed(reduce, each)
        if self.gathers:
            overlap, window = self.mode.overlap_gather, self._beside_forward()
            each = self._between(self.gather, window, overlap)
            seen += others * self._slowed(self.gather, each)
        return seen / float(self.mode.sync_every) + self._embeddings()

    def _slowed(self, seconds: Chunks, seen: float) -> float:
        """What is seen, and what the rest takes of the work that hides it."""
        hidden = max(sum(row) for row in seconds) - seen
        return seen + (self.mode.sm_share * hidden if hidden > 0 else 0.0)

    def _chunks(self, held: Callable[[str, bool, bool], float], axis: str) -> Chunks:
        return [
            [
                held(axis, rank == 0 and chunk == 0, self._is_last(rank, chunk))
                for chunk in range(self.axes.vp)
            ]
            for rank in range(self.axes.pp)
        ]

    def _is_last(self, rank: int, chunk: int) -> bool:
        return rank == self.axes.pp - 1 and chunk == self.axes.vp - 1

    def _add(self, ranks: list[list[int]], trained: Chunks, gathered: Chunks) -> None:
        """Add the passes over groups whose chunks hold so many parameters."""
        mode, width = self.mode, self.job.bytes
        if mode.sharding == "ddp":
            self._pass(self.reduce, ranks, trained, width.gradient, all_reduce=True)
            return
        n = len(ranks[0])
        dense = self.axes.dp * self.axes.cp
        copies = mode.optimizer_instances
        if mode.sharding == "hsdp":  # of experts there are as many copies
            copies = dense // gcd(mode.shard_size, dense)
        shard = n // gcd(copies, n)
        if 0 < shard < n:
            across = [row[i::shard] for row in ranks for i in range(shard)]
            ranks = [row[i : i + shard] for row in ranks for i in range(0, n, shard)]
            share = width.gradient / shard
            self._pass(self.outer, across, trained, share, all_reduce=True)
        self._pass(self.reduce, ranks, trained, width.gradient)
        self._pass(self.gather, ranks, gathered, width.parameter_gather)
        bucket = gathered[0][0] / self.buckets * width.parameter_gather
        if bucket:
            times = self._times(ranks, bucket, all_reduce=False)
            self.bucket += max(
                time
                for row, time in zip(ranks, times, strict=True)
                if self.at[row[0]]["pp"] == 0
            )

    def _pass(
        self,
        total: Chunks,
        ranks: list[list[int]],
        held: Chunks,
        width: float,
        *,
        all_reduce: bool = False,
    ) -> None:
        """Add one collective on every chunk, its slowest group."""
        for r in range(self.axes.pp):
            for c in range(self.axes.vp):
                if held[r][c] == 0.0:
                    continue
                times = self._times(ranks, held[r][c] * width, all_reduce)
                total[r][c] += max(
                    time
                    for row, time in zip(ranks, times, strict=True)
                    if self.at[row[0]]["pp"] == r
                )

    def _times(
        self, ranks: list[list[int]], size: float, all_reduce: bool
    ) -> list[float]:
        rows = [[self.gpus[rank] for rank in row] for row in ranks]
        if all_reduce:
            algorithm = self.job.collectives.all_reduce
            return all_reduces(self.machine, rows, size, algorithm)
        return gathers(self.machine, rows, size)

    def _tail(self, seconds: Chunks) -> float:
        """Reduction after the last backward, and what outlasts a chunk before that."""
        backward = self.size.backward
        if not self.mode.overlap_reduce:
            return max(sum(row) for row in seconds)
        later = [row[1:] for row in seconds]
        left = [seconds[0][0] - (1 - 1 / self.buckets) * backward]
        left += [row[0] - r * backward for r, row in enumerate(seconds) if r]
        return self._between(later, self._beside_backward(), overlap=True) + max(
            0.0, *left
        )

    def _head(self, seconds: Chunks) -> float:
        """Gather before the first forward, and what outlasts a chunk after that."""
        forward = self.size.forward
        if not self.mode.overlap_gather:
            return max(sum(row) for row in seconds)
        later = [row[1:] for row in seconds]
        left = [seconds[0][0] - (1 - 1 / self.buckets) * forward]
        left += [row[0] - r * forward for r, row in enumerate(seconds) if r]
        return self._between(later, self._beside_forward(), overlap=True) + max(
            [self.bucket, *left]
        )

    def _between(self, seconds: Chunks, work: float, overlap: bool) -> float:
        """What chunks take longer than the compute beside them."""
        if not overlap:
            return max(sum(row) for row in seconds)
        columns = zip(*seconds, strict=True)
        return sum((max(0.0, max(column) - work) for column in columns), 0.0)

    def _beside_backward(self) -> float:
        return self.size.backward * (1 if self.reduces else self._in_a_row())

    def _beside_forward(self) -> float:
        return self.size.forward * (1 if self.gathers else self._in_a_row())

    def _in_a_row(self) -> int:
        return min(self.job.micro_batches, self.axes.pp)

    def _embeddings(self) -> float:
        """Gradients of tied embeddings, between first and last stage."""
        if not self.size.tied:
            return 0.0
        ends = [[row[0], row[-1]] for row in groups(self.axes, "pp")]
        return max(self._times(ends, self.size.tied * self.job.bytes.gradient, True))

    def _nothing(self) -> Chunks:
        return [[0.0] * self.axes.vp for _ in range(self.axes.pp)]

    def _sum(self, one: Chunks, other: Chunks) -> Chunks:
        return [
            [a + b for a, b in zip(row, more, strict=True)]
            for row, more in zip(one, other, strict=True)
        ]
