"""The integer program of stitching: how many segments are cut, joined and handed on.

Its size does not depend on the number of GPUs: leaves of one capacity under one parent
share their columns. The counts are then dealt out to named leaves.
"""

from __future__ import annotations

from collections import Counter
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.construct.chains.segments import (
    HALF,
    Fragment,
    Kind,
    Pair,
    Segment,
    Stitched,
    Stitching,
)
from placer.solve.count.deal import Pool, outward
from placer.solve.count.engine import solve
from placer.solve.count.model import ONE, Program, Term

if TYPE_CHECKING:
    from placer.solve.count.engine import Limits

# Terms that add up to how many segments of each kind are at hand.
Supply = dict[Kind, list[Term]]
Pools = dict[int, Pool[Kind, Segment]]


def stitch_at_once(problem: Stitching, limits: Limits) -> Stitched | None:
    """Replicas with the cheapest joints, None when none were found."""
    counted = _Counted(problem)
    answer = solve(counted.program, limits)
    if answer.counts is None:
        return None
    replicas = counted.deal(answer.counts)
    price = sum(map(mul, answer.counts, counted.program.price))
    ended = answer.is_proved, answer.cut_short
    return Stitched(replicas, price, answer.bound, *ended)


class _Counted:
    """Columns and rows of one problem, and what their counts mean.

    Attributes
    ----------
    cuts : dict
        (parent, capacity) -> {(a, b): column of stretches of a + b units cut into a and
        b}.
    joints : dict
        (level, domain) -> {(first, second): column of segments joined}.
    """

    def __init__(self, problem: Stitching) -> None:
        self.program, self.problem = Program(), problem
        self.pairs = problem.pairs()
        self.cuts: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
        self.joints: dict[tuple[int, int], dict[Pair, int]] = {}
        supplies = self._leaf_supplies()
        for level in range(1, len(problem.parents) + 1):
            supplies = self._join_level(level, supplies)
        if problem.most_halved is not None:
            halved = [
                Term(own[HALF, HALF])
                for own in self.joints.values()
                if (HALF, HALF) in own
            ]
            self.program.row(halved, most=problem.most_halved)
        whole = [
            term
            for kind, terms in supplies.get(0, {}).items()
            if kind.length == problem.length
            for term in terms
        ]
        self.program.row(whole, least=problem.replicas)

    def _leaf_supplies(self) -> dict[int, Supply]:
        """Segments and halves that the leaves of each parent can give.

        A leaf starts as one stretch of its capacity and is cut in two again and again,
        which reaches every partition of the capacity.
        """
        supplies: dict[int, Supply] = {}
        for (parent, capacity), leaves in sorted(_leaf_classes(self.problem).items()):
            gain = self.problem.shared_gain
            cuts = {
                (small, large): self.program.column(price=-gain * small)
                for large in range(1, capacity)
                for small in range(1, min(large, capacity - large) + 1)
            }
            self.cuts[parent, capacity] = cuts
            supply = supplies.setdefault(parent, {})
            for length in range(1, capacity + 1):
                terms = _stretches(cuts, length)
                if length == capacity:
                    terms.append(Term(ONE, leaves))
                self.program.row(terms, least=0)
                if length <= self.problem.length:
                    supply.setdefault(Kind(length, 0), []).extend(terms)
        for parent, pool in _halves(self.problem).items():
            supplies.setdefault(parent, {})[HALF] = [Term(ONE, len(pool[HALF]))]
        return supplies

    def _pair_halves(self, level: int, inputs: dict[int, Supply]) -> None:
        """Units made of two halves in each domain of a level."""
        for domain, supply in sorted(inputs.items()):
            if HALF not in supply:
                continue
            price = self.problem.joint_price(level, (HALF, HALF))
            pairs, rest = self.program.column(price=price), self.program.column()
            self.joints[level, domain] = {(HALF, HALF): pairs}
            terms = [*supply[HALF], Term(pairs, -2), Term(rest, -1)]
            self.program.row(terms, least=0, most=0)
            supply.setdefault(Kind(1, 0), []).append(Term(pairs))
            supply[HALF] = [Term(rest)]

    def _join_level(self, level: int, inputs: dict[int, Supply]) -> dict[int, Supply]:
        """What the domains of a level leave over after their joints, by parent.

        A domain joins what it is given to what it has joined, one segment at a time.
        That reaches whatever joining in any other order does, at the same price.
        """
        problem, program = self.problem, self.program
        self._pair_halves(level, inputs)
        outputs: dict[int, Supply] = {}
        for domain, supply in sorted(inputs.items()):
            joints = {
                pair: program.column(price=problem.joint_price(level, pair))
                for pair in self.pairs
                if pair[0] in supply or pair[1] in supply
            }
            self.joints.setdefault((level, domain), {}).update(joints)
            output = outputs.setdefault(int(problem.parent(level)[domain]), {})
            if HALF in supply and problem.multiple(level) == 1:
                output.setdefault(HALF, []).extend(supply[HALF])
            for kind, change in self._changes(joints).items():
                balance = [*supply.get(kind, []), *change]
                if kind.length % problem.multiple(level):
                    program.row(balance, least=0)
                    continue
                export = program.column()
                program.row([*balance, Term(export, -1)], least=0, most=0)
                output.setdefault(kind, []).append(Term(export))
        return outputs

    def _changes(self, joints: dict[Pair, int]) -> Supply:
        """What joints add to and take from each kind."""
        changes: Supply = {kind: [] for kind in self.problem.kinds()}
        for pair, column in joints.items():
            for kind in pair:
                changes[kind].append(Term(column, -1))
            made = self.problem.join(*pair)
            if made is not None:
                changes[made].append(Term(column))
        return changes

    def deal(self, counts: list[int]) -> list[Segment]:
        """The counts dealt out to leaves in order: fragments of every replica."""
        problem = self.problem
        pools = _halves(problem)
        for (parent, capacity), cuts in self.cuts.items():
            members = (problem.parents[0] == parent) & (problem.capacity == capacity)
            stretches: Pool[int, int] = Pool()
            stretches[capacity].extend(np.flatnonzero(members).tolist())
            _cut(stretches, {pair: counts[column] for pair, column in cuts.items()})
            pool = pools.setdefault(parent, Pool())
            for length, leaves in stretches.items():
                pool[Kind(length, 0)] += ((Fragment(n, length, n),) for n in leaves)
        for level in range(1, len(problem.parents) + 1):
            for domain in sorted(pools):
                joints = self.joints[level, domain]
                times = {pair: counts[column] for pair, column in joints.items()}
                _join(problem, pools[domain], times)
            pools = outward(pools, problem.parent(level))
        whole = [
            segment
            for kind, segments in sorted(pools[0].items())
            if kind.length == problem.length
            for segment in segments
        ]
        return whole[: problem.replicas]


def _leaf_classes(problem: Stitching) -> Counter[tuple[int, int]]:
    """Leaves of each (parent, capacity)."""
    return Counter(
        (int(parent), int(capacity))
        for parent, capacity in zip(problem.parents[0], problem.capacity, strict=True)
        if capacity
    )


def _halves(problem: Stitching) -> Pools:
    """Leaves with a spare half, once a half, by parent."""
    pools: Pools = {}
    if problem.spare_halves is not None:
        for leaf in np.repeat(np.arange(len(problem.capacity)), problem.spare_halves):
            pool = pools.setdefault(int(problem.parents[0][leaf]), Pool())
            pool[HALF].append((Fragment(int(leaf), 0, int(leaf)),))
    return pools


def _stretches(cuts: dict[tuple[int, int], int], length: int) -> list[Term]:
    """Stretches of one length that cuts make, less those they cut."""
    terms = []
    for (small, large), column in cuts.items():
        made = (small == length) + (large == length) - (small + large == length)
        if made:
            terms.append(Term(column, made))
    return terms


def _cut(stretches: Pool[int, int], times: dict[tuple[int, int], int]) -> None:
    """Cut the stretches of a class of leaves, longest first."""
    for (small, large), count in sorted(times.items(), key=lambda item: -sum(item[0])):
        for _ in range(count):
            leaf = stretches[small + large].pop()
            stretches[small].append(leaf)
            stretches[large].append(leaf)


def _join(
    problem: Stitching, pool: Pool[Kind, Segment], times: dict[Pair, int]
) -> None:
    """Apply a domain's joints to its pool, shortest results first."""
    for (first, second), count in sorted(
        times.items(), key=lambda item: item[0][0].length + item[0][1].length
    ):
        made = problem.join(first, second)
        if made is None:
            continue
        for _ in range(count):
            left, right = pool[first].pop(), pool[second].pop()
            if first == HALF:
                left, right = (Fragment(left[0].leaf, 1, right[0].leaf),), ()
            pool[made].append(left + right)
