"""The least step time of a choice of degrees, before any placement.

With the work of each chunk of a pipeline, and the traffic of its layers in it, a step
takes no less than `least_pipeline` says. Each group takes its best place alone on the
machine: the links of the nearest tier that could hold it, no other traffic. So the
bound holds for every placement. What gradients add comes on top (`LeastSync`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from placer.cost.fabric import Fabric
from placer.cost.stage_times import (
    STAGE_TIMES,
    expert_exchange,
    expert_passes,
)
from placer.cost.volumes import volumes
from placer.cost.work import work
from placer.job.axes import MEGATRON_DEFAULT_ORDER
from placer.job.beside import host_passes
from placer.job.least_pipeline import ChunkTimes, least_pipeline, least_with_slow_rank
from placer.job.model import Job
from placer.job.models import Model
from placer.job.pace import Rates, Share, held, pace, rates_at, reached, share_of
from placer.job.paces import Paces, paces_at
from placer.job.parallel import EndStages
from placer.solve.bounds.ideal import IdealNetwork
from placer.topology.machine import Machine
from placer.tune.choice import Choice, overlaps_experts
from placer.tune.least_sync import LeastSync, in_parts

# So that what is rounded is no longer than what is worked out in another way.
ROUNDED = 1 - 1e-12


class Layer(NamedTuple):
    """Seconds of one layer of one micro-batch, the mean over all layers.

    ``forward`` and ``backward`` are the work alone, the next what traffic adds, the
    last what its host takes: all together takes no less.
    """

    forward: float
    backward: float
    more_forward: float = 0.0
    more_backward: float = 0.0
    host: tuple[float, float] = (0.0, 0.0)


@dataclass
class Least:
    """Lower bounds on the step time of many choices for one job and machine.

    ``model``: the job's. ``sync``: what gradients and sharded parameters add.
    """

    machine: Machine
    job: Job
    model: Model
    _known: dict[Hashable, tuple[float, float]] = field(default_factory=dict)
    _evenness: dict[Hashable, float] = field(default_factory=dict)
    _paces: dict[Hashable, Paces] = field(default_factory=dict)
    _shares: dict[Hashable, tuple[Share, Rates, tuple[float, float]]] = field(
        default_factory=dict
    )
    _alone: dict[Hashable, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fabric = Fabric.of(self.machine)
        self.sync = LeastSync(self._network)

    def busy_s(self, choice: Choice) -> float:
        """No step is shorter than its slowest stage works, s; soon worked out."""
        layers = choice.micro_batches * self._layers(choice) / choice.pp
        return self.job.compute.fixed_s + layers * sum(self._work(choice)) * ROUNDED

    def work_s(self, choice: Choice) -> float:
        """No step of the choice is shorter, were all traffic free."""
        forward, backward = self._work(choice)
        share = forward / (forward + backward)
        # A pipeline of work alone is as many times longer as its work is.
        key = *self._shape_key(choice), choice.micro_batches, share
        if key not in self._alone:
            self._alone[key] = self._pipeline(choice, Layer(share, 1 - share))
        return self.job.compute.fixed_s + (forward + backward) * self._alone[key]

    def step_s(self, choice: Choice) -> float:
        """No placement of the choice has a shorter step."""
        work_s = self._work(choice)
        # Traffic is timed beside the work of even stages. Longer work may hide more of
        # it: on each axis as much more as the work is longer.
        evenness, host = self._even(choice), self._done(choice)[2]
        longer = [(1 - evenness) * time for time in work_s]
        more = [0.0, 0.0]
        for axis in ("tp", "cp"):
            if getattr(choice, axis) > 1:
                more = self._with(more, axis, choice, longer)
        slow = more
        if choice.ep > 1:
            part = self.sync.smallest_part(choice)
            slow = self._with(more, "ep", choice, longer, part)
            more = self._with(more, "ep", choice, longer)
        layer = Layer(*work_s, more[0], more[1], host)
        pipeline_s = self._pipeline(choice, layer)
        if slow != more:
            slow_s = self._pipeline(
                choice, layer, Layer(*work_s, slow[0], slow[1], host)
            )
            pipeline_s = max(pipeline_s, slow_s)
        return self.job.compute.fixed_s + pipeline_s

    def _with(
        self,
        more: list[float],
        axis: str,
        choice: Choice,
        longer: list[float],
        part: int = 0,
    ) -> list[float]:
        """What traffic adds to a layer with that of one more axis, s."""
        hides, once = self._hides(axis, choice), self._once(axis, choice, part)
        return [
            known + (max(added - work_s, 0.0) if hides else added)
            for known, added, work_s in zip(more, once, longer, strict=True)
        ]

    def _work(self, choice: Choice) -> tuple[float, float]:
        """Forward and backward of a layer, at the pace of the slowest stage."""
        evenness = self._even(choice)
        forward, backward = self._once("work", choice)
        return forward / evenness, backward / evenness

    def _pipeline(
        self, choice: Choice, layer: Layer, slow: Layer | None = None
    ) -> float:
        """The least pipeline with layers of so many seconds, slow ones on a rank."""
        times = self._chunks(choice, layer)
        micro_batches, chunks = choice.micro_batches, choice.vp
        if slow is None:
            return least_pipeline(times, micro_batches, chunks)
        slow_times = self._chunks(choice, slow)
        return least_with_slow_rank(times, slow_times, micro_batches, chunks)

    def _chunks(self, choice: Choice, layer: Layer) -> ChunkTimes:
        """Chunks of layers of so many seconds."""
        paces = self._paced(choice)
        chunk = self._layers(choice) / (choice.pp * choice.vp)
        work_s = chunk * np.array([layer.forward, layer.backward])
        more_s = np.array([layer.more_forward, layer.more_backward])
        first, last = chunk - choice.embedding, chunk - choice.loss
        host_s = np.array(layer.host)
        full = work_s[:, None] * paces.full + chunk * more_s[:, None]
        ends = (
            np.maximum(work_s * pace + layers * more_s, work_s * end + layers * host_s)
            for pace, end, layers in zip(
                (paces.first, paces.last),
                paces.ends,
                (max(first, 0.0), max(last, 0.0)),
                strict=True,
            )
        )
        return ChunkTimes(np.maximum(full, chunk * host_s[:, None]), *ends)

    def _even(self, choice: Choice) -> float:
        """Mean work of its stages in that of the slowest; the same for all alike."""
        key = self._shape_key(choice)
        if key not in self._evenness:
            ends = EndStages(choice.embedding, choice.loss)
            share, at, _ = self._done(choice)
            whole, slowest = (
                pace(share, held(self.model, pp, vp, ends), at)
                for pp, vp in ((1, 1), (choice.pp, choice.vp))
            )
            self._evenness[key] = whole / choice.pp / slowest
        return self._evenness[key]

    def _paced(self, choice: Choice) -> Paces:
        """How long its chunks take beside one another; the same for all alike."""
        key = self._shape_key(choice)
        if key not in self._paces:
            ends = EndStages(choice.embedding, choice.loss)
            share, at, _ = self._done(choice)
            layers = held(self.model, choice.pp, choice.vp, ends)
            time = pace(share, layers, at)
            known = rates_at(time, share, layers, self.job.compute)
            self._paces[key] = paces_at(share, layers, ends, known)
        return self._paces[key]

    def _done(self, choice: Choice) -> tuple[Share, Rates, tuple[float, float]]:
        """What a GPU does of a layer, at which rates, and its host.

        The same in however many stages, unless so many layers of each run again.
        """
        tp, cp, ep, etp, micro_batch = cut = self._cut(choice)
        key: tuple[Hashable, ...] = *cut, choice.recompute, _alike(choice)
        if self.job.memory.recompute_method == "block":
            key = *key, choice.pp * choice.vp, choice.embedding, choice.loss
        if key not in self._shares:
            alike = _of_one_replica(choice, tp=tp, cp=cp, ep=ep, etp=etp)
            job = alike._replace(micro_batch=micro_batch).shaped(self.job)
            self._shares[key] = (
                share_of(job, self.model),
                reached(self.job, self.model, job),
                host_passes(job, self.model),
            )
        return self._shares[key]

    def _shape_key(self, choice: Choice) -> tuple[Hashable, ...]:
        """What the shape of a pipeline depends on."""
        ends = choice.embedding, choice.loss
        cut = self._cut(choice), _alike(choice)
        return choice.pp, choice.vp, choice.recompute, ends, *cut

    def _cut(self, choice: Choice) -> tuple[int, int, int, int, int]:
        """How a layer is cut, where its shape depends on that."""
        if self.job.compute.memory_bandwidth or self.model.moe_layers:
            # How long layers take beside the output layer depends on how they are cut.
            return choice.tp, choice.cp, choice.ep, choice.etp, choice.micro_batch
        return 1, 1, 1, 1, 1

    def _hides(self, axis: str, choice: Choice) -> bool:
        """Whether work hides traffic of an axis."""
        if axis == "ep":
            return overlaps_experts(self.job, choice)
        return bool(getattr(self.job.overlap, axis))

    def _once(self, what: str, choice: Choice, part: int = 0) -> tuple[float, float]:
        """Forward and backward of a layer: its work, or what an axis adds to it.

        In even stages, which those of one are.
        Alike for all choices that cut a layer alike, and worked out once for them. With
        ``part``, what the expert group adds whose smallest part is no larger.
        """
        ep = choice.ep if what in ("work", "ep") else 1
        etp = choice.etp if what == "ep" else choice.tp
        # One stage may hide exchanges of experts that those of a pipeline do not.
        hides = what == "ep" and self._hides(what, choice)
        ends = choice.embedding, choice.loss
        layer = choice.micro_batch, choice.recompute, ends, _alike(choice)
        key = what, choice.tp, choice.cp, ep, etp, layer, hides, part
        if key not in self._known:
            alike = _of_one_replica(choice, ep=ep, etp=etp, pp=1, vp=1)
            self._known[key] = self._timed(what, alike, hides, part)
        return self._known[key]

    def _timed(
        self, what: str, choice: Choice, hides: bool, part: int
    ) -> tuple[float, float]:
        """What the time is in a job of the fewest ranks that has such groups."""
        experts, dense = choice.ep * choice.etp, choice.tp * choice.cp
        thin = choice._replace(dp=experts // gcd(experts, dense))
        # What hides traffic of a layer is taken off in `step_s`.
        if what == "ep":
            return self._exchanged(thin.shaped(self.job), choice, hides, part)
        job = thin.applied(self.job)
        sizes = volumes(job)
        times = work(job, sizes)
        layers = sizes.layers_per_chunk
        if what == "work":
            return times.forward_s / layers, times.backward_s / layers
        network = self._network(job.world_size)
        found = STAGE_TIMES[what](network, job, sizes, times)
        return float(found.forward.min()) / layers, float(found.backward.min()) / layers

    def _exchanged(
        self, job: Job, choice: Choice, hides: bool, part: int
    ) -> tuple[float, float]:
        """What exchanges of experts add; groups of most choices are alike."""
        job = replace(job, overlap=replace(job.overlap, ep=hides))
        sizes = volumes(job)
        network, members = self.sync.group_of(choice.ep, choice.etp)
        if part and part < choice.ep:
            network = in_parts(network, members, part, sizes.ep_buffer, job)
        seconds = expert_exchange(network, job, sizes, members).seconds
        work_s, _ = self._once("work", choice)
        forward, backward = expert_passes(job, sizes, work_s, seconds)
        layers = sizes.layers_per_chunk
        return float(forward[0]) / layers, float(backward[0]) / layers

    def _layers(self, choice: Choice) -> float:
        """Layers of the model, and what its ends count for."""
        return self.model.layers + choice.embedding + choice.loss

    def _network(self, ranks: int) -> IdealNetwork:
        """The best network for groups of so many ranks, each anywhere.

        A launch by nodes gives each node a run of ranks. What it holds of a group there
        depends on how far apart in rank members are: as here in any job of the order
        that `Choice.applied` falls back on, or one that numbers its groups alike.
        """
        label = np.tile(np.arange(ranks), (len(self.machine.tiers), 1))
        capacity = self.machine.gpus_of_node.astype(np.int64)
        axes = self.job.parallelism
        as_usual = axes.order[:3] == MEGATRON_DEFAULT_ORDER[:3] and not axes.auto_order
        in_runs = as_usual and self.job.launcher != "free"
        return IdealNetwork(self._fabric, label, capacity, in_runs)


def _alike(choice: Choice) -> str:
    """A sharding with which layers take as long: weights are gathered, or are there."""
    return "zero3" if choice.sharding in ("zero3", "hsdp") else "ddp"


def _of_one_replica(choice: Choice, **sizes: Any) -> Choice:
    """A choice with other sizes, of one micro-batch and one replica, sharded alike."""
    return choice._replace(
        dp=1, micro_batches=1, sharding=_alike(choice), shard_size=0, **sizes
    )
