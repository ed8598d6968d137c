"""The integer program of stitching: how many segments are cut, joined and exported."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from ortools.math_opt.python import mathopt
from ortools.math_opt.solvers.gscip import gscip_pb2

from placer.solve.count.segments import Counts, Kind, Pair, Stitching

if TYPE_CHECKING:
    from placer.solve.run.budget import Budget


@dataclass(frozen=True)
class Limits:
    """How a program is solved, and when the engine is to end.

    Attributes
    ----------
    gap : float
        Relative difference from the bound that is good enough.
    nodes : int
        Of the branch and bound tree: a limit that does not depend on the clock.
    gscip : GScipParameters
        What SCIP is told beside.
    time_limit : float, s
    seed : int
    """

    gap: float
    nodes: int
    gscip: gscip_pb2.GScipParameters = field(default_factory=gscip_pb2.GScipParameters)
    time_limit: float = 60.0
    seed: int = 0

    def within(self, budget: Budget, seed: int) -> Limits:
        """The same within what is left of a budget."""
        seconds = 0.0 if budget.is_over() else budget.seconds_left
        return replace(self, time_limit=seconds, seed=seed)


# Small programs are solved to the end. Told to look for solutions rather than proofs,
# SCIP finds good ones of larger programs in a tenth of the time.
EXACT = Limits(gap=0.0, nodes=1000)
GOOD = Limits(
    gap=0.02,
    nodes=100,
    gscip=gscip_pb2.GScipParameters(
        emphasis=gscip_pb2.GScipParameters.Emphasis.PHASE_FEAS
    ),
)
# The same where one program has the whole machine.
SEARCHED = replace(GOOD, gap=0.0, nodes=500)


def solve_counts(problem: Stitching, limits: Limits) -> Counts | None:
    """Counts of the integer program, None without a solution."""
    model = mathopt.Model()
    program = _Program(model, problem)
    result = mathopt.solve(
        model,
        mathopt.SolverType.GSCIP,
        params=mathopt.SolveParameters(
            time_limit=timedelta(seconds=max(limits.time_limit, 0.0)),
            node_limit=limits.nodes,
            random_seed=limits.seed,
            relative_gap_tolerance=limits.gap,
            gscip=limits.gscip,
        ),
    )
    if not result.has_primal_feasible_solution():
        return None
    value = result.variable_values()
    return Counts(
        {key: _rounded(splits, value) for key, splits in program.splits.items()},
        {key: _rounded(joints, value) for key, joints in program.joints.items()},
        _rounded(program.paired, value),
        result.best_objective_bound(),
        result.termination.reason is mathopt.TerminationReason.OPTIMAL,
        result.termination.limit is mathopt.Limit.TIME,
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
        self.pairs = problem.pairs()
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
            prices += [
                problem.joint_price(level, pair) * variable
                for pair, variable in joints.items()
            ]
            is_top = level == len(problem.parents)
            parent = 0 if is_top else int(problem.parents[level][domain])
            output = outputs.setdefault(parent, {})
            for kind, change in self._changes(joints).items():
                balance = mathopt.fast_sum([*supply.get(kind, []), *change])
                if kind.length % problem.multiple(level):
                    self.model.add_linear_constraint(balance >= 0.0)
                    continue
                export = self.model.add_integer_variable(lb=0.0)
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
            if problem.multiple(level) == 1:
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
