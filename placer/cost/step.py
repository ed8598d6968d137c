"""The step: slowest replica's pipeline, exposed data-parallel time and fixed time.

``step = pipeline of the slowest replica + exposed DP + custom groups + fixed``.
Training is synchronous, so the worst replica and the worst group set the time, not the
sum. A workload's step is a cycle: its slowest role and the transfers that are exposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.custom import GroupTime, custom_times, hidden_kinds
from placer.cost.fabric import Fabric
from placer.cost.gradients import SyncTime, sync_time
from placer.cost.hop_cost import HopCost
from placer.cost.links import Traffic
from placer.cost.network import Network, PlacedNetwork
from placer.cost.roles import RoleTime, role_times
from placer.cost.schedule import Stages, pipeline_time, pipeline_times
from placer.cost.stage_times import STAGE_TIMES, StageTime
from placer.cost.work import Content, windows
from placer.job.model import Job
from placer.job.roles import Role
from placer.topology.machine import Domains

# Up to so many different replicas are timed one by one, and remembered.
FEW_PATTERNS = 4
# So many are walked together: a walk keeps what all were at after each group.
AT_ONCE = 8_192


@dataclass(frozen=True, eq=False)
class Step:
    """The cost of one placement."""

    model: StepModel
    stage_times: Mapping[str, StageTime]  # per axis of ``tp cp ep pp`` that has members
    sync: SyncTime | None
    custom: Mapping[str, GroupTime]
    # (D, P): how many times as long as on a GPU of the usual speed the work of each
    # stage of each replica takes: on its slowest GPU.
    slowness: FloatArray
    roles: tuple[RoleTime, ...] = ()

    @property
    def compute_s(self) -> float:
        """Seconds that the slowest stage works, on its slowest GPU."""
        return self.model.compute_s * float(
            (self.model.paces.stage * self.slowness).max()
        )

    @cached_property
    def step_time_s(self) -> float:
        """Seconds of one step."""
        return reduce(add, self.after_pipeline_s, self.pipeline_s(self.axes))

    @property
    def axes(self) -> tuple[str, ...]:
        """Those of ``tp cp ep pp`` that have members."""
        return self.model.axes

    @property
    def after_pipeline_s(self) -> tuple[float, ...]:
        """What a step takes besides the slowest pipeline, s."""
        custom_s = sum(self.exposed_custom_s.values())
        data_parallel_s = self.exposed_data_parallel_s
        return data_parallel_s, custom_s, self.model.fixed_s, self.roles_s

    @cached_property
    def roles_s(self) -> float:
        """Seconds of the slowest role; 0 without roles."""
        return max((time.seconds for time in self.roles), default=0.0)

    @cached_property
    def exposed_data_parallel_s(self) -> float:
        """Seconds of reduction, gather and tied embeddings that nothing hides."""
        return sum(self.exposed_sync_s.values())

    @cached_property
    def exposed_sync_s(self) -> dict[str, float]:
        """What the gradient ``reduction``, ``gather`` and ``embedding`` add, s.

        What is seen, and what the hidden rest costs the work beside it. Where each
        micro-batch gathers, or reduces, all but the first gather and the last reduction
        run beside one chunk's compute.
        """
        sync, hidden = self.sync, self.model.windows
        if sync is None:
            return {"reduction": 0.0, "gather": 0.0, "embedding": 0.0}
        return {
            "reduction": hidden.reductions_s(sync.reduce, sync.again_reduce),
            "gather": hidden.gathers_s(sync.gather, sync.first_bucket),
            "embedding": sync.embedding,
        }

    @cached_property
    def exposed_custom_s(self) -> dict[str, float]:
        """Exposed seconds of each custom group, and of the traffic between ranks."""
        hidden = hidden_kinds(self.model.job)
        cover = (self.model.compute_s + self.roles_s) * self.model.hides
        return {
            name: max(time.seconds - cover, 0.0) if name in hidden else time.seconds
            for name, time in self.custom.items()
        }

    def exposed_s(self) -> dict[str, float]:
        """Exposed seconds by axis; they and compute, bubble and fixed sum to the step.

        Axes are added one after the other (tp, cp, ep, pp), each charged with what it
        adds to the pipeline of the slowest replica.
        """
        exposed = {}
        before = self.pipeline_s(())
        present: tuple[str, ...] = ()
        for axis in ("tp", "cp", "ep", "pp"):
            if axis in self.stage_times:
                present = (*present, axis)
                after = self.pipeline_s(present)
                exposed[axis] = after - before
                before = after
            else:
                exposed[axis] = 0.0
        exposed["dp"] = self.exposed_data_parallel_s
        return exposed | self.exposed_custom_s

    def traffic(self) -> dict[str, Traffic]:
        """What each axis and custom group sends in a step."""
        traffic = {axis: time.traffic for axis, time in self.stage_times.items()}
        if self.sync is not None and self.sync.traffic is not None:
            traffic["dp"] = self.sync.traffic
        for name, time in self.custom.items():
            if time.traffic is not None:
                traffic[name] = time.traffic
        for role in self.roles:
            traffic |= role.traffic()
        return traffic

    @property
    def traffic_s(self) -> float:
        """Seconds that all transfers take on one link of their tier, in sum."""
        pace = 1 / self.model.fabric.bandwidth
        sent = [float(item.bytes_by_tier @ pace) for item in self.traffic().values()]
        return sum(sent, 0.0)

    def with_stage_of(self, slow: Step, stage: int) -> Step:
        """The step when a stage, of the first replica, takes as long as in another."""
        times, sync, other = {}, self.sync, slow.sync
        for axis, time in self.stage_times.items():
            slower, forward = slow.stage_times[axis], time.forward.copy()
            backward = time.backward.copy()
            forward[0, stage] = slower.forward[0, stage]
            backward[0, stage] = slower.backward[0, stage]
            times[axis] = replace(time, forward=forward, backward=backward)
        if sync is not None and other is not None:
            changed = {}
            for name in ("reduce", "gather", "again_reduce"):
                changed[name] = getattr(sync, name).copy()
                changed[name][stage] = getattr(other, name)[stage]
            first_bucket = (sync if stage else other).first_bucket
            sync = replace(sync, **changed, first_bucket=first_bucket)
        return replace(self, stage_times=times, sync=sync)

    def pipeline_s(self, axes: tuple[str, ...]) -> float:
        """Seconds of the slowest replica's pipeline when only ``axes`` communicate."""
        return max(time for time, _ in self._replica_times(axes))

    def slowest_replica(self) -> int:
        """Index of a replica whose pipeline sets the step, the first of equals."""
        times = self._replica_times(self.axes)
        return min(times, key=lambda entry: (-entry[0], entry[1]))[1]

    def _replica_times(self, axes: tuple[str, ...]) -> list[tuple[float, int]]:
        """(pipeline seconds, first replica) of every pattern of times."""
        patterns, first = distinct_rows(self.patterns(axes))
        seconds = self.pipelines_s(patterns)
        return list(zip(seconds, first.tolist(), strict=True))

    def pipelines_s(self, patterns: FloatArray) -> list[float]:
        """Seconds of the pipeline of each row of `patterns`."""
        job = self.model.job
        schedule = job.micro_batches, job.parallelism.vp, job.overlap.pp
        if len(patterns) <= FEW_PATTERNS:
            return [pipeline_time(stages_of(row), *schedule) for row in patterns]
        parts = np.array_split(patterns, -(-len(patterns) // AT_ONCE))
        return [s for part in parts for s in pipeline_times(part, *schedule).tolist()]

    def patterns(self, axes: tuple[str, ...]) -> FloatArray:
        """Times of each replica when only ``axes`` communicate; shape (D, 3 p + 4), s.

        Rows are as `pipeline_times` takes them.
        """
        sizes = self.model.job.parallelism
        shape = (sizes.dp, sizes.pp)
        forward, backward, hop = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for axis in axes:
            added = self.stage_times[axis]
            if axis == "pp":
                hop = added.forward
            else:
                forward = forward + added.forward
                backward = backward + added.backward
        return self.model.patterns(forward, backward, hop, self.slowness)


def step_times(steps: Iterable[Step]) -> FloatArray:
    """Seconds of steps of one job, whose pipelines are walked together; shape (n,)."""
    rows, rest = [], []
    for step in steps:
        rows.append(distinct_rows(step.patterns(step.axes))[0])
        rest.append(step.after_pipeline_s)
    first = np.cumsum([0, *map(len, rows[:-1])])
    seconds = np.maximum.reduceat(step.pipelines_s(np.concatenate(rows)), first)
    return reduce(np.add, np.transpose(rest), seconds)


def distinct_rows(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """The different rows, and the index of the first of each kind."""
    if (rows == rows[0]).all():
        return rows[:1], np.zeros(1, dtype=np.int64)
    # Sorting one number a row is much faster than sorting rows; a number that two kinds
    # share would show in the comparison.
    key = rows @ np.sqrt(np.arange(2.0, 2.0 + rows.shape[1]))
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    if not (rows == rows[first][kind]).all():
        return np.unique(rows, axis=0, return_index=True)
    return rows[first], first


def stages_of(pattern: FloatArray) -> Stages:
    """One row of patterns as a pipeline of its own."""
    num_stages = (len(pattern) - 4) // 3
    parts = np.split(pattern, [num_stages, 2 * num_stages, 3 * num_stages])
    return Stages(*(tuple(part.tolist()) for part in parts))


class StepModel:
    """The cost of placements of one job on one machine.

    ``fabric``: to score on another fabric than the machine's own. ``slower`` and
    ``hides``: how many times as long the work takes as the job says, and how many times
    as long traffic hides behind it. ``content``: of the job, where it is known.
    """

    def __init__(
        self,
        topology: Domains,
        job: Job,
        fabric: Fabric | None = None,
        *,
        slower: float = 1.0,
        hides: float = 1.0,
        content: Content | None = None,
    ) -> None:
        self.topology = topology.by_island
        self.job = job
        self.fabric = fabric or Fabric.of(topology)
        self.slower, self.hides = slower, hides
        self.content = content or Content.of(job, topology.gpu)
        self.volumes, known, self.paces, _ = self.content
        self.work = known.times(slower)
        self.cover = self.work.times(hides)
        self.windows = windows(job, self.cover, self.content.first_chunk_parameters)
        self.compute_s = job.micro_batches * self.work.micro_batch_s
        self.fixed_s = job.compute.fixed_s
        self._last: list[tuple[IntArray, Step]] = []

    @cached_property
    def hops(self) -> HopCost:
        """The hop cost of the same job on the same machine."""
        return HopCost(self.topology, self.job)

    @cached_property
    def free_scale_out(self) -> StepModel:
        """The model of the job if every scale-out link were free."""
        return self._alike(self.job, self.fabric.with_free_scale_out())

    def _alike(self, job: Job, fabric: Fabric) -> StepModel:
        """Of another job, or on another fabric, the work as uncertain."""
        slower, hides = self.slower, self.hides
        return StepModel(self.topology, job, fabric, slower=slower, hides=hides)

    def step(self, gpu_of_rank: IntArray) -> Step:
        """The cost of the placement that puts rank ``r`` on GPU ``gpu_of_rank[r]``.

        Those of the last two placements are remembered, unless they hold traffic.
        """
        last = self._last
        for placed, step in last:
            if np.array_equal(placed, gpu_of_rank):
                return step
        placed = gpu_of_rank.copy()
        step = self.step_on(PlacedNetwork(self.fabric, placed))
        if self.job.traffic is None:  # loads of a million flows are large
            self._last = [(placed, step), *last[:1]]
        return step

    def step_on(self, network: Network) -> Step:
        """The cost when ``network`` says what each operation takes."""
        axes = self.job.parallelism
        return Step(
            self,
            {axis: self.stage_time(axis, network) for axis in self.axes},
            self.sync(network) if self.job.model else None,
            custom_times(network, self.job),
            1 / network.speed(self._ranks_of_stage).reshape(axes.dp, axes.pp),
            role_times(network, self.instances),
        )

    @cached_property
    def instances(self) -> tuple[tuple[Role, StepModel], ...]:
        """Each role, and the model of one instance."""
        return tuple(
            (role, self._alike(role.job, self.fabric)) for role in self.job.roles
        )

    def patterns(
        self,
        forward: FloatArray,
        backward: FloatArray,
        hop: FloatArray,
        slowness: FloatArray,
    ) -> FloatArray:
        """Times of replicas to which communication adds so much; shape (D, 3 p + 4), s.

        ``forward`` and ``backward`` ((D, P), s): added to a full chunk. ``hop`` ((D,
        P), s): message from each stage to the next. ``slowness`` ((D, P)): as in
        `Step`.
        """
        share = self.volumes.layer_share
        first, last = share[0, 0], share[-1, -1]
        full, longer = self.paces.full * slowness, slowness[:, [0, -1]]
        longer = longer * (self.paces.first, self.paces.last)
        work_f, work_b = self.work.forward_s, self.work.backward_s
        host_f, host_b = self.work.host_forward_s, self.work.host_backward_s
        # The host is ahead of layers alone: what goes before or after them is added.
        alone = slowness[:, [0, -1]] * self.paces.ends
        ends = [
            np.maximum(
                work * longer[:, at] + share * added[:, -at],
                work * alone[:, at] + share * host,
            )
            for at, share in enumerate((first, last))
            for work, added, host in (
                (work_f, forward, host_f),
                (work_b, backward, host_b),
            )
        ]
        return np.concatenate(
            (
                np.maximum(work_f * full + forward, host_f),
                np.maximum(work_b * full + backward, host_b),
                hop,
                np.stack(ends, axis=1),
            ),
            axis=1,
        )

    @cached_property
    def _ranks_of_stage(self) -> IntArray:
        """Ranks of every stage of every replica; shape (D P, ranks of a stage)."""
        axes, at = self.job.parallelism, self.job.parallelism.coordinates
        by_stage = np.argsort(at["dp"] * axes.pp + at["pp"], kind="stable")
        return by_stage.reshape(axes.dp * axes.pp, -1)

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """Those of ``tp cp ep pp`` that have members."""
        sizes = self.job.parallelism
        return tuple(a for a in STAGE_TIMES if self.job.model and sizes.size(a) > 1)

    def stage_time(self, axis: str, network: Network) -> StageTime:
        """What an axis adds to each stage."""
        return STAGE_TIMES[axis](network, self.job, self.volumes, self.cover)

    def sync(self, network: Network) -> SyncTime:
        """Data-parallel times of all stages of a job with a model."""
        return sync_time(network, self.job, self.volumes, self.windows.buckets)
