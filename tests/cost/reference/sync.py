"""What reduction and gather of every chunk take, and what of them is exposed.

A table has a value for each pipeline rank and chunk.
"""

from math import gcd

from tests.cost.reference.algorithms import all_reduces
from tests.cost.reference.collectives import gathers
from tests.cost.reference.groups import coordinates, groups


def exposed_sync(machine, job, size, gpus):
    """What one step's data-parallel traffic adds, seconds."""
    return 0.0 if job.model is None else _Sync(machine, job, size, gpus).exposed()


class _Sync:
    def __init__(self, machine, job, size, gpus):
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
        self.reduce, self.outer, self.gather = (self._table() for _ in range(3))
        self.bucket = 0.0

    def exposed(self):
        for axis in ("dp_cp", "edp"):
            ranks = groups(self.axes, axis)
            if len(ranks[0]) > 1:
                trained = self._chunks(self.size.trained, axis)
                self._add(ranks, trained, self._chunks(self.gathered, axis))
        mode, size = self.mode, self.size
        reduce = _sum(self.reduce, self.gather) if self.gathers else self.reduce
        last, others = _sum(reduce, self.outer), self.job.micro_batches - 1
        in_a_row = min(self.job.micro_batches, self.axes.pp)
        seen = 0.0
        for table, final, work, overlap, every, bucket in (
            (reduce, last, size.backward, mode.overlap_reduce, self.reduces, 0.0),
            (
                *(self.gather, self.gather, size.forward),
                *(mode.overlap_gather, self.gathers, self.bucket),
            ),
        ):
            window = work * (1 if every else in_a_row)
            seen += self._slowed(
                final, self._at_end(final, work, window, overlap, bucket)
            )
            if every:
                each = _between(table, window, overlap)
                seen += others * self._slowed(table, each)
        return seen / mode.sync_every + self._embeddings()

    def _slowed(self, seconds, seen):
        """What is seen, and what the rest takes of the work that hides it."""
        return seen + self.mode.sm_share * max(0.0, max(map(sum, seconds)) - seen)

    def _at_end(self, seconds, work, window, overlap, bucket):
        """Seen after the last backward or before the first forward.

        ``work`` is what a chunk has beside it, of the first chunk all but one bucket.
        """
        if not overlap:
            return max(map(sum, seconds))
        left = [seconds[0][0] - (1 - 1 / self.buckets) * work]
        left += [row[0] - r * work for r, row in enumerate(seconds) if r]
        later = [row[1:] for row in seconds]
        return _between(later, window, overlap=True) + max(bucket, *left, 0.0)

    def _chunks(self, held, axis):
        return [
            [
                held(axis, rank == chunk == 0, self._is_last(rank, chunk))
                for chunk in range(self.axes.vp)
            ]
            for rank in range(self.axes.pp)
        ]

    def _is_last(self, rank, chunk):
        return rank == self.axes.pp - 1 and chunk == self.axes.vp - 1

    def _add(self, ranks, trained, gathered):
        """Add the passes over groups whose chunks hold so many parameters."""
        mode, width = self.mode, self.job.bytes
        if mode.sharding == "ddp":
            self._pass(self.reduce, ranks, trained, width.gradient, all_reduce=True)
            return
        n, dense = len(ranks[0]), self.axes.dp * self.axes.cp
        copies = mode.optimizer_instances
        if mode.sharding == "hsdp":  # of experts there are as many copies
            copies = dense // gcd(mode.shard_size, dense)
        shard = n // gcd(copies, n)
        if shard < n:
            across = [row[i::shard] for row in ranks for i in range(shard)]
            ranks = [row[i : i + shard] for row in ranks for i in range(0, n, shard)]
            share = width.gradient / shard
            self._pass(self.outer, across, trained, share, all_reduce=True)
        self._pass(self.reduce, ranks, trained, width.gradient)
        self._pass(self.gather, ranks, gathered, width.parameter_gather)
        bucket = gathered[0][0] / self.buckets * width.parameter_gather
        self.bucket += self._slowest(ranks, 0, bucket)

    def _pass(self, total, ranks, held, width, *, all_reduce=False):
        """Add one collective on every chunk, its slowest group."""
        for r in range(self.axes.pp):
            for c in range(self.axes.vp):
                total[r][c] += self._slowest(ranks, r, held[r][c] * width, all_reduce)

    def _slowest(self, ranks, stage, size, all_reduce=False):
        """Seconds of the slowest group of a pipeline rank, when all groups run."""
        times = self._times(ranks, size, all_reduce) if size else [0.0] * len(ranks)
        return max(
            time
            for row, time in zip(ranks, times, strict=True)
            if self.at[row[0]]["pp"] == stage
        )

    def _times(self, ranks, size, all_reduce):
        rows = [[self.gpus[rank] for rank in row] for row in ranks]
        if all_reduce:
            algorithm = self.job.collectives.all_reduce
            return all_reduces(self.machine, rows, size, algorithm)
        return gathers(self.machine, rows, size)

    def _embeddings(self):
        """Gradients of tied embeddings, between first and last stage."""
        if not self.size.tied:
            return 0.0
        ends = [[row[0], row[-1]] for row in groups(self.axes, "pp")]
        return max(self._times(ends, self.size.tied * self.job.bytes.gradient, True))

    def _table(self):
        return [[0.0] * self.axes.vp for _ in range(self.axes.pp)]


def _between(seconds, work, overlap):
    """What chunks take longer than the compute beside them."""
    if not overlap:
        return max(map(sum, seconds))
    columns = zip(*seconds, strict=True)
    return sum(max(0.0, max(column) - work) for column in columns)


def _sum(one, other):
    rows = zip(one, other, strict=True)
    return [[a + b for a, b in zip(*row, strict=True)] for row in rows]
