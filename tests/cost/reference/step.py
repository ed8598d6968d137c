"""The step, term by term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cost.reference.algorithms import all_reduces, gathers
from tests.cost.reference.beside import host_of, layers_twice
from tests.cost.reference.collectives import all_to_alls, flows, messages
from tests.cost.reference.groups import coordinates, groups
from tests.cost.reference.machine import Machine
from tests.cost.reference.pipeline import Replica, longest_path
from tests.cost.reference.sizes import beside_layers, paces, sizes
from tests.cost.reference.sync import exposed_sync

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.job.model import Job
    from placer.job.traffic import Group, RankTraffic
    from placer.topology.model import Topology

Table = list[list[float]]  # by replica and stage


def reference_step(
    topology: Topology, job: Job, gpu_of_rank: Sequence[int]
) -> dict[str, Any]:
    """Step time and its parts for a placement.

    Keys ``step_time_s compute_s bubble_s fixed_s exposed_s exposed_scale_out_s`` as in
    a score.
    """
    gpus = [int(gpu) for gpu in gpu_of_rank]
    real = _Step(Machine(topology, free=False), job, gpus).result()
    free = _Step(Machine(topology, free=True), job, gpus).result()
    real["exposed_scale_out_s"] = max(real["step_time_s"] - free["step_time_s"], 0.0)
    return real


def reference_seconds(
    topology: Topology, job: Job, gpu_of_rank: Sequence[int]
) -> float:
    """The step time alone."""
    gpus = [int(gpu) for gpu in gpu_of_rank]
    return float(
        _Step(Machine(topology, free=False), job, gpus).result()["step_time_s"]
    )


class _Step:
    def __init__(self, machine: Machine, job: Job, gpus: list[int]) -> None:
        self.machine, self.job, self.gpus = machine, job, gpus
        self.axes = job.parallelism
        self.sizes = sizes(job)
        self.paces = paces(job)
        self.at = coordinates(job.parallelism)
        self.timed: dict[Any, float] = {}

    def result(self) -> dict[str, Any]:
        job, size = self.job, self.sizes
        compute = job.micro_batches * self.axes.vp * (size.forward + size.backward)
        added = {}
        if job.model is not None:
            for axis, seconds in (
                ("tp", self._tensor),
                ("cp", self._context),
                ("ep", self._expert),
                ("pp", self._hops),
            ):
                if self.axes.size(axis) > 1:
                    added[axis] = seconds()
        exposed: dict[str, float] = {}
        present: list[str] = []
        last = bare = self._pipeline(added, present)
        slowest = max(
            slow * sum(paces) / len(paces)
            for row in self._slowness()
            for slow, paces in zip(row, self.paces, strict=True)
        )
        for axis in ("tp", "cp", "ep", "pp"):
            if axis in added:
                present.append(axis)
            now = self._pipeline(added, present)
            exposed[axis] = now - last
            last = now
        exposed["dp"] = exposed_sync(self.machine, job, size, self.gpus)
        for group in job.groups:
            exposed[group.name] = self._custom(group, compute)
        if job.traffic is not None:
            exposed["traffic"] = self._traffic(job.traffic, compute)
        fixed = job.compute.fixed_time or 0.0
        return {
            "step_time_s": bare + sum(exposed.values()) + fixed,
            "compute_s": compute * slowest,
            "bubble_s": bare - compute * slowest,
            "fixed_s": fixed,
            "exposed_s": exposed,
        }

    def _pipeline(
        self, added: dict[str, tuple[Table, Table]], present: list[str]
    ) -> float:
        """Seconds of the slowest replica when only some axes communicate."""
        slowest = 0.0
        for replica in range(self.axes.dp):
            slow = self._slowness()[replica]
            pace = [self._between(rank) * times for rank, times in enumerate(slow)]
            forward = [self.sizes.forward * times for times in pace]
            backward = [self.sizes.backward * times for times in pace]
            hop = [0.0] * self.axes.pp
            for axis in present:
                for stage in range(self.axes.pp):
                    if axis == "pp":
                        hop[stage] = added[axis][0][replica][stage]
                        continue
                    forward[stage] += added[axis][0][replica][stage]
                    backward[stage] += added[axis][1][replica][stage]
            ends = [
                bare * slow[rank] * self.paces[rank][rank]
                + self.sizes.part(*where) * (times[rank] - bare * pace[rank])
                for rank, where in ((0, self._only((True, False))), (-1, (False, True)))
                for bare, times in (
                    (self.sizes.forward, forward),
                    (self.sizes.backward, backward),
                )
            ]
            full = self._host()
            forward = [max(time, full[0]) for time in forward]
            backward = [max(time, full[1]) for time in backward]
            ends = [
                max(time, least)
                for time, least in zip(ends, self._least_ends(slow), strict=True)
            ]
            key = (*forward, *backward, *hop, *ends)
            if key not in self.timed:
                self.timed[key] = longest_path(
                    Replica(forward, backward, hop, ends),
                    self.job.micro_batches,
                    self.axes.vp,
                    overlap=self.job.overlap.pp,
                )
            slowest = max(slowest, self.timed[key])
        return slowest

    def _host(self) -> tuple[float, float]:
        """What hosts that run ahead take to launch a full chunk, each way."""
        if self.job.model is None or self.job.model.moe_layers:
            return 0.0, 0.0
        host = host_of(self.job) * self.sizes.layers
        once = host / (3 + layers_twice(self.job))
        return once, host - once

    def _least_ends(self, slow: list[float]) -> list[float]:
        """The first chunk each way and the last: launched layers, and what is none."""
        found, bare = [], (self.sizes.forward, self.sizes.backward)
        for rank, where in ((0, (True, False)), (-1, (False, True))):
            part = self.sizes.part(*self._only(where))
            beside = slow[rank] * beside_layers(self.job)[rank]
            for work, host in zip(bare, self._host(), strict=True):
                found.append(work * beside + part * host)
        return found

    def _between(self, rank: int) -> float:
        """Mean pace of the chunks of a rank that are neither the first nor the last."""
        found = list(self.paces[rank])
        if rank == self.axes.pp - 1:
            found.pop()
        if rank == 0 and found:
            found.pop(0)
        return sum(found) / len(found) if found else 0.0

    def _slowness(self) -> Table:
        """How long work takes on the slowest GPU of each stage of each replica."""
        times = [1 / self.machine.speed[gpu] for gpu in self.gpus]
        return self._slowest([[rank] for rank in range(len(times))], times)

    def _only(self, ends: tuple[bool, bool]) -> tuple[bool, bool]:
        """The ends of the first chunk: both when there is no other."""
        return (True, True) if self.axes.pp * self.axes.vp == 1 else ends

    def _tensor(self) -> tuple[Table, Table]:
        """Collectives of a layer and pass; overlapped, the last of ``t`` pieces."""
        ranks = groups(self.axes, "tp")
        algorithms, slab = self.job.collectives, self.sizes.slab
        if self.job.tensor_parallel.sequence:
            count = 4
            times = gathers(self.machine, self._on(ranks), slab)
        else:
            count = 2
            rows = self._on(ranks)
            times = all_reduces(self.machine, rows, slab, algorithms.all_reduce)
        if self.job.overlap.tp:
            product = self.sizes.layer_forward / count
            rows = self._on(ranks)
            inside = [len({self.machine.island(g) for g in row}) == 1 for row in rows]
            times = [
                max(t / self.axes.tp, t - product) if near else t
                for t, near in zip(times, inside, strict=True)
            ]
        passes = 2 + layers_twice(self.job)
        once = [t * count * self.sizes.layers for t in times]
        return self._both(ranks, once, passes - 1)

    def _both(
        self, ranks: list[list[int]], once: list[float], times: float
    ) -> tuple[Table, Table]:
        """Forward, and a backward that takes ``times`` as long."""
        backward = self._slowest(ranks, [times * seconds for seconds in once])
        return self._slowest(ranks, once), backward

    def _context(self) -> tuple[Table, Table]:
        """Keys and values of other ranks, forward and backward."""
        ranks = groups(self.axes, "cp")
        rows, size, layers = self._on(ranks), self.sizes, self.sizes.layers
        kind = self.job.context_parallel.communication
        if kind == "a2a":
            there = all_to_alls(self.machine, rows, size.queries + size.key_values)
            back = all_to_alls(self.machine, rows, size.outputs)
            both = [(a + b) * layers for a, b in zip(there, back, strict=True)]
            return self._both(ranks, both, 1 + layers_twice(self.job))
        if kind == "all_gather":
            whole = self.axes.cp * size.key_values
            seen = gathers(self.machine, rows, whole)
        else:
            seen = self._around(rows)
        once = [time * layers for time in seen]
        return self._both(ranks, once, 2 + layers_twice(self.job))

    def _around(self, rows: list[list[int]]) -> list[float]:
        """``c-1`` hops of keys and values around each ring, beside attention."""
        hops = self.axes.cp - 1
        pairs = [
            (row[i], row[(i + 1) % len(row)]) for row in rows for i in range(len(row))
        ]
        seconds = messages(self.machine, pairs, self.sizes.key_values)
        hidden = 0.0
        if self.job.overlap.cp:
            hidden = self.sizes.layer_forward * self.sizes.attention_share
        found = []
        for i in range(len(rows)):
            slowest = max(seconds[i * self.axes.cp : (i + 1) * self.axes.cp])
            found.append(max(0.0, hops * slowest - hidden))
        return found

    def _expert(self) -> tuple[Table, Table]:
        """Dispatch and combine in each pass of a layer with experts."""
        ranks = groups(self.axes, "ep")
        copies = 0
        if self.job.expert_parallel.dispatch == "deduplicated" and self.job.model:
            copies = self.job.model.top_k
        rows = self._on(ranks)
        times = all_to_alls(self.machine, rows, self.sizes.tokens, copies)
        hidden = self.sizes.layer_forward / 2 if self.job.overlap.ep else 0.0
        taken = self.job.expert_parallel.sm_share
        calls = [t + 0.13e-3 for t in times]
        seen = [t - min(t, hidden) + taken * min(t, hidden) for t in calls]
        once = [2 * self.sizes.moe_layers * t for t in seen]
        memory = self.job.memory
        of_experts = memory.recompute == "selective" and "moe" in (
            memory.recompute_modules
        )
        again = 1.0 if of_experts else layers_twice(self.job)
        return self._both(ranks, once, 1 + again)

    def _hops(self) -> tuple[Table, Table]:
        """A message from each stage to the next, the slowest lane of the replica."""
        lanes = groups(self.axes, "pp")
        hops = self.axes.pp if self.axes.vp > 1 else self.axes.pp - 1
        pairs = [
            (lane[s], lane[(s + 1) % self.axes.pp])
            for lane in self._on(lanes)
            for s in range(hops)
        ]
        seconds = messages(self.machine, pairs, self.sizes.message)
        table = [[0.0] * self.axes.pp for _ in range(self.axes.dp)]
        for i, lane in enumerate(lanes):
            row = table[self.at[lane[0]]["dp"]]
            for s in range(hops):
                row[s] = max(row[s], seconds[i * hops + s])
        return table, table

    def _custom(self, group: Group, compute: float) -> float:
        """A step's time in the slowest communicator of a custom group."""
        slowest = 0.0
        for size in {len(ranks) for ranks in group.ranks} - {1}:
            rows = self._on([list(r) for r in group.ranks if len(r) == size])
            if group.collective == "all_to_all":
                times = all_to_alls(self.machine, rows, group.size_bytes)
            elif group.collective == "send_recv":
                pairs = [
                    (row[i], row[i + 1]) for row in rows for i in range(len(row) - 1)
                ]
                times = messages(self.machine, pairs, group.size_bytes)
            elif group.collective == "relay":
                times = self._relay(rows, group.size_bytes)
            elif group.collective == "all_reduce":
                algorithm = self.job.collectives.all_reduce
                times = all_reduces(self.machine, rows, group.size_bytes, algorithm)
            else:
                times = gathers(self.machine, rows, group.size_bytes)
            slowest = max(slowest, *times)
        seconds = slowest * group.per_step
        return max(0.0, seconds - compute) if group.overlap else seconds

    def _traffic(self, traffic: RankTraffic, compute: float) -> float:
        """Seconds of the slowest flow between ranks, past compute if overlapped."""
        pairs = zip(traffic.senders.tolist(), traffic.receivers.tolist(), strict=True)
        sizes = {
            (self.gpus[a], self.gpus[b]): size
            for (a, b), size in zip(pairs, traffic.size_bytes.tolist(), strict=True)
        }
        times = flows(self.machine, sizes, traffic.pair_share)
        seconds = max(times) + traffic.fixed_s
        return max(0.0, seconds - compute) if traffic.overlap else seconds

    def _relay(self, rows: list[list[int]], size: float) -> list[float]:
        """Seconds of each chain, which passes a message on hop after hop."""
        total = [0.0] * len(rows)
        for i in range(len(rows[0]) - 1):
            pairs = [(row[i], row[i + 1]) for row in rows]
            for g, seconds in enumerate(messages(self.machine, pairs, size)):
                total[g] += seconds
        return total

    def _on(self, ranks: list[list[int]]) -> list[list[int]]:
        return [[self.gpus[rank] for rank in row] for row in ranks]

    def _slowest(self, ranks: list[list[int]], times: list[float]) -> Table:
        """Largest time of the groups that touch each replica and stage."""
        table = [[0.0] * self.axes.pp for _ in range(self.axes.dp)]
        for row, seconds in zip(ranks, times, strict=True):
            for rank in row:
                replica, stage = self.at[rank]["dp"], self.at[rank]["pp"]
                table[replica][stage] = max(table[replica][stage], seconds)
        return table
