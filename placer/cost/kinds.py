"""Many kinds of groups priced together, each as if it were alone.

Kinds of groups run in turn, each with the network to itself, so each is put on a copy
of the machine of its own (`Copies`); the hops of a relay, which are made in turn, on
one each. Groups on different copies share no link. Kinds with communicators of one size
that run the same collective then take one call, and each costs what it costs alone, to
the last bit: sums over one copy have the same terms in the same order. Shapes: K kinds
of a call, each on a copy, g groups of n members of all of them, T tiers, G GPUs that
groups use, each once a copy.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.cost.links import Cost, LinkLoad, weighted_counts
from placer.cost.network import Network, PlacedNetwork
from placer.job.model import Job
from placer.job.parallel import Collectives

# Members of all groups of one call, about: more take much memory.
MEMBERS_AT_ONCE = 1_000_000


@dataclass(frozen=True, eq=False)
class Copies(Fabric):
    """The GPUs of a machine that groups use on copies of it, as a fabric.

    The machine has no links of its own between domains.
    """

    whole: Fabric = field(kw_only=True)  # the machine
    number: int = field(kw_only=True)  # K
    # gpu and copy_of_gpu, (G,): GPU of the machine, and its copy; copies ascend.
    gpu: IntArray = field(kw_only=True)
    copy_of_gpu: IntArray = field(kw_only=True)

    @classmethod
    def holding(
        cls, fabric: Fabric, gpus: IntArray, copy: IntArray, number: int
    ) -> tuple[Copies, IntArray]:
        """Copies of ``fabric`` for GPUs on them, and which those are there.

        ``gpus``: shape (any,). ``copy`` ((any,)): which copy each is on.
        """
        count = fabric.domain_of_gpu.shape[1]
        keys, place = np.unique(copy * count + gpus, return_inverse=True)
        same = {one.name: getattr(fabric, one.name) for one in fields(Fabric)}
        own = {"gpu": keys % count, "copy_of_gpu": keys // count}
        return cls(**same, whole=fabric, number=number, **own), place

    @cached_property
    def has_rack_switch(self) -> bool:
        """That of the machine."""
        return self.whole.has_rack_switch

    @cached_property
    def rail_of_gpu(self) -> IntArray:
        """Rail of each GPU; shape (G,)."""
        return self.whole.rail_of_gpu[self.gpu]

    @cached_property
    def factor_of_gpu(self) -> FloatArray:
        """Share of the nominal bandwidth each GPU reaches; shape (G,)."""
        return self.whole.factor_of_gpu[self.gpu]

    @cached_property
    def _domains(self) -> list[tuple[IntArray, IntArray]]:
        """Copy and domain as one number, of every domain, and that of each GPU."""
        found = []
        for row, span in zip(self.whole.domain_of_gpu, self._spans, strict=True):
            keys = self.copy_of_gpu * span + row[self.gpu]
            found.append(np.unique(keys, return_inverse=True))
        return found

    @cached_property
    def _spans(self) -> list[int]:
        return [int(row.max()) + 1 for row in self.whole.domain_of_gpu]

    @cached_property
    def domain_of_gpu(self) -> IntArray:
        """Domain of each GPU at each tier, those of all copies numbered; (T, G)."""
        return np.stack([domain for _, domain in self._domains])

    @cached_property
    def children(self) -> list[tuple[IntArray, IntArray]]:
        """Copy, and child domain of the machine, of every child domain, by tier."""
        inner = zip(self._domains[:-1], self._spans[:-1], strict=True)
        domains = [(keys // span, keys % span) for (keys, _), span in inner]
        return [(self.copy_of_gpu, self.gpu), *domains]

    @cached_property
    def uplink_capacity(self) -> list[FloatArray]:
        """Bytes a second of each child's uplink into a tier, one array a tier."""
        return [
            capacity[child]
            for capacity, (_, child) in zip(
                self.whole.uplink_capacity, self.children, strict=True
            )
        ]

    @cached_property
    def shared_uplinks(self) -> dict[int, FloatArray]:
        """Capacity of each child's uplink into the tiers where flows share some."""
        shared = self.whole.shared_uplinks
        return {t: capacity[self.children[t][1]] for t, capacity in shared.items()}

    def copy_of_rows(self, gpus: IntArray) -> IntArray:
        """Copy that each row of GPUs is on; shape (g,)."""
        return self.copy_of_gpu[gpus.reshape(len(gpus), -1)[:, 0]]

    def per_row(self, sizes: float | FloatArray, gpus: IntArray) -> FloatArray:
        """The size of its copy, for each row of GPUs; shape (g,)."""
        return np.asarray(sizes)[self.copy_of_rows(gpus)]

    def by_tier(
        self, tiers: IntArray, weights: FloatArray, gpus: IntArray
    ) -> FloatArray:
        """Sum of the weights of each tier on each copy; shape (T, K)."""
        key = tiers * self.number + self.copy_of_gpu[gpus]
        shape = self.num_tiers, self.number
        return weighted_counts(key, weights, shape[0] * shape[1]).reshape(shape)

    def total(self, values: FloatArray, gpus: IntArray) -> FloatArray:
        """Sum of the values of all GPUs of a copy, (..., g, n); shape (..., K)."""
        copy = self.copy_of_rows(gpus)
        found = np.zeros((*values.shape[:-2], self.number))
        starts = np.flatnonzero(np.diff(copy, prepend=-1)).tolist()
        for first, end in zip(starts, [*starts[1:], len(copy)], strict=True):
            part = values[..., first:end, :]
            found[..., copy[first]] = part.sum(axis=(-2, -1))
        return found

    def scaled(self, load: LinkLoad, factor: float | FloatArray) -> LinkLoad:
        """The load of so many rounds on each copy."""
        factors = np.asarray(factor)
        return LinkLoad(
            ((way, t), sent * factors[self.children[t][0]])
            for (way, t), sent in load.items()
        )


Priced = tuple[Cost, Copies]


class Batch(NamedTuple):
    """Communicators of one size that run the same collective, kind after kind."""

    collective: str
    kinds: IntArray  # (K,)
    size_bytes: FloatArray  # (K,): buffer of a rank
    members: IntArray  # (g, n)
    at: IntArray  # (g,): kind of each group, counted in the batch; ascending
    rows: IntArray  # (g,): which of its kind's communicators each is


class _Sent(NamedTuple):
    """Bytes a step over uplinks of one tier; arrays of one entry a run and uplink.

    ``child`` is the child domain of the machine that an uplink belongs to.
    """

    kind: IntArray
    child: IntArray
    up: FloatArray
    down: FloatArray


@dataclass(frozen=True, eq=False)
class KindTimes:
    """What kinds of groups cost on a placed network."""

    fabric: Fabric
    steps: FloatArray  # (kinds,): how often each runs in a step
    # (communicators,), s: one run of each communicator of each kind.
    group_seconds: list[FloatArray]
    # Kind of each copy of a call, one for each run, what these cost, and the copies.
    priced: list[tuple[IntArray, Cost, Copies]]

    def sent_by(self, kind: int) -> tuple[FloatArray, LinkLoad]:
        """The bytes of a kind in a step, as `Traffic` has them."""
        load = LinkLoad()
        for t, (sent, first) in self._by_kind.items():
            own = slice(first[kind], first[kind + 1])
            count = len(self.fabric.uplink_capacity[t])
            for way, sizes in (("up", sent.up), ("down", sent.down)):
                load[way, t] = weighted_counts(sent.child[own], sizes[own], count)
        return self._by_tier[kind], load

    @cached_property
    def _by_tier(self) -> FloatArray:
        """What each kind sends on each tier; shape (kinds, T)."""
        kind = np.concatenate([kinds for kinds, _, _ in self.priced])
        sent = [
            cost.traffic.bytes_by_tier * self.steps[kinds]
            for kinds, cost, _ in self.priced
        ]
        number = len(self.steps)
        total = [weighted_counts(kind, of, number) for of in np.concatenate(sent, 1)]
        return np.stack(total, axis=1)

    @cached_property
    def _by_kind(self) -> dict[int, tuple[_Sent, IntArray]]:
        """Entries of each tier in the order of kinds, and where those of each begin."""
        found = {}
        for t in self.fabric.scale_out_tiers:
            parts = []
            for kinds, cost, copies in self.priced:
                copy, child = copies.children[t]
                kind, load = kinds[copy], cost.traffic.load
                both = (load[way, t] * self.steps[kind] for way in ("up", "down"))
                parts.append((kind, child, *both))
            joined = [np.concatenate(values) for values in zip(*parts, strict=True)]
            order = np.argsort(joined[0], kind="stable")
            sent = _Sent(*(values[order] for values in joined))
            found[t] = sent, np.searchsorted(sent.kind, np.arange(len(self.steps) + 1))
        return found


def kind_times(network: PlacedNetwork, job: Job) -> KindTimes:
    """What each kind of a job's groups costs when no other runs.

    The machine has no links of its own between domains.
    """
    fabric, groups = network.fabric, job.groups
    steps = np.array([group.per_step for group in groups])
    seconds = [np.zeros(len(group.ranks)) for group in groups]
    times = KindTimes(fabric, steps, seconds, [])
    for batch in batches_of(job):
        gpus = network.gpu_of_rank[batch.members]
        price = _relayed if batch.collective == "relay" else _at_once
        cost, copies = price(fabric, gpus, batch, job.collectives)
        runs = copies.number // len(batch.kinds)
        _note_seconds(times, batch, cost.seconds.reshape(len(gpus), runs, -1))
        times.priced.append((np.repeat(batch.kinds, runs), cost, copies))
    return times


def _note_seconds(times: KindTimes, batch: Batch, seconds: FloatArray) -> None:
    """Note what each communicator takes, from that of its runs and messages."""
    starts = np.flatnonzero(np.diff(batch.at, prepend=-1)).tolist()
    ends = [*starts[1:], len(batch.at)]
    if seconds.shape[1] == 1:
        slowest = seconds[:, 0].max(axis=1)
    else:  # runs of a kind add up, in the order in which an array of each would
        own = [seconds[a:b, :, 0].T for a, b in zip(starts, ends, strict=True)]
        slowest = np.concatenate([np.sum([*runs], axis=0) for runs in own])
    for kind, a, b in zip(batch.kinds.tolist(), starts, ends, strict=True):
        times.group_seconds[kind][batch.rows[a:b]] = slowest[a:b]


@lru_cache(maxsize=8)  # many placements are priced of a few jobs
def batches_of(job: Job) -> tuple[Batch, ...]:
    """The communicators of all kinds, small ones first."""
    found: defaultdict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for kind, group in enumerate(job.groups):
        for row, ranks in enumerate(group.ranks):
            if len(ranks) > 1:
                found[len(ranks), group.collective].append((kind, row))
    batches = []
    for (size, collective), entries in sorted(found.items()):
        most = max(MEMBERS_AT_ONCE // size, 1)
        number_of = {kind: at // most for at, (kind, _) in enumerate(entries)}
        numbered = [(number_of[kind], (kind, row)) for kind, row in entries]
        for _, part in groupby(numbered, itemgetter(0)):
            batches.append(_batch(job, collective, [entry for _, entry in part]))
    return tuple(batches)


def _batch(job: Job, collective: str, entries: list[tuple[int, int]]) -> Batch:
    """The communicators of (kind, row)."""
    kind, rows = np.array(entries, dtype=np.int64).T
    kinds, at = np.unique(kind, return_inverse=True)
    sizes = np.array([job.groups[one].size_bytes for one in kinds.tolist()])
    members = np.array([job.groups[one].ranks[row] for one, row in entries])
    return Batch(collective, kinds, sizes, members, at, rows)


def _relayed(fabric: Fabric, gpus: IntArray, batch: Batch, _: Collectives) -> Priced:
    """The hops of relays, those of each row in turn; a copy for each hop of a kind."""
    hops = gpus.shape[1] - 1
    ends = np.stack((gpus[:, :-1], gpus[:, 1:]))
    copy = np.broadcast_to(batch.at[:, None] * hops + np.arange(hops), ends.shape)
    number = len(batch.kinds) * hops
    copies, place = Copies.holding(fabric, ends.ravel(), copy.ravel(), number)
    senders, receivers = place.reshape(2, -1)
    sizes = np.repeat(batch.size_bytes[batch.at], hops)
    on = PlacedNetwork(copies, np.arange(len(copies.gpu)))
    return on.send(senders, receivers, sizes), copies


def _at_once(
    fabric: Fabric, gpus: IntArray, batch: Batch, algorithms: Collectives
) -> Priced:
    """One run of every group; a copy for each kind."""
    copy, sizes = np.repeat(batch.at, gpus.shape[1]), batch.size_bytes
    copies, place = Copies.holding(fabric, gpus.ravel(), copy, len(batch.kinds))
    members = place.reshape(gpus.shape)
    on = PlacedNetwork(copies, np.arange(len(copies.gpu)))
    each = sizes[batch.at][:, None]
    return run_at_once(on, batch.collective, members, sizes, algorithms, each), copies


def run_at_once(
    network: Network,
    collective: str,
    members: IntArray,
    size_bytes: Any,
    algorithms: Collectives,
    of_message: Any,
) -> Cost:
    """The cost of one run of groups of the user's own, all members at once.

    ``size_bytes`` is of all groups or of each copy of the machine, ``of_message`` of
    all or of each row.
    """
    if collective == "all_to_all":
        return network.all_to_all(members, size_bytes)
    if collective == "send_recv":
        return network.send(members[:, :-1], members[:, 1:], of_message)
    if collective == "all_reduce":
        return network.all_reduce(members, size_bytes, algorithms.all_reduce)
    return network.gather(members, size_bytes)
