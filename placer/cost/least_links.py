"""The step on the best links that groups may have, without the code of the search.

A domain holds as many of a group as it has room for, in whole sets where rules keep
ranks together. So a group needs the fullest domains of a tier, and in the emptiest of
``D`` domains it has no more than ``n / D`` members, nor than the ``D``-th fullest
holds. That says which tiers it must use, how many NICs its ring drives at the most, and
how often it leaves a domain. No operation is faster than on such links, and no step
is shorter when one takes longer. In an exchange a domain that holds few members sends
the most, and each of them has a message for all others.

By hand: a ring of eight on nodes of four. It needs two, and has four NICs in each: a
pass of S bytes takes ``7/8 S`` over four NICs or NVLink, whichever is slower, and two
of its eight hops leave a node. Shapes: T tiers, g groups of n members, D domains.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.collectives import NVLS_HEADS, Route, all_reduces, share_sent
from placer.cost.exchange import KERNEL_SHARE
from placer.cost.fabric import Fabric
from placer.cost.links import Cost
from placer.cost.network import Network
from placer.cost.step import Step, StepModel
from placer.placement.hop_bound import kept_together, tied


class _Needs(NamedTuple):
    """What groups of one size need."""

    fewest: list[int]  # (T + 1,): GPUs, then domains of each tier
    # Members that scale-up domains may hold, the fullest first.
    held: IntArray
    most: list[int]  # (T,): members that a domain of each tier may hold
    used: int  # outermost tier that a group must use
    tied: bool  # whether rules keep each in a scale-up domain


@dataclass(frozen=True, eq=False)
class LeastLinks(Network):
    """What operations take at the least, all groups of a call alike."""

    fabric: Fabric
    labels: list[IntArray]  # (R,) each: set of each rank that a tier keeps whole
    runs: bool  # whether hosts hold consecutive ranks
    # Groups (g, n) that leave a scale-up domain, and the most members in one of theirs.
    limits: tuple[tuple[IntArray, int], ...] = ()
    _known: dict[bytes, _Needs] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, model: StepModel) -> LeastLinks:
        """What rules and the launcher leave."""
        job, machine = model.job, model.topology
        labels = [kept_together(machine, job, t) for t in range(len(machine.tiers) - 1)]
        by_hosts, gpus = job.launcher != "free", machine.gpus_of_node
        is_full = job.world_size == gpus.sum() and (gpus == gpus[0]).all()
        if by_hosts and is_full and not machine.node_tier:
            blocks = np.arange(job.world_size).reshape(-1, gpus[0])
            labels = [tied(label, blocks) for label in labels]
        # The outermost domain holds all.
        labels.append(np.zeros(job.world_size, dtype=np.int64))
        return cls(model.fabric, labels, by_hosts)

    def slow_steps(self, step: Step, *limits: tuple[IntArray, int]) -> list[Step]:
        """The step with each stage in turn as slow as where some groups are limited."""
        slow = step.model.step_on(replace(self, limits=limits))
        stages = range(step.model.job.parallelism.pp)
        return [step.with_stage_of(slow, stage) for stage in stages]

    @property
    def _outer(self) -> int:
        """The first tier outside scale-up domains."""
        return self.fabric.scale_up_tier + 1

    def _needs(self, members: IntArray) -> _Needs:
        """What rows of ranks need, worked out once."""
        key = members.tobytes() + bytes(members.shape[1])
        if key not in self._known:
            self._known[key] = self._worked_out(members)
        needs = self._known[key]
        few = [most for one, most in self.limits if np.array_equal(one, members)]
        if not few:
            return needs
        apart = [max(2, one) for one in needs.fewest[: self._outer + 1]]
        return needs._replace(
            fewest=[*apart, *needs.fewest[self._outer + 1 :]],
            held=np.minimum(needs.held, few[0]),
            used=max(needs.used, self._outer),
            tied=False,
        )

    def _worked_out(self, members: IntArray) -> _Needs:
        machine, number = self.fabric.topology, members.shape[1]
        in_turn = {0} if machine.gpu_index is None else set[int]()  # islands of hosts
        fewest, held, tied = [number], np.ones(1, dtype=np.int64), False
        most = list[int]()
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
            if self.runs and (t == machine.node_tier or t in in_turn):
                inside = np.minimum(inside, _most_in_runs(members, room))
            fullest = np.sort(inside)[::-1]
            short = int((fullest.cumsum() < number).sum())
            fewest.append(min(number, short + 1))
            most.append(int(fullest[0]))
            if t + 1 == self._outer:
                held, tied = fullest, of_set == number
        fewest[-1] = 1
        used = max((t for t, least in enumerate(fewest) if least > 1), default=0)
        return _Needs(fewest, held, [*most[:-1], number], used, tied)

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

    def all_to_all(self, members: IntArray, size_bytes: float, copies: int = 0) -> Cost:
        """Any number of members lie in the emptiest domain, or all in one."""
        number, needs = members.shape[1], self._needs(members)
        fewest, found = needs.fewest[self._outer], list[float]()
        if self.fabric.has_network:
            most = min(number // max(2, fewest), int(needs.held[0]))
            found = [
                sum(self.exchange_s(members, size_bytes, copies, here))
                for here in range(1, most + 1)
            ]
        if fewest == 1:
            whole = sum(self.exchange_s(members, size_bytes, copies, number))
            found = [whole] if needs.tied else [*found, whole]
        return _alike(members, min(found, default=inf))

    def exchange_s(
        self, members: IntArray, size_bytes: float, copies: int, here: int
    ) -> tuple[float, float]:
        """Least seconds of an all-to-all, and of its latency.

        Of groups of which some domain holds so many members.
        """
        number, needs, outer = members.shape[1], self._needs(members), self._outer
        pace, latency = 1 / self.fabric.bandwidth, self.fabric.latency
        near, far = size_bytes / number, self.sent_bytes(members, size_bytes, copies)
        if copies:
            near *= float(share_sent(np.array(number), copies)) / KERNEL_SHARE
        if here == number:
            each_s = near * pace[:outer] + latency[:outer]
            return _peers_s(each_s, needs.most, 1, here), 0.0
        near_s = _peers_s(near * pace[:outer], needs.most, 1, here)
        far_s = (number - here) * far * _least(pace[outer:])
        wait_s = _peers_s(latency[:outer], needs.most, 1, here)
        if not copies:
            wait_s += _peers_s(latency[outer:], needs.most[outer:], here, number)
        else:
            messages = max(1, needs.fewest[outer] - 1)
            wait_s += messages * _least(latency[outer:])
        return max(near_s, far_s), wait_s

    def sent_bytes(self, members: IntArray, size_bytes: float, copies: int) -> float:
        """Bytes from a member to each in other domains at the least."""
        domains = np.array(max(2, self._needs(members).fewest[self._outer]))
        share = float(share_sent(domains, copies)) if copies else 1.0
        return size_bytes / int(members.shape[1]) * share

    def flows(self, *ends: Any, **_: Any) -> Cost:
        """Of messages to several ranks nothing is known."""
        return _alike(ends[0], 0.0)

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether a scale-up domain may hold each row."""
        return np.full(len(members), self._needs(members).fewest[self._outer] == 1)

    def speed(self, members: IntArray) -> FloatArray:
        """That of the slowest of as many GPUs, the fastest there are."""
        speed = self.fabric.speed_of_gpu
        slowest = 1.0 if speed is None else np.sort(speed)[-members.shape[1]]
        return np.full(len(members), slowest)


def _peers_s(seconds: FloatArray, most: list[int], here: int, number: int) -> float:
    """Least seconds with the ``here``-th to the last peer, given those of each tier.

    No more than ``most`` members are so near, and the last tier holds all.
    """
    found = 0.0
    for t in range(len(seconds)):
        last = t == len(seconds) - 1
        near = number if last else min(max(most[t], here), number)
        found += (near - here) * float(seconds[t:].min())
        here = near
    return found


def _most_in_runs(members: IntArray, lengths: IntArray) -> IntArray:
    """Most members of a row among so many consecutive ranks; shape of ``lengths``."""
    most = np.zeros(len(lengths), dtype=np.int64)
    rows = np.sort(members, axis=1)
    for length in set(lengths.tolist()):
        near = [np.searchsorted(row, row + length) for row in rows]
        most[lengths == length] = (np.array(near) - np.arange(rows.shape[1])).max()
    return most


def _alike(members: IntArray, seconds: float) -> Cost:
    """Groups that all take so long."""
    return Cost(np.full(len(members), seconds))


def _least(values: FloatArray) -> float:
    """The least value; 0 where there is none."""
    return float(values.min()) if len(values) else 0.0
