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
    for boxes in _chains(problem, digits, {t: base[t] for t in tiers}):
        at_tier = dict(zip(tiers, boxes, strict=True))
        yield _nesting(problem, digits, base, at_tier)


def _base_boxes(
    colocation: Colocation, digits: tuple[Digit, ...]
) -> list[tuple[int, ...]] | None:
    """Box of the sets of each tier, None when sets are no boxes or not all alike."""
    if colocation.uniform_sizes() is None:
        return None
    boxes = [box_of(digits, row) for row in colocation.label]
    found = [box for box in boxes if box is not None]
    return found if len(found) == len(boxes) else None


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


def _chains(
    problem: Problem,
    digits: tuple[Digit, ...],
    base: Mapping[int, tuple[int, ...]],
) -> Iterator[list[IntArray]]:
    """A box of each boundary tier: the best way on from every innermost one.

    The cheapest first. ``base``: box of the sets of each boundary tier.
    """
    if not base:
        yield []
        return
    distance = [tier.distance for tier in problem.machine.tiers]
    single = [1] * len(distance)
    capacities = whole_sets(problem.machine, problem.capacity, single)
    of_tier, own = list[IntArray](), list[FloatArray]()
    for t, least in base.items():
        # A boundary that the distances do not see still costs a little to cross.
        step = max(distance[t + 1] - distance[t], 1e-6 * distance[t + 1])
        boxes = _boxes(digits, least, int(capacities[t].max()))
        cost = step * _cut(digits, boxes, problem.goal.weights)
        keep = np.argsort(cost, kind="stable")[: problem.params.compared]
        of_tier.append(boxes[keep])
        own.append(cost[keep])
    if not all(map(len, own)):  # some tier holds no box at all
        return
    total, following = own[-1], list[IntArray]()
    for i in range(len(own) - 2, -1, -1):
        divides = np.ones((len(own[i]), len(total)), dtype=bool)
        for inner, outer in zip(of_tier[i].T, of_tier[i + 1].T, strict=True):
            divides &= outer % inner[:, None] == 0
        way = np.where(divides, total[None, :], np.inf)
        best = np.argmin(way, axis=1)
        following.insert(0, best)
        total = own[i] + way[np.arange(len(best)), best]
    for first in np.argsort(total, kind="stable").tolist():
        if not np.isfinite(total[first]):
            return
        chain = [of_tier[0][first]]
        for boxes, best in zip(of_tier[1:], following, strict=True):
            first = int(best[first])
            chain.append(boxes[first])
        yield chain


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
