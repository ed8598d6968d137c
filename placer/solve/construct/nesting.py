"""Nestings: how much of each axis lies inside a domain of each tier.

A nesting gives every tier a box (values of each digit of the rank number); boxes of
inner tiers divide those of outer ones. On a machine of equal domains its hop cost has a
closed form that is a sum over tiers, so the best continuation of every inner box is
found by dynamic programming over tiers. An axis may be split between tiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.job.model import Job
from placer.solve.problem.axes import Digit, box_of, digits_of
from placer.solve.problem.colocation import Colocation
from placer.solve.problem.compiled import Problem
from placer.solve.tree.domains import whole_sets
from placer.topology.machine import Machine

# Boxes of one tier that are looked at: of more, the cheapest by their own tier.
BOXES = 2048


@dataclass(frozen=True, eq=False)
class Nesting:
    """One nesting."""

    units: tuple[int, ...]  # length T: ranks that a domain of each tier takes together
    sequence: IntArray  # (R,): ranks in nested order
    name: str  # for people, innermost tier first: ``tp4 cp2 pp8 | dp128``


def nestings(problem: Problem, colocation: Colocation) -> Iterator[Nesting]:
    """Nestings of the job, best estimate first.

    Parameters
    ----------
    colocation : Colocation
        What must stay together, perhaps less than in the problem.
    """
    digits = digits_of(problem.job.parallelism)
    if not digits:  # the axes are no boxes, or the job has one rank
        return
    base = _base_boxes(colocation, digits)
    if base is None:
        return
    tiers = _boundaries(problem.machine, problem.job)
    chains = _Chains(problem, digits, {t: base[t] for t in tiers})
    for boxes in chains.by_estimate():
        at_tier = dict(zip(tiers, boxes, strict=True))
        yield _nesting(problem, digits, base, at_tier)


def _base_boxes(
    colocation: Colocation, digits: tuple[Digit, ...]
) -> list[tuple[int, ...]] | None:
    """Box of the sets of each tier, None when sets are no boxes or not all alike."""
    if colocation.uniform_sizes() is None:
        return None
    boxes = [box_of(digits, row) for row in colocation.label]
    if any(box is None for box in boxes):
        return None
    return [box for box in boxes if box is not None]


def _boundaries(topology: Machine, job: Job) -> list[int]:
    """Tiers whose domains it costs something to leave, or that a requirement names."""
    tiers = topology.tiers
    required = set(job.require.values())

    def differs(t: int) -> bool:
        inner, outer = tiers[t], tiers[t + 1]
        return (
            inner.name in required
            or inner.distance != outer.distance
            or inner.bandwidth != outer.bandwidth
            or inner.latency != outer.latency
            or inner.scale_up != outer.scale_up
        )

    return [t for t in range(len(tiers) - 1) if differs(t)]


class _Chains:
    """All boxes of the boundary tiers and the best way on from each.

    ``base``: box of the sets of each boundary tier.
    """

    def __init__(
        self,
        problem: Problem,
        digits: tuple[Digit, ...],
        base: Mapping[int, tuple[int, ...]],
    ) -> None:
        distance = [tier.distance for tier in problem.machine.tiers]
        capacities = _largest_capacity(problem.machine, problem.capacity)
        self.boxes: list[IntArray] = []
        own = []
        for t, least in base.items():
            # A boundary that the distances do not see still costs a little to cross.
            step = max(distance[t + 1] - distance[t], 1e-6 * distance[t + 1])
            boxes = _boxes(digits, least, capacities[t])
            cost = step * _cut(digits, boxes, problem.goal.weights)
            keep = np.argsort(cost, kind="stable")[:BOXES]
            self.boxes.append(boxes[keep])
            own.append(cost[keep])
        self.estimate, self.following = self._continue(own)

    def _continue(self, own: list[FloatArray]) -> tuple[FloatArray, list[IntArray]]:
        """Cost from the innermost boundary on, and the best next box of each box."""
        following: list[IntArray] = []
        if not (own and all(map(len, own))):  # some tier holds no box at all
            return np.zeros(0), following
        total = own[-1]
        for i in range(len(own) - 2, -1, -1):
            divides = np.ones((len(self.boxes[i]), len(self.boxes[i + 1])), dtype=bool)
            for inner, outer in zip(self.boxes[i].T, self.boxes[i + 1].T, strict=True):
                divides &= outer[None, :] % inner[:, None] == 0
            way = np.where(divides, total[None, :], np.inf)
            best = np.argmin(way, axis=1)
            following.insert(0, best)
            total = own[i] + way[np.arange(len(best)), best]
        return total, following

    def by_estimate(self) -> Iterator[list[IntArray]]:
        """The chain from every innermost box, cheapest first."""
        if not self.boxes:
            yield []
            return
        for first in np.argsort(self.estimate, kind="stable"):
            if not np.isfinite(self.estimate[first]):
                return
            index = int(first)
            chain = [self.boxes[0][index]]
            for i, best in enumerate(self.following):
                index = int(best[index])
                chain.append(self.boxes[i + 1][index])
            yield chain


def _largest_capacity(topology: Machine, capacity_of_node: IntArray) -> list[int]:
    """Most ranks that one domain of each tier may hold."""
    single = [1] * len(topology.tiers)
    return [int(room.max()) for room in whole_sets(topology, capacity_of_node, single)]


def _boxes(digits: tuple[Digit, ...], base: tuple[int, ...], capacity: int) -> IntArray:
    """Boxes that hold the base box and fit the capacity; shape (boxes, digits)."""
    choices = [
        [value for value in range(low, digit.size + 1, low) if digit.size % value == 0]
        for digit, low in zip(digits, base, strict=True)
    ]
    found = np.array(list(product(*choices)), dtype=np.int64).reshape(-1, len(digits))
    fits: IntArray = found[found.prod(axis=1) <= capacity]
    return fits


def _cut(
    digits: tuple[Digit, ...], boxes: IntArray, weights: Mapping[str, float]
) -> FloatArray:
    """Weight of the edges between different boxes, per rank; shape (boxes,)."""
    total = np.zeros(len(boxes))
    for axis, weight in weights.items():
        mine = [
            i for i, digit in enumerate(digits) if axis in (digit.dense, digit.expert)
        ]
        size = int(np.prod([digits[i].size for i in mine], dtype=np.int64))
        if not weight or size == 1:
            continue
        if axis == "ep":
            inside = boxes[:, mine].prod(axis=1)
            total += weight * (size - inside) / 2
            continue
        runs = size / _run(digits, boxes, mine)
        closed = axis != "pp" and size > 2
        cut = np.where(runs > 1, runs, 0) if closed else runs - 1
        total += weight * cut / size
    return total


def _run(digits: tuple[Digit, ...], boxes: IntArray, mine: Sequence[int]) -> IntArray:
    """Neighbouring members of an axis that share a box: full digits, then a set."""
    run = np.ones(len(boxes), dtype=np.int64)
    full = np.ones(len(boxes), dtype=bool)
    for i in mine:
        run = np.where(full, run * boxes[:, i], run)
        full &= boxes[:, i] == digits[i].size
    return run


def _nesting(
    problem: Problem,
    digits: tuple[Digit, ...],
    base: Sequence[tuple[int, ...]],
    at_tier: Mapping[int, IntArray],
) -> Nesting:
    """The nesting whose boundary tiers have the given boxes."""
    weights, num_tiers = problem.goal.weights, len(problem.machine.tiers)
    current = np.ones(len(digits), dtype=np.int64)
    levels, units = [], []
    for t in range(num_tiers):
        box = np.lcm(np.array(base[t]), at_tier.get(t, current))
        if t == num_tiers - 1:
            box = np.array([digit.size for digit in digits])
        levels.append(box // current)
        current = box
        units.append(int(box.prod()))
    heaviest = sorted(
        range(len(digits)),
        key=lambda i: (
            -max(weights.get(digits[i].dense, 0), weights.get(digits[i].expert, 0))
        ),
    )
    factors = [(i, int(level[i])) for level in levels for i in heaviest if level[i] > 1]
    units[-1] = units[-2] if len(units) > 1 else 1
    has_experts = any(digit.expert == "ep" for digit in digits)
    name = " | ".join(
        " ".join(
            f"{digits[i].expert if has_experts else digits[i].dense}{level[i]}"
            for i in heaviest
            if level[i] > 1
        )
        for level in levels
        if (level > 1).any()
    )
    return Nesting(
        tuple(units), sequence_of(digits, factors, problem.job.world_size), name
    )


def sequence_of(
    digits: tuple[Digit, ...], factors: list[tuple[int, int]], world: int
) -> IntArray:
    """Ranks in nested order; shape (R,).

    ``factors`` lists (digit, factor), innermost first; the factors of a digit multiply
    to its size and take its values in blocks of neighbours.
    """
    rest = np.arange(world, dtype=np.int64)
    rank = np.zeros(world, dtype=np.int64)
    inner = [1] * len(digits)
    for index, factor in factors:
        rank += rest % factor * inner[index] * digits[index].stride
        inner[index] *= factor
        rest //= factor
    return rank
