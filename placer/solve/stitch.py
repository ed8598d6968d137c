"""Stitch pipelines out of what fragmented domains can hold.

A replica is a chain of ``length`` units (one pipeline stage each, ``unit`` ranks that
stay in one leaf domain). Every leaf domain is cut into segments of consecutive stages;
going up the tree, a domain joins segments of its children into longer ones, at the
price of a hop of its tier, and exports the rest. Only *how many* segments of each
length a domain cuts, joins and exports is decided, as an integer program whose size
does not depend on the number of GPUs: leaves of one capacity under one parent share
their variables. Then the counts are dealt out to named domains.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from ortools.math_opt.python import mathopt

IntArray = npt.NDArray[np.int64]


class Kind(NamedTuple):
    """A sort of segment: its stages, and the joints inside (0 when not counted)."""

    length: int
    joints: int


class Piece(NamedTuple):
    """Stages of a segment that lie in one leaf domain.

    ``twin`` is the leaf of the second half of a stage cut in two, else ``leaf``.
    """

    leaf: int
    length: int
    twin: int


Segment = tuple[Piece, ...]


@dataclass(frozen=True, eq=False)
class Stitching:
    """The problem.

    Attributes
    ----------
    capacity : ndarray, shape (leaves,)
        Units each leaf domain can hold.
    parents : sequence of ndarray
        ``parents[i]`` gives the parent of each domain of level ``i``; level 0 is the
        leaves, the last level has one domain.
    joint_cost : sequence of float
        Price of a joint in a domain of level 1, 2, ...
    length : int
        Units of a replica.
    replicas : int
        Replicas wanted.
    shared_gain : float
        What it is worth that two replicas have a stage in the same leaf: their
        data-parallel rings then need not leave it there. Two segments cut from one leaf
        can share as many stages as the shorter has.
    most_joints : int or None
        Joints a replica may have; None for any number.
    spare_halves : ndarray, shape (leaves,)
        Half units each leaf has room for beside its units; two make a unit.
    half_cost : sequence of float
        Price of making a unit of two halves in a domain of level 1, 2, ...
    """

    capacity: IntArray
    parents: Sequence[IntArray]
    joint_cost: Sequence[float]
    length: int
    replicas: int
    shared_gain: float = 0.0
    most_joints: int | None = None
    spare_halves: IntArray | None = None
    half_cost: Sequence[float] = ()

    def kinds(self) -> list[Kind]:
        """All sorts of segments."""
        return [
            Kind(length, joints)
            for length in range(1, self.length + 1)
            for joints in range(min(self.most_joints or 0, length - 1) + 1)
        ]

    def join(self, first: Kind, second: Kind) -> Kind | None:
        """What two segments make, None when too long or with too many joints."""
        length = first.length + second.length
        if length > self.length:
            return None
        if self.most_joints is None:
            return Kind(length, 0)
        joints = first.joints + second.joints + 1
        return Kind(length, joints) if joints <= self.most_joints else None


Pair = tuple[Kind, Kind]


@dataclass(frozen=True, eq=False)
class _Counts:
    """Solution of the program.

    Attributes
    ----------
    splits : mapping
        (parent, capacity) of a leaf class -> how often a stretch is cut in two.
    joints : mapping
        (level, domain) -> how often two segments are joined.
    paired : mapping
        (level, domain) -> units made of two halves.
    """

    splits: dict[tuple[int, int], dict[tuple[int, int], int]]
    joints: dict[tuple[int, int], dict[Pair, int]]
    paired: dict[tuple[int, int], int]
    lower_bound: float
    proved: bool


@dataclass(frozen=True, eq=False)
class Stitched:
    """The answer.

    Attributes
    ----------
    replicas : list of Segment
        Pieces of every replica.
    lower_bound : float
        On the price of all joints.
    proved : bool
        Whether the program was solved to the end.
    """

    replicas: list[Segment]
    lower_bound: float
    proved: bool


def stitch(problem: Stitching, time_limit: float, seed: int) -> Stitched | None:
    """Replicas with the cheapest joints, None when none were found."""
    counts = _solve(problem, time_limit, seed)
    if counts is None:
        return None
    return Stitched(_deal(problem, counts), counts.lower_bound, counts.proved)


def _solve(problem: Stitching, time_limit: float, seed: int) -> _Counts | None:
    """Counts of the integer program, None without a solution."""
    model = mathopt.Model()
    program = _Program(model, problem)
    result = mathopt.solve(
        model,
        mathopt.SolverType.HIGHS,
        params=mathopt.SolveParameters(
            time_limit=timedelta(seconds=time_limit),
            random_seed=seed,
            relative_gap_tolerance=0.0,
        ),
    )
    if not result.has_primal_feasible_solution():
        return None
    value = result.variable_values()
    return _Counts(
        {key: _rounded(splits, value) for key, splits in program.splits.items()},
        {key: _rounded(joints, value) for key, joints in program.joints.items()},
        _rounded(program.paired, value),
        result.best_objective_bound(),
        result.termination.reason is mathopt.TerminationReason.OPTIMAL,
    )


Key = TypeVar("Key")
Variables = dict[Key, mathopt.Variable]


def _rounded(
    variables: dict[Key, mathopt.Variable], value: dict[mathopt.Variable, float]
) -> dict[Key, int]:
    """Integer values of the variables that are not zero."""
    rounded = {key: round(value[variable]) for key, variable in variables.items()}
    return {key: count for key, count in rounded.items() if count}


# Terms that add up to how many segments of each kind are at hand.
Supply = dict[Kind, list[mathopt.LinearTypes]]


class _Program:
    """Variables and balances of the integer program.

    Attributes
    ----------
    splits : dict
        (parent, capacity) -> {(a, b): stretches of a + b units cut into a and b}.
    joints : dict
        (level, domain) -> {(first, second): segments joined}.
    """

    def __init__(self, model: mathopt.Model, problem: Stitching) -> None:
        self.model = model
        self.problem = problem
        kinds = problem.kinds()
        self.pairs = [
            (first, second)
            for i, first in enumerate(kinds)
            for second in kinds[i:]
            if problem.join(first, second) is not None
        ]
        self.splits: dict[tuple[int, int], Variables[tuple[int, int]]] = {}
        self.joints: dict[tuple[int, int], Variables[Pair]] = {}
        self.paired: Variables[tuple[int, int]] = {}
        prices: list[mathopt.LinearTypes] = []
        supplies = self._leaf_supplies(prices)
        halves = self._leaf_halves()
        for level in range(1, len(problem.parents) + 1):
            halves = self._pair_level(level, halves, supplies, prices)
            supplies = self._join_level(level, supplies, prices)
        whole = [
            term
            for kind, terms in supplies.get(0, {}).items()
            if kind.length == problem.length
            for term in terms
        ]
        model.add_linear_constraint(mathopt.fast_sum(whole) >= problem.replicas)
        model.minimize(mathopt.fast_sum(prices))

    def _leaf_supplies(self, prices: list[mathopt.LinearTypes]) -> dict[int, Supply]:
        """Segments that the leaves of each parent can give.

        A leaf starts as one stretch of its capacity and is cut in two again and again,
        which reaches every partition of the capacity.
        """
        supplies: dict[int, Supply] = {}
        for (parent, capacity), leaves in sorted(_leaf_classes(self.problem).items()):
            splits = {
                (small, large): self.model.add_integer_variable(lb=0.0)
                for large in range(1, capacity)
                for small in range(1, min(large, capacity - large) + 1)
            }
            self.splits[parent, capacity] = splits
            gain = self.problem.shared_gain
            prices += [-gain * small * split for (small, _), split in splits.items()]
            supply = supplies.setdefault(parent, {})
            for length in range(1, capacity + 1):
                terms = _pieces(splits, length)
                if length == capacity:
                    terms.append(float(leaves))
                balance = mathopt.fast_sum(terms)
                self.model.add_linear_constraint(balance >= 0.0)
                if length <= self.problem.length:
                    supply.setdefault(Kind(length, 0), []).append(balance)
        return supplies

    def _join_level(
        self, level: int, inputs: dict[int, Supply], prices: list[mathopt.LinearTypes]
    ) -> dict[int, Supply]:
        """What the domains of a level leave over after their joints, by parent."""
        problem = self.problem
        outputs: dict[int, Supply] = {}
        for domain, supply in sorted(inputs.items()):
            joints = {
                pair: self.model.add_integer_variable(lb=0.0) for pair in self.pairs
            }
            self.joints[level, domain] = joints
            price = problem.joint_cost[level - 1]
            prices += [price * variable for variable in joints.values()]
            is_top = level == len(problem.parents)
            parent = 0 if is_top else int(problem.parents[level][domain])
            output = outputs.setdefault(parent, {})
            for kind, change in self._changes(joints).items():
                export = self.model.add_integer_variable(lb=0.0)
                balance = mathopt.fast_sum([*supply.get(kind, []), *change])
                self.model.add_linear_constraint(balance == export)
                output.setdefault(kind, []).append(export)
        return outputs

    def _leaf_halves(self) -> dict[int, list[mathopt.LinearTypes]]:
        """Spare halves of the leaves of each parent."""
        problem = self.problem
        if problem.spare_halves is None:
            return {}
        spare = np.bincount(problem.parents[0], problem.spare_halves)
        return {int(parent): [float(spare[parent])] for parent in np.flatnonzero(spare)}

    def _pair_level(
        self,
        level: int,
        halves: dict[int, list[mathopt.LinearTypes]],
        supplies: dict[int, Supply],
        prices: list[mathopt.LinearTypes],
    ) -> dict[int, list[mathopt.LinearTypes]]:
        """Make units of halves in each domain; the halves left over, by parent."""
        problem = self.problem
        left: dict[int, list[mathopt.LinearTypes]] = {}
        for domain, terms in sorted(halves.items()):
            paired = self.model.add_integer_variable(lb=0.0)
            self.paired[level, domain] = paired
            prices.append(problem.half_cost[level - 1] * paired)
            supply = supplies.setdefault(domain, {})
            supply.setdefault(Kind(1, 0), []).append(paired)
            rest = self.model.add_integer_variable(lb=0.0)
            self.model.add_linear_constraint(
                mathopt.fast_sum([*terms, -2.0 * paired]) == rest
            )
            is_top = level == len(problem.parents)
            parent = 0 if is_top else int(problem.parents[level][domain])
            left.setdefault(parent, []).append(rest)
        return left

    def _changes(self, joints: Variables[Pair]) -> Supply:
        """What joints add to and take from each kind."""
        changes: Supply = {kind: [] for kind in self.problem.kinds()}
        for (first, second), variable in joints.items():
            changes[first].append(-1.0 * variable)
            changes[second].append(-1.0 * variable)
            made = self.problem.join(first, second)
            if made is not None:
                changes[made].append(variable)
        return changes


def _leaf_classes(problem: Stitching) -> Counter[tuple[int, int]]:
    """Leaves of each (parent, capacity)."""
    return Counter(
        (int(parent), int(capacity))
        for parent, capacity in zip(problem.parents[0], problem.capacity, strict=True)
        if capacity
    )


def _pieces(
    splits: Variables[tuple[int, int]], length: int
) -> list[mathopt.LinearTypes]:
    """Stretches of one length that splits make, less those they cut."""
    terms: list[mathopt.LinearTypes] = []
    for (small, large), variable in splits.items():
        made = (small == length) + (large == length) - (small + large == length)
        if made:
            terms.append(float(made) * variable)
    return terms


def _deal(problem: Stitching, counts: _Counts) -> list[Segment]:
    """The counts dealt out to leaves in order: pieces of every replica."""
    pools: dict[int, dict[Kind, list[Segment]]] = {}
    halves = _halves_by_parent(problem)
    for (parent, capacity), splits in counts.splits.items():
        members = (problem.parents[0] == parent) & (problem.capacity == capacity)
        stretches = _cut(np.flatnonzero(members), capacity, splits)
        pool = pools.setdefault(parent, {})
        for length, leaves in stretches.items():
            segments: list[Segment] = [(Piece(leaf, length, leaf),) for leaf in leaves]
            pool.setdefault(Kind(length, 0), []).extend(segments)
    for level in range(1, len(problem.parents) + 1):
        merged: dict[int, dict[Kind, list[Segment]]] = {}
        is_top = level == len(problem.parents)
        halves_left: dict[int, list[int]] = {}
        for domain in sorted({*pools, *halves}):
            pool = pools.get(domain, {})
            spare = halves.get(domain, [])
            for _ in range(counts.paired.get((level, domain), 0)):
                twins = (Piece(spare.pop(), 1, spare.pop()),)
                pool.setdefault(Kind(1, 0), []).append(twins)
            _join(problem, pool, counts.joints.get((level, domain), {}))
            parent = 0 if is_top else int(problem.parents[level][domain])
            target = merged.setdefault(parent, {})
            for kind, segments in pool.items():
                target.setdefault(kind, []).extend(segments)
            halves_left.setdefault(parent, []).extend(spare)
        pools, halves = merged, halves_left
    whole = [
        segment
        for kind, segments in sorted(pools[0].items())
        if kind.length == problem.length
        for segment in segments
    ]
    return whole[: problem.replicas]


def _halves_by_parent(problem: Stitching) -> dict[int, list[int]]:
    """Leaves with a spare half, once a half, by parent."""
    halves: dict[int, list[int]] = {}
    if problem.spare_halves is not None:
        for leaf, spare in enumerate(problem.spare_halves):
            parent = int(problem.parents[0][leaf])
            halves.setdefault(parent, []).extend([leaf] * int(spare))
    return halves


def _cut(
    leaves: IntArray, capacity: int, splits: dict[tuple[int, int], int]
) -> dict[int, list[int]]:
    """Leaves of the stretches of each length, after the splits of their class."""
    stretches: defaultdict[int, list[int]] = defaultdict(list)
    stretches[capacity] = leaves.tolist()
    for (small, large), times in sorted(splits.items(), key=lambda item: -sum(item[0])):
        for _ in range(times):
            leaf = stretches[small + large].pop()
            stretches[small].append(leaf)
            stretches[large].append(leaf)
    return stretches


def _join(
    problem: Stitching, pool: dict[Kind, list[Segment]], joints: dict[Pair, int]
) -> None:
    """Apply a domain's joints to its pool, shortest results first."""
    for (first, second), times in sorted(
        joints.items(), key=lambda item: item[0][0].length + item[0][1].length
    ):
        made = problem.join(first, second)
        if made is None:
            continue
        for _ in range(times):
            segment = pool[first].pop() + pool[second].pop()
            pool.setdefault(made, []).append(segment)
