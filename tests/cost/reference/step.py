"""The step, term by term. A table has a value for each replica and stage."""

from itertools import pairwise

from tests.cost.reference.algorithms import all_reduces
from tests.cost.reference.beside import again_in_backward, host_of, layers_twice
from tests.cost.reference.collectives import (
    all_to_alls,
    edges,
    flows,
    gathers,
    messages,
)
from tests.cost.reference.groups import coordinates, groups
from tests.cost.reference.machine import Machine
from tests.cost.reference.pipeline import Replica, played
from tests.cost.reference.sizes import Sizes, paces
from tests.cost.reference.sync import exposed_sync


def reference_step(topology, job, gpu_of_rank):
    """Step time and its parts for a placement.

    Keys ``step_time_s compute_s bubble_s fixed_s exposed_s exposed_scale_out_s`` as in
    a score.
    """
    real, free = (
        _Step(Machine(topology, free=free), job, list(map(int, gpu_of_rank))).result()
        for free in (False, True)
    )
    real["exposed_scale_out_s"] = max(real["step_time_s"] - free["step_time_s"], 0.0)
    return real


def reference_seconds(topology, job, gpu_of_rank):
    """The step time alone."""
    return Reference(topology, job).seconds(gpu_of_rank)


class Reference:
    """Step times of many placements: what none of them changes is worked out once."""

    def __init__(self, topology, job):
        self._step = _Step(Machine(topology, free=False), job, [])

    def seconds(self, gpu_of_rank):
        """The step time of a placement."""
        self._step.seat(list(map(int, gpu_of_rank)))
        return float(self._step.result()["step_time_s"])


class _Step:
    def __init__(self, machine, job, gpus):
        self.machine, self.job = machine, job
        self.axes, self.sizes = job.parallelism, Sizes(job)
        self.paces, self.layers = paces(job)
        self.at = coordinates(job.parallelism)
        self.timed = {}
        self.seat(gpus)

    def seat(self, gpus):
        """Rank after rank on these."""
        self.gpus = gpus
        # How long work takes on the slowest GPU of each stage of each replica.
        times = [1 / self.machine.speed[gpu] for gpu in gpus]
        self.slowness = self._slowest([[rank] for rank in range(len(times))], times)

    def result(self):
        job, size, present = self.job, self.sizes, {}
        compute = job.micro_batches * self.axes.vp * (size.forward + size.backward)
        exposed = {}
        last = bare = self._pipeline(present)
        slowest = max(
            slow * sum(paces) / len(paces)
            for row in self.slowness
            for slow, paces in zip(row, self.paces, strict=True)
        )
        for axis, seconds in (
            ("tp", self._tensor),
            ("cp", self._context),
            ("ep", self._expert),
            ("pp", self._hops),
        ):
            if job.model is not None and self.axes.size(axis) > 1:
                present[axis] = seconds()
            now = self._pipeline(present)
            exposed[axis], last = now - last, now
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

    def _pipeline(self, present):
        """Seconds of the slowest replica when only some axes communicate."""
        found = []
        for replica in range(self.axes.dp):
            rows = self._replica(replica, present)
            key = tuple(map(tuple, rows))
            if key not in self.timed:
                self.timed[key] = played(
                    rows,
                    self.job.micro_batches,
                    self.axes.vp,
                    overlap=self.job.overlap.pp,
                )
            found.append(self.timed[key])
        return max(found)

    def _replica(self, replica, present):
        """Times of a replica's chunks, which no host launches faster than it can."""
        stages, slow = range(self.axes.pp), self.slowness[replica]
        is_alone = self.axes.pp * self.axes.vp == 1
        rows, ends = [], [0.0] * 4
        for way, bare in enumerate((self.sizes.forward, self.sizes.backward)):
            host = self._host()[way]
            added = [
                sum(present[a][way][replica][s] for a in present if a != "pp")
                for s in stages
            ]
            work = [bare * self._between(stage) * slow[stage] for stage in stages]
            rows.append([max(a + b, host) for a, b in zip(work, added, strict=True)])
            for rank, where in ((0, (True, is_alone)), (-1, (is_alone, True))):
                part, own = self.sizes.part(*where), bare * slow[rank]
                pace, layers = self.paces[rank][rank], self.layers[rank][rank]
                time = own * pace + part * added[rank]
                # Launched layers, and what is no layer.
                ends[way - 2 * rank] = max(time, own * (pace - layers) + part * host)
        hop = present["pp"][0][replica] if "pp" in present else [0.0] * self.axes.pp
        return Replica(*rows, hop, ends)

    def _host(self):
        """What hosts that run ahead take to launch a full chunk, each way."""
        if self.job.model is None or self.job.model.moe_layers:
            return 0.0, 0.0
        host = host_of(self.job) * self.sizes.layers
        once = host / (3 + layers_twice(self.job))
        return once, host - once

    def _between(self, rank):
        """Mean pace of the chunks of a rank that are neither the first nor the last."""
        found = list(self.paces[rank])
        if rank == self.axes.pp - 1:
            found.pop()
        if rank == 0 and found:
            found.pop(0)
        return sum(found) / len(found) if found else 0.0

    def _tensor(self):
        """Collectives of a layer and pass; overlapped, the last of ``t`` pieces."""
        ranks, slab = groups(self.axes, "tp"), self.sizes.slab
        rows = self._on(ranks)
        if self.job.tensor_parallel.sequence:
            count, times = 4, gathers(self.machine, rows, slab)
        else:
            algorithm = self.job.collectives.all_reduce
            count, times = 2, all_reduces(self.machine, rows, slab, algorithm)
        if self.job.overlap.tp:
            product = self.sizes.layer_forward / count
            inside = [len({self.machine.island(g) for g in row}) == 1 for row in rows]
            times = [
                max(t / self.axes.tp, t - product) if near else t
                for t, near in zip(times, inside, strict=True)
            ]
        once = [t * count * self.sizes.layers for t in times]
        return self._both(ranks, once, 1 + layers_twice(self.job))

    def _both(self, ranks, once, times):
        """Forward, and a backward that takes ``times`` as long."""
        backward = self._slowest(ranks, [times * seconds for seconds in once])
        return self._slowest(ranks, once), backward

    def _context(self):
        """Keys and values of other ranks, forward and backward."""
        ranks = groups(self.axes, "cp")
        rows, size, twice = self._on(ranks), self.sizes, layers_twice(self.job)
        kind = self.job.context_parallel.communication
        if kind == "a2a":
            there = all_to_alls(self.machine, rows, size.queries + size.key_values)
            back = all_to_alls(self.machine, rows, size.outputs)
            both = [(a + b) * size.layers for a, b in zip(there, back, strict=True)]
            return self._both(ranks, both, 1 + twice)
        if kind == "all_gather":
            seen = gathers(self.machine, rows, self.axes.cp * size.key_values)
        else:
            # c - 1 hops of keys and values around each ring, beside attention.
            hidden = size.layer_forward * size.attention_share * self.job.overlap.cp
            hops = self.axes.cp - 1
            rings = self._messages(map(edges, rows), size.key_values)
            seen = [max(0.0, hops * max(ring) - hidden) for ring in rings]
        return self._both(ranks, [time * size.layers for time in seen], 2 + twice)

    def _expert(self):
        """Dispatch and combine in each pass of a layer with experts."""
        ranks, job, size = groups(self.axes, "ep"), self.job, self.sizes
        is_once = job.expert_parallel.dispatch == "deduplicated"
        copies = job.model.top_k if is_once else 0
        hidden = size.layer_forward / 2 if job.overlap.ep else 0.0
        once = []
        for time in all_to_alls(self.machine, self._on(ranks), size.tokens, copies):
            beside = min(time + 0.13e-3, hidden)
            seen = time + 0.13e-3 - beside + job.expert_parallel.sm_share * beside
            once.append(2 * size.moe_layers * seen)
        again = 1.0 if "moe" in again_in_backward(job) else layers_twice(job)
        return self._both(ranks, once, 1 + again)

    def _hops(self):
        """A message from each stage to the next, the slowest lane of the replica."""
        lanes = groups(self.axes, "pp")
        hops = self.axes.pp if self.axes.vp > 1 else self.axes.pp - 1
        pairs = [edges(lane)[:hops] for lane in self._on(lanes)]
        table = [[0.0] * self.axes.pp for _ in range(self.axes.dp)]
        times = self._messages(pairs, self.sizes.message)
        for lane, seconds in zip(lanes, times, strict=True):
            row = table[self.at[lane[0]]["dp"]]
            row[:hops] = map(max, row[:hops], seconds)
        return table, table

    def _messages(self, rows, size):
        """Seconds of each message of each row of pairs of GPUs, all at once."""
        rows = list(rows)
        found = iter(
            messages(self.machine, [pair for row in rows for pair in row], size)
        )
        return [[next(found) for _ in row] for row in rows]

    def _custom(self, group, compute):
        """A step's time in the slowest communicator of a custom group."""
        slowest, size = 0.0, group.size_bytes
        for count in {len(ranks) for ranks in group.ranks} - {1}:
            rows = self._on([ranks for ranks in group.ranks if len(ranks) == count])
            if group.collective == "all_to_all":
                times = all_to_alls(self.machine, rows, size)
            elif group.collective == "send_recv":
                times = messages(
                    self.machine, [pair for row in rows for pair in pairwise(row)], size
                )
            elif group.collective == "relay":
                # Each chain passes a message on, hop after hop.
                turns = zip(*(pairwise(row) for row in rows), strict=True)
                each = [messages(self.machine, list(turn), size) for turn in turns]
                times = map(sum, zip(*each, strict=True))
            elif group.collective == "all_reduce":
                algorithm = self.job.collectives.all_reduce
                times = all_reduces(self.machine, rows, size, algorithm)
            else:
                times = gathers(self.machine, rows, size)
            slowest = max(slowest, *times)
        seconds = slowest * group.per_step
        return max(0.0, seconds - compute) if group.overlap else seconds

    def _traffic(self, traffic, compute):
        """Seconds of the slowest flow between ranks, past compute if overlapped."""
        pairs = self._on(zip(traffic.senders, traffic.receivers, strict=True))
        sizes = dict(zip(map(tuple, pairs), traffic.size_bytes.tolist(), strict=True))
        times = flows(self.machine, sizes, traffic.pair_share)
        seconds = max(times) + traffic.fixed_s
        return max(0.0, seconds - compute) if traffic.overlap else seconds

    def _on(self, ranks):
        return [[self.gpus[rank] for rank in row] for row in ranks]

    def _slowest(self, ranks, times):
        """Largest time of the groups that touch each replica and stage."""
        table = [[0.0] * self.axes.pp for _ in range(self.axes.dp)]
        for row, seconds in zip(ranks, times, strict=True):
            for rank in row:
                replica, stage = self.at[rank]["dp"], self.at[rank]["pp"]
                table[replica][stage] = max(table[replica][stage], seconds)
        return table
