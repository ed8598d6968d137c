"""Groups that share uplinks: every flow gets its fair part.

A group that drives ``q`` NICs in a domain has ``q`` flows on each of its hops, of
``1/q`` of the bytes each. On a shared link all flows run at the same rate (max-min
fair; Bertsekas and Gallager, *Data Networks*, 6.5), so groups with many flows are done
first and leave the link to the others. Bytes over capacity is a lower bound on when the
last is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Hops:
    """Hops of groups over the uplinks of one tier in one direction."""

    # group and link, (e,): group, and uplink, of every hop; groups ascend.
    group: IntArray
    link: IntArray

    @cached_property
    def first(self) -> IntArray:
        """The first hop of each group that has any."""
        return np.flatnonzero(np.diff(self.group, prepend=-1))

    def raise_to(self, values: FloatArray, of_group: FloatArray) -> None:
        """Raise each group's value to the largest of its hops."""
        if len(self.first):
            found = self.group[self.first]
            most = np.maximum.reduceat(values, self.first)
            of_group[found] = np.maximum(of_group[found], most)


Crossings = Sequence[tuple[Hops, FloatArray]]  # with the capacity of each link, B/s


class Flows(NamedTuple):
    """Flows of groups on each of their hops, and the steps in which they are done."""

    number: IntArray  # (g,)
    copy: IntArray  # (g,): copy of the machine; only groups of one share links
    # counts and widths, (steps, copies): numbers of flows on each copy, ascending, and
    # the bytes up to the next one; copies with fewer numbers have steps of no bytes at
    # the end.
    counts: FloatArray
    widths: FloatArray

    @classmethod
    def of(cls, flows: IntArray, copy: IntArray) -> Flows:
        """So many flows of groups on copies of a machine."""
        number = int(copy.max(initial=0)) + 1
        most = int(flows.max(initial=0)) + 1
        known = np.unique(copy * most + flows)
        of_copy, count = known // most, known % most
        first = np.searchsorted(of_copy, np.arange(number))
        step = np.arange(len(known)) - first[of_copy]
        shape = int(step.max(initial=-1)) + 1, number
        counts, widths = np.zeros(shape), np.zeros(shape)
        following = np.append(1 / count[1:], 0.0)
        following[np.append(of_copy[1:] != of_copy[:-1], True)] = 0.0
        counts[step, of_copy] = count
        widths[step, of_copy] = 1 / count - following
        return cls(flows, copy, counts, widths)


def fair_pace(crossings: Crossings, flows: Flows, alone: FloatArray) -> FloatArray:
    """Seconds that a byte on every hop of a group takes; shape (g,).

    ``alone`` ((g,), s/B): what a byte takes on one flow of the group if nobody else
    sends.

    Flows are done in the order of their bytes ``1/q``. While those of more than ``u``
    bytes run, a flow takes ``s_l(u) = max(alone, flows left on l / capacity of l)`` a
    byte on link ``l``. Between two bounds lies what a group takes: ``max over l of the
    integral of s_l(u) du``, if its other links never hold it back, and ``the integral
    of max over l of s_l(u) du``, if its rivals are everywhere as far as itself. The
    mean of both is taken. They are the same where all groups have as many flows:
    bytes over the capacity of the fullest link, or the NIC.
    """
    number, copy = flows.number, flows.copy
    together = np.zeros(len(number))
    by_hop = [np.zeros(len(hops.group)) for hops, _ in crossings]
    for count, width in zip(flows.counts, flows.widths, strict=True):
        runs = number <= count[copy]
        slowest = alone * runs
        for (hops, capacity), sums in zip(crossings, by_hop, strict=True):
            of_hop = number[hops.group] * runs[hops.group]
            left = np.bincount(hops.link, of_hop, len(capacity)) / capacity
            pace = np.maximum(left[hops.link], alone[hops.group]) * runs[hops.group]
            sums += width[copy[hops.group]] * pace
            hops.raise_to(pace, slowest)
        together += width[copy] * slowest
    apart = alone / number
    for (hops, _), sums in zip(crossings, by_hop, strict=True):
        hops.raise_to(sums, apart)
    mean: FloatArray = (apart + together) / 2
    return mean
