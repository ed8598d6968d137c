"""The bound on the hop cost of a job on a machine, without a search around it."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from placer.solve.bounds.hops.hop_cuts import HopCuts
from placer.solve.problem.params import Params


class CutBound(NamedTuple):
    """The bound, and the least weight between domains of each tier."""

    value: float
    cut_per_tier: tuple[float, ...]


def cut_bound(topology, job, incumbent=inf, params=None):
    """No placement has a smaller hop cost; it stops at that of a known one."""
    cuts = HopCuts.of(topology, job, params or Params())
    value = cuts.together(incumbent)
    return CutBound(value, tuple(map(cuts.least, range(len(topology.tiers)))))
