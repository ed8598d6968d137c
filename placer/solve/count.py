"""Programs on counts as plain data, and the engines that solve them.

A column says how often something is done or how many there are of it. A row bounds a
sum of terms. Whoever needs a program states its columns and rows and nothing else; an
engine solves it in one thread, within a limit of work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from threading import Event, Thread
from typing import TYPE_CHECKING, Literal, NamedTuple

from placer.base.loading import load
from placer.base.threads import LOOK_AFTER_S

if TYPE_CHECKING:
    from ortools.math_opt.model_pb2 import ModelProto
    from ortools.sat.python import cp_model

# Loaded when a program is solved: it takes longer than placing a small job.
CP_SAT = "ortools.sat.python.cp_model"
MATH_OPT = "ortools.math_opt.python.mathopt"


class Term(NamedTuple):
    """A column and how often it enters a sum."""

    column: int
    times: float = 1


class Row(NamedTuple):
    """A sum and what it must lie between."""

    times: dict[int, float]  # by column
    least: float
    most: float


@dataclass(eq=False)
class Program:
    """Whole numbers from 0 on, of the least total price."""

    most: list[float] = field(default_factory=list)  # of each column
    price: list[float] = field(default_factory=list)  # of one count of each column
    rows: list[Row] = field(default_factory=list)

    def column(self, most: float = inf, price: float = 0) -> int:
        """A new column."""
        self.most.append(most)
        self.price.append(price)
        return len(self.most) - 1

    def row(
        self, terms: Iterable[Term], least: float = -inf, most: float = inf
    ) -> None:
        """The sum of the terms lies between ``least`` and ``most``."""
        times: defaultdict[int, float] = defaultdict(float)
        for column, number in terms:
            times[column] += number
        self.rows.append(Row(dict(times), least, most))


@dataclass(frozen=True)
class EngineLimits:
    """Which engine solves a program, and when it is to end."""

    # CP-SAT's deterministic seconds, or nodes of the other's tree: the same on every
    # machine.
    work: float = 30.0
    seconds: float = inf  # s: by the clock
    # CP-SAT takes whole numbers only, but for prices, and columns with a limit. It is
    # sooner at a good solution, HiGHS at good ones of programs near their relaxation.
    engine: Literal["cp-sat", "highs"] = "cp-sat"


class Answer(NamedTuple):
    """What an engine ended with."""

    counts: list[int] | None  # of every column; None without a solution
    bound: float  # no solution costs less
    is_proved: bool  # whether the program was solved to the end


class Relaxed(NamedTuple):
    """A program with a solution, in any numbers."""

    value: float  # the least price
    taken: list[float]  # how often, of every column
    prices: list[float]  # of every row


def solve(program: Program, limits: EngineLimits) -> Answer:
    """The counts of the least price, the same every time unless the clock ends it."""
    return (_by_cp_sat if limits.engine == "cp-sat" else _by_tree)(program, limits)


def cp_sat(limits: EngineLimits) -> cp_model.CpSolver:
    """A solver that answers the same every time unless the clock ends it.

    It leaves signals alone: CP-SAT's own handler of SIGINT would take the place of the
    caller's, and leave none behind.
    """
    made: cp_model.CpSolver = load(CP_SAT).CpSolver()
    made.parameters.num_workers = 1
    made.parameters.max_deterministic_time = limits.work
    made.parameters.max_time_in_seconds = max(limits.seconds, 0.0)
    made.parameters.catch_sigint_signal = False
    return made


def solved(
    solver: cp_model.CpSolver, model: cp_model.CpModel, stop: Callable[[], bool]
) -> object:
    """The status after a search by CP-SAT that ends when ``stop`` is true."""
    ended = Event()

    def watch() -> None:
        # Called again until the solver has stopped.
        while not ended.wait(LOOK_AFTER_S):
            if stop():
                solver.stop_search()

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return solver.solve(model)
    finally:
        ended.set()
        watcher.join()


def _by_cp_sat(program: Program, limits: EngineLimits) -> Answer:
    cp_model = load(CP_SAT)
    model = cp_model.CpModel()
    columns = [model.new_int_var(0, int(most), "") for most in program.most]
    for times, least, most in program.rows:
        total = cp_model.LinearExpr.weighted_sum(
            [columns[column] for column in times], [int(n) for n in times.values()]
        )
        if least > -inf:
            model.add(total == int(least) if least == most else total >= int(least))
        if inf > most > least:
            model.add(total <= int(most))
    if any(program.price):
        is_whole = all(float(price).is_integer() for price in program.price)
        prices = [int(price) if is_whole else price for price in program.price]
        model.minimize(cp_model.LinearExpr.weighted_sum(columns, prices))
    solver = cp_sat(limits)
    status = solver.solve(model)
    is_proved = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    bound = solver.best_objective_bound
    if status == cp_model.UNKNOWN and not bound:  # it may know none, and tells 0
        pairs = zip(program.price, program.most, strict=True)
        bound = sum(min(price, 0) * most for price, most in pairs)
    return Answer(
        [solver.value(column) for column in columns] if found else None,
        bound,
        is_proved,
    )


def _by_tree(program: Program, limits: EngineLimits) -> Answer:
    mathopt = load(MATH_OPT)
    parameters = mathopt.SolveParameters(
        random_seed=1, node_limit=int(limits.work), relative_gap_tolerance=0.0
    )
    if limits.seconds < inf:
        parameters.time_limit = timedelta(seconds=max(limits.seconds, 0.0))
    model = mathopt.Model.from_model_proto(_as_proto(program))
    found = mathopt.solve(model, mathopt.SolverType.HIGHS, params=parameters)
    counts = None
    if found.has_primal_feasible_solution():
        values = found.variable_values()
        counts = [round(values[column]) for column in model.variables()]
    ended, reasons = found.termination, mathopt.TerminationReason
    return Answer(
        counts,
        ended.objective_bounds.dual_bound,
        ended.reason in (reasons.OPTIMAL, reasons.INFEASIBLE),
    )


def relaxed(program: Program) -> Relaxed:
    """The least price where counts need not be whole."""
    mathopt = load(MATH_OPT)
    model = mathopt.Model.from_model_proto(_as_proto(program, is_whole=False))
    found = mathopt.solve(model, mathopt.SolverType.HIGHS)
    return Relaxed(
        found.objective_value(),
        found.variable_values(model.variables()),
        found.dual_values(model.linear_constraints()),
    )


def _as_proto(program: Program, is_whole: bool = True) -> ModelProto:
    """The program as one message: call by call it takes eight times as long."""
    from ortools.math_opt.model_pb2 import ModelProto

    proto = ModelProto()
    columns, rows = proto.variables, proto.linear_constraints
    columns.ids.extend(range(len(program.most)))
    columns.lower_bounds.extend([0.0] * len(program.most))
    columns.upper_bounds.extend(program.most)
    columns.integers.extend([is_whole] * len(program.most))
    rows.ids.extend(range(len(program.rows)))
    rows.lower_bounds.extend(least for _, least, _ in program.rows)
    rows.upper_bounds.extend(most for _, _, most in program.rows)
    matrix, prices = proto.linear_constraint_matrix, proto.objective.linear_coefficients
    for number, (times, _, _) in enumerate(program.rows):
        there = sorted(column for column in times if times[column])
        matrix.row_ids.extend([number] * len(there))
        matrix.column_ids.extend(there)
        matrix.coefficients.extend([times[column] for column in there])
    priced = [column for column, price in enumerate(program.price) if price]
    prices.ids.extend(priced)
    prices.values.extend([program.price[column] for column in priced])
    return proto
