"""The step on the best links that groups may have, without the code of the search.

A domain holds as many of a group as it has room for, in whole sets where rules keep
ranks together. So a group needs the fullest domains of a tier, and in the emptiest of
``D`` domains it has no more than ``n / D`` members, nor than the ``D``-th fullest
holds. That says which tiers it must use, how many NICs its ring drives at the most, and
how often it leaves a domain. No operation is faster than on such links, and no step
is shorter when one takes longer. Of exchanges of experts nothing is known.

By hand: a ring of eight on nodes of four. It needs two, and has four NICs in each: a
pass of S bytes takes ``7/8 S`` over four NICs or NVLink, whichever is slower, and two
of its eight hops leave a node. Shapes: T tiers, g groups of n members, D domains.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.collectives import NVLS_HEADS, Route, all_reduces
from placer.cost.fabric import Fabric
from placer.cost.links import Cost
from placer.cost.network import Network
from placer.cost.step import StepModel
from placer.job.model import Job
from placer.placement.hop_bound import kept_together
from placer.topology.machine import Machine


def least_step(machine: Machine, job: Job) -> float:
    """Seconds that a step takes at the least on any placement; 0 for a workload."""
    if job.roles:
        return 0.0
    model = StepModel(machine, job)
    labels = [kept_together(machine, job, t) for t in range(len(machine.tiers) - 1)]
    one = np.zeros(job.world_size, dtype=np.int64)  # the outermost domain holds all
    return model.step_on(LeastLinks(model.fabric, [*labels, one])).step_time_s


class _Needs(NamedTuple):
    """What groups of one size need."""

    fewest: list[int]  # (T + 1,): GPUs, then domains of each tier
    # Members that scale-up domains may hold, the fullest first.
    held: IntArray
    used: int  # outermost tier that a group must use
    tied: bool  # whether rules keep each in a scale-up domain


@dataclass(frozen=True, eq=False)
class LeastLinks(Network):
    """What operations take at the least, all groups of a call alike."""

    fabric: Fabric
    labels: list[IntArray]  # (R,) each: set of each rank that a tier keeps whole
    _known: dict[bytes, _Needs] = field(default_factory=dict, repr=False)

    @property
    def _outer(self) -> int:
        """The first tier outside scale-up domains."""
        return self.fabric.scale_up_tier + 1

    def _needs(self, members: IntArray) -> _Needs:
        """What rows of ranks need, worked out once."""
        key = members.tobytes() + bytes(members.shape[1])
        if key in self._known:
            return self._known[key]
        machine, number = self.fabric.topology, members.shape[1]
        fewest, held, tied = [number], np.ones(1, dtype=np.int64), False
        room = inside = machine.gpus_of_node
        for t, label in enumerate(self.labels):
            if t > 0:
                around = machine.domain_around[t - 1]
                room, inside = (
                    np.bincount(around, of_child).astype(np.int64)
                    for of_child in (room, inside)
                )
            smallest = min(Counter(label.tolist()).values())
            of_set = max(max(Counter(row).values()) for row in label[members].tolist())
            inside = np.minimum(inside, of_set * (room // smallest))
            fullest = np.sort(inside)[::-1]
            short = int((fullest.cumsum() < number).sum())
            fewest.append(min(number, short + 1))
            if t + 1 == self._outer:
                held, tied = fullest, of_set == number
        fewest[-1] = 1
        used = max((t for t, least in enumerate(fewest) if least > 1), default=0)
        self._known[key] = _Needs(fewest, held, used, tied)
        return self._known[key]

    def _nics(self, members: IntArray, domains: IntArray) -> IntArray:
        """Most members in the emptiest of so many scale-up domains; shape (D,)."""
        held = self._needs(members).held
        most = held[np.minimum(domains, len(held)) - 1]
        return np.asarray(np.maximum(1, np.minimum(members.shape[1] // domains, most)))

    def gather(self, members: IntArray, size_bytes: float) -> Cost:
        """A reduce-scatter or all-gather around a ring."""
        number, needs = members.shape[1], self._needs(members)
        domains, bandwidth = needs.fewest[self._outer], self.fabric.bandwidth
        rate = float(bandwidth.max())
        if domains > 1:
            nic = float(bandwidth[max(needs.used, self._outer) :].max())
            nics = nic * int(self._nics(members, np.array([domains]))[0])
            # Several NICs in a domain have hops between their members as well.
            rate = max(nic, min(nics, float(bandwidth[: self._outer].max(initial=0.0))))
        elif needs.tied:
            used = min(needs.used, self._outer - 1)
            rate = float(bandwidth[used : self._outer].max())
        seconds = (number - 1) / number * size_bytes / rate
        return _alike(members, seconds + self._waits_s(number, needs.fewest))

    def _waits_s(self, number: int, fewest: list[int]) -> float:
        """Latency of the ``n - 1`` hops of a ring, the mean of all ``n``."""
        latency, domains = self.fabric.latency, fewest[self._outer]
        near = float(latency[: self._outer].min(initial=np.inf))
        if number == 1 or domains == 1:
            return (number - 1) * float(latency.min())
        if domains < number and near > latency[self._outer :].min():
            return (number - 1) * float(latency.min())
        # So many hops leave a domain of each tier for one further out.
        far_s, before = 0.0, 0.0
        for t in range(self._outer, len(latency)):
            here = float(latency[t:].min())
            far_s += (here - before) * fewest[t] * (fewest[t] > 1)
            before = here
        near_s = (number - domains) * near if domains < number else 0.0
        return (domains - 1) / domains * far_s + near_s

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> Cost:
        """The fastest form over any number of domains."""
        number, needs = members.shape[1], self._needs(members)
        pace, latency = 1 / self.fabric.bandwidth, self.fabric.latency
        fewest, in_racks = needs.fewest[self._outer], self.fabric.has_rack_switch
        domains = np.arange(fewest, 1 + (number if self.fabric.has_network else fewest))
        nics, auto = self._nics(members, domains), algorithm == "auto"
        near, far = (domains < number) + 0.0, domains > 1
        nic_s = _least(pace[max(self._outer, needs.used) :])
        route = Route(
            number,
            domains,
            np.where(far, nics, number),
            in_racks,
            near * _least(pace[: self._outer]),
            np.where(far, nic_s / nics, 0.0),
            near * _least(latency[: self._outer]),
            np.where(far, _least(latency[self._outer :]), 0.0),
        )
        forms, few = {**all_reduces(algorithm)}, 3 if auto else 1
        if auto and needs.tied and in_racks and number >= few and fewest == 1:
            # NCCL takes a rack's switch wherever it can.
            forms, route, far = {"nvls": forms["nvls"]}, route.rows(~far), far[~far]
        found = []
        if forms.pop("ring", None):
            found.append(2 * float(self.gather(members, size_bytes).seconds[0]))
        for name, form in forms.items():
            # Few members in a domain, or many, may have the smallest chunks.
            most = min(int(nics.max()), NVLS_HEADS) if name == "nvls" else few
            for heads in range(few, max(few, most) + 1):
                shown = np.where(far, np.minimum(heads, route.fewest), number)
                runs = shown >= few if name == "nvls" else shown > 0
                way = route._replace(fewest=shown).rows(runs)
                found += form(way, size_bytes).total.tolist()
        return _alike(members, min(found))

    def send(self, senders: IntArray, receivers: IntArray, size_bytes: float) -> Cost:
        """A message leaves all domains that can hold no two ranks of its row."""
        first, last = (ranks.reshape(len(ranks), -1) for ranks in (senders, receivers))
        closed = np.array_equal(first[:, 0], last[:, -1])
        members = first if closed else np.hstack((first, last[:, -1:]))
        fewest = self._needs(members).fewest
        apart = [t for t, least in enumerate(fewest) if least == members.shape[1]]
        seconds = self.fabric.least_message_s(max(apart, default=0), size_bytes)
        return Cost(np.full(senders.shape, seconds))

    def pass_on(self, members: IntArray, size_bytes: float) -> Cost:
        """Some message leaves every domain that cannot hold its row."""
        return _alike(
            members, self.fabric.least_message_s(self._needs(members).used, size_bytes)
        )

    def flows(self, *ends: Any, **_: Any) -> Cost:
        """Of messages to several ranks nothing is known."""
        return _alike(ends[0], 0.0)

    all_to_all = flows

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether a scale-up domain may hold each row."""
        return np.full(len(members), self._needs(members).fewest[self._outer] == 1)

    def speed(self, members: IntArray) -> FloatArray:
        """That of the slowest of as many GPUs, the fastest there are."""
        speed = self.fabric.speed_of_gpu
        slowest = 1.0 if speed is None else np.sort(speed)[-members.shape[1]]
        return np.full(len(members), slowest)


def _alike(members: IntArray, seconds: float) -> Cost:
    """Groups that all take so long."""
    return Cost(np.full(len(members), seconds))


def _least(values: FloatArray) -> float:
    """The least value; 0 where there is none."""
    return float(values.min()) if len(values) else 0.0
