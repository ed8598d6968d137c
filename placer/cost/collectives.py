"""Closed forms of the collectives, as NCCL runs them.

Symbols: n members in N scale-up domains, q members in the domain that has the fewest, S
bytes of the full buffer. Sources: NCCL 5067397c, ``src/graph/tuning.cc`` (steps and
latencies of each algorithm), ``src/graph/trees.cc``; what the forms leave out of NCCL's
own time model is said in ``docs/cost-model.md``. Every form gives the seconds that grow
with the buffer and those that do not, one entry a group; g groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# PAT reaches this share of a ring's bandwidth; a step of its trees takes the first, and
# every member the second share of a network step (NCCL: x 0.75; latency / 3.5 a level
# and 2.8 us a member where a network step takes 14 us).
PAT_BANDWIDTH = 0.75
PAT_LEVEL, PAT_MEMBER = 1 / 3.5, 2.8 / 14
# Share of NVLink's rate that a reducing switch reaches: NCCL's figure for Blackwell; it
# has 0.85 for Hopper. Going through it takes so many NVLink steps (25 us where a ring's
# step takes 3.4).
NVLS_EFFICIENCY = 0.74
NVLS_STEPS = 25 / 3.4


class Route(NamedTuple):
    """What groups of one size find on their way.

    Attributes
    ----------
    members : int
        n.
    domains, fewest, most : ndarray, shape (g,)
        N, and the members in the domain that has the fewest (q) and the most.
    inner_pace, outer_pace : ndarray, shape (g,), s/B
        Of the slowest hop inside a domain and between two, all NICs of the group and
        all groups together; 0 where the group has no such hop.
    inner_latency, outer_latency : ndarray, shape (g,), s
        Mean over such hops.
    """

    members: int
    domains: IntArray
    fewest: IntArray
    most: IntArray
    inner_pace: FloatArray
    outer_pace: FloatArray
    inner_latency: FloatArray
    outer_latency: FloatArray


class Seconds(NamedTuple):
    """Seconds of a collective: what grows with the buffer, and the rest; shape (g,)."""

    transfer: FloatArray
    latency: FloatArray

    @property
    def total(self) -> FloatArray:
        """Both together."""
        return self.transfer + self.latency

    def times(self, rounds: float) -> Seconds:
        """So many rounds of it."""
        return Seconds(self.transfer * rounds, self.latency * rounds)


def ring_pass(route: Route, size_bytes: float) -> Seconds:
    """One reduce-scatter or all-gather around a ring.

    Notes
    -----
    Every edge carries ``(n-1)/n S`` (Patarasuk and Yuan 2009, JPDC 69(2)); of ``n-1``
    steps ``N-1`` go between domains.
    """
    n, domains = route.members, route.domains
    pace = np.maximum(route.inner_pace, route.outer_pace)
    return Seconds(
        (n - 1) / n * size_bytes * pace,
        (domains - 1) * route.outer_latency + (n - domains) * route.inner_latency,
    )


def pat_pass(route: Route, size_bytes: float) -> Seconds:
    """One reduce-scatter or all-gather over parallel aggregated trees (PAT).

    Notes
    -----
    NCCL runs it only where every member has a domain of its own: ``log2 N / 3.5 + n /
    5`` network steps of latency, three quarters of the ring's bandwidth.
    """
    n = route.members
    levels = PAT_LEVEL * np.log2(route.domains) + PAT_MEMBER * n
    return Seconds(
        (n - 1) / n * size_bytes * route.outer_pace / PAT_BANDWIDTH,
        levels * route.outer_latency * (n > 1),
    )


def ring_all_reduce(route: Route, size_bytes: float) -> Seconds:
    """An all-reduce around a ring: reduce-scatter and all-gather.

    ``2 (n-1)/n S`` bytes an edge, ``2 (n-1)`` steps.
    """
    return ring_pass(route, size_bytes).times(2.0)


def tree_all_reduce(route: Route, size_bytes: float) -> Seconds:
    """An all-reduce over a double binary tree of domains, a chain inside each.

    Notes
    -----
    A domain is an inner vertex of one tree and a leaf of the other, each tree reducing
    and broadcasting half the buffer: ``2 S`` out of a domain, pipelined, and ``2 ((n/N
    - 1) inner + log2 N outer)`` of latency (Sanders, Speck and Traeff 2009, *Two-tree
    algorithms*, Parallel Computing 35(12)).
    """
    pace = np.maximum(route.inner_pace, route.outer_pace)
    chain = (route.members / route.domains - 1) * route.inner_latency
    levels = np.log2(route.domains) * route.outer_latency
    return Seconds(2.0 * size_bytes * pace, 2.0 * (chain + levels))


def nvls_all_reduce(route: Route, size_bytes: float) -> Seconds:
    """An all-reduce that the NVLink switch computes, and trees between domains.

    Notes
    -----
    The switch reads each member's buffer once and every member stores the share it is
    answerable for: ``(1 + 1/q) S`` out of a GPU (Klenk et al. 2020, *An in-network
    architecture for accelerating shared-memory multiprocessor collectives*, ISCA).
    Between domains as in a tree (NCCL's NVLSTree).
    """
    inside = (1 + 1 / route.fewest) * route.inner_pace / NVLS_EFFICIENCY
    levels = np.log2(route.domains) * route.outer_latency
    return Seconds(
        size_bytes * np.maximum(inside, 2.0 * route.outer_pace),
        NVLS_STEPS * route.inner_latency + 2.0 * levels,
    )


def hierarchical_all_reduce(route: Route, size_bytes: float) -> Seconds:
    """Reduce-scatter inside domains, ring all-reduce between, all-gather inside.

    The three follow each other; the middle one moves ``S/q`` on each of ``q`` NICs.
    """
    inside = (route.most - 1) / route.most * route.inner_pace
    between = (route.domains - 1) / route.domains * route.outer_pace
    steps = (route.most - 1) * route.inner_latency
    steps = steps + (route.domains - 1) * route.outer_latency
    return Seconds(2.0 * size_bytes * (inside + between), 2.0 * steps)


Form = Callable[[Route, float], Seconds]

ALL_REDUCES: Mapping[str, Form] = {
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "nvls": nvls_all_reduce,
    "hierarchical": hierarchical_all_reduce,
}
# What NCCL's tuner chooses from; the hierarchical form is run by frameworks.
TUNED_ALL_REDUCES = ("ring", "tree", "nvls")


def distinct_domains(domains: IntArray, top_k: int) -> FloatArray:
    """Expected number of domains that a token's ``top_k`` experts lie in.

    ``D (1 - (1 - 1/D)^k)`` for experts drawn uniformly over D domains.
    """
    found: FloatArray = domains * (1.0 - (1.0 - 1.0 / domains) ** top_k)
    return found
