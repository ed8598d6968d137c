"""Transfers where each scale-up domain holds one run of consecutive ranks.

A node-contiguous launch on hosts cuts the ranks into runs. Ranks of a run are near one
another, all others far, so a run has a least time of its own, whatever the other runs
are:

    seconds(run)  =  max over its ranks of  max(near / NVLink, far / NIC) + waits

and the transfers take at least the ``T`` from which on hosts may hold runs that take no
longer, by prices (`priced_runs.py`).

By hand: four ranks, 0 -> 1 and 2 -> 3, hosts of two GPUs. On two hosts nothing is far;
with a third one nothing is gained. If 0 -> 2 and 1 -> 3 instead, two ranks on a host
are strangers, and all is far on any number of hosts. Shapes: F flows, R ranks, g ranks
of the longest run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.links import weighted_counts
from placer.solve.bounds.groups.priced_runs import (
    cheapest_runs,
    first_fitting,
    fitting_runs,
)
from placer.solve.bounds.network.best_network import best_of_problem

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric
    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RunTransfers:
    """The least time of every run.

    Attributes
    ----------
    seconds : ndarray, shape (g, R), s
        Of the run of ``row + 1`` ranks that starts at the rank of the column; infinite
        where there are not so many.
    gpus : ndarray, shape (N,)
        Of each domain that holds a run.
    """

    seconds: FloatArray
    gpus: IntArray

    @classmethod
    def of(
        cls, network: IdealNetwork, traffic: RankTraffic | None
    ) -> RunTransfers | None:
        """The runs of a launch; None where a scale-up domain may hold several."""
        tier = network.fabric.scale_up_tier
        if traffic is None or not network.in_runs or tier not in network.run_tiers:
            return None
        if tier == network.fabric.num_tiers - 1:
            return None
        room = network.capacities[tier]
        ranks = network.label.shape[1]
        longest = min(int(room.max()), ranks)
        ends = (traffic.senders, traffic.receivers)
        seconds = np.zeros((longest, ranks))
        for own, others in (ends, ends[::-1]):
            ports = _Ports.of(network.fabric, own, others, traffic, longest, ranks)
            np.maximum(seconds, ports.seconds(), out=seconds)
        return cls(seconds, room[room > 0])

    @cached_property
    def least_seconds(self) -> float:
        """Least seconds of all transfers, on as many hosts as there are."""
        return float(self._times[first_fitting(self._times, self.fitting)])

    def lengths(self) -> IntArray | None:
        """Lengths of runs with which transfers take little more; None if unknown."""
        later = self._times[self._times >= self.least_seconds].tolist()
        found = (self.fitting(seconds)[1] for seconds in later)
        return next((lengths for lengths in found if lengths is not None), None)

    @cached_property
    def _times(self) -> FloatArray:
        return np.unique(self.seconds[np.isfinite(self.seconds)])

    def fitting(self, seconds: float) -> tuple[bool, IntArray | None]:
        """Whether no run need take longer, False is certain; lengths of such runs."""
        allowed = (self.seconds <= seconds * (1 + ROUNDING)).T
        longest = allowed.shape[1]
        return fitting_runs(
            self.gpus,
            lambda price: cheapest_runs(np.where(allowed, price[:longest], np.inf)),
        )


def run_transfers(problem: Problem) -> RunTransfers | None:
    """Transfers where each scale-up domain holds a run; None where they do not."""
    return RunTransfers.of(best_of_problem(problem), problem.job.traffic)


def least_in_runs(
    network: IdealNetwork, traffic: RankTraffic, _params: Params, _budget: Budget
) -> float:
    """Least seconds where scale-up domains hold a run each; 0 elsewhere."""
    runs = RunTransfers.of(network, traffic)
    return 0.0 if runs is None else runs.least_seconds


@dataclass(frozen=True, eq=False)
class _Ports:
    """What all ranks send, or receive, by how far off in the sequence the others are.

    Attributes
    ----------
    size_bytes, messages : ndarray, shape (R, 2 g)
        Of the others up to ``column - g`` ranks further on, at most ``g - 1`` off.
    total_bytes, wait_s : ndarray, shape (R,)
        Of all others, and the latency of their messages if all are far.
    near_rate, rate : float, B/s
    more_s : float, s
        What a message waits longer when it leaves the domain.
    """

    size_bytes: FloatArray
    messages: FloatArray
    total_bytes: FloatArray
    wait_s: FloatArray
    near_rate: float
    rate: float
    more_s: float

    @classmethod
    def of(
        cls,
        fabric: Fabric,
        own: IntArray,
        others: IntArray,
        traffic: RankTraffic,
        longest: int,
        ranks: int,
    ) -> _Ports:
        """The ports of the ranks ``own``, at this end of each flow; both shape (F,)."""
        first_outer = fabric.scale_up_tier + 1
        inner, outer = np.split(fabric.latency, [first_outer])
        near_s, far_s = inner.min(initial=outer.min()), outer.min()
        size, off = traffic.size_bytes, others - own
        near = np.abs(off) < longest
        column = own[near] * 2 * longest + off[near] + longest
        cells = ranks * 2 * longest
        by_offset = [
            weighted_counts(column, values, cells).reshape(ranks, -1).cumsum(axis=1)
            for values in (size[near], np.ones(int(near.sum())))
        ]
        more_s = float(far_s - min(near_s, far_s))
        return cls(
            by_offset[0],
            by_offset[1],
            weighted_counts(own, size, ranks),
            weighted_counts(own, np.full(len(own), float(far_s)), ranks),
            float(fabric.bandwidth[:first_outer].max()),
            float(fabric.bandwidth[first_outer:].max()),
            more_s,
        )

    def seconds(self) -> FloatArray:
        """Least seconds of every run; shape (g, R)."""
        ranks, columns = self.size_bytes.shape
        longest = columns // 2
        found = np.full((longest, ranks), np.inf)
        for length in range(1, longest + 1):
            starts = ranks + 1 - length
            slowest = np.zeros(starts)
            for place in range(length):
                rank = slice(place, place + starts)
                first, last = longest - place, longest + length - 1 - place
                near = self.size_bytes[rank, last] - self.size_bytes[rank, first - 1]
                kept = self.messages[rank, last] - self.messages[rank, first - 1]
                far = self.total_bytes[rank] - near
                pace = np.maximum(near / self.near_rate, far / self.rate)
                waits = self.wait_s[rank] - kept * self.more_s
                np.maximum(slowest, pace + waits, out=slowest)
            found[length - 1, :starts] = slowest
        return found
