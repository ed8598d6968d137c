"""Programs on counts by either engine, and the one place that makes solvers."""

import ast
import random
from itertools import product
from math import inf

import pytest

from placer.solve.count import EngineLimits, Program, Term, solve
from tests.commands import ROOT, python

PLACE = "placer/solve/count.py"

# A signal while each engine solves and one afterwards must reach the script's handler.
SCRIPT = """\
import os, signal, time
from ortools.math_opt.python import mathopt
from ortools.sat.python import cp_model
from placer.solve.count import EngineLimits, cp_sat

seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))

def by_cp_sat():
    model = cp_model.CpModel()
    x = [model.new_bool_var("") for _ in range(9)]
    model.add(sum(x) >= 5)
    model.minimize(sum(x))
    model.add_hint(x[0], 1)

    class Tell(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self):
            os.kill(os.getpid(), signal.SIGINT)

    made = cp_sat(EngineLimits(1.0))
    assert made.solve(model, Tell()) == cp_model.OPTIMAL

def by_scip():
    model = mathopt.Model()
    x = [model.add_binary_variable() for _ in range(9)]
    model.add_linear_constraint(mathopt.fast_sum(x) >= 5)
    model.minimize(mathopt.fast_sum(x))
    mathopt.solve(model, mathopt.SolverType.GSCIP)

for engine in (by_cp_sat, by_scip):
    seen.clear()
    engine()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
    print(len(seen))
"""


def random_program(rng):
    """Up to four columns of up to three, and some rows."""
    program = Program()
    columns = [
        program.column(most=rng.randint(0, 3), price=rng.randint(-3, 3))
        for _ in range(rng.randint(1, 4))
    ]
    for _ in range(rng.randint(0, 4)):
        chosen = rng.choices(columns, k=rng.randint(1, 4))
        terms = [Term(column, rng.choice((-2, -1, 1, 2, 3))) for column in chosen]
        least = rng.choice((-inf, rng.randint(-4, 4)))
        most = rng.choice((inf, least, max(least, rng.randint(-4, 4))))
        program.row(terms, least, inf if most == -inf else most)
    return program


def least_price(program):
    """The least price of counts that keep all rows, infinity without any."""
    every = product(*(range(int(most) + 1) for most in program.most))
    return min(
        (
            sum(n * price for n, price in zip(counts, program.price, strict=True))
            for counts in every
            if keeps(program, counts)
        ),
        default=inf,
    )


def keeps(program, counts):
    """Whether counts keep all rows."""
    return all(
        row.least <= sum(counts[c] * n for c, n in row.times.items()) <= row.most
        for row in program.rows
    )


@pytest.mark.parametrize("engine", ["cp-sat", "highs"])
def test_the_least_price(engine):
    """Both engines find counts of the least price, or that there are none."""
    found = 0
    for seed in range(60):
        program = random_program(random.Random(seed))
        answer = solve(program, EngineLimits(1000.0, engine=engine))
        best = least_price(program)
        assert (answer.counts is None) == (best == inf), seed
        if answer.counts is None:
            continue
        found += 1
        assert keeps(program, tuple(answer.counts)), seed
        pairs = zip(answer.counts, program.price, strict=True)
        assert sum(n * price for n, price in pairs) == best, seed
        assert answer.is_proved, seed
        assert answer.bound == pytest.approx(best), seed
    assert 20 < found < 60


def test_engines_leave_ctrl_c_to_the_caller():
    """The caller's handler answers while CP-SAT solves, and after each engine."""
    run = python("-c", SCRIPT)
    assert (run.returncode, run.stdout) == (0, "2\n1\n"), run.stderr


def test_no_other_place_makes_a_solver():
    """Nobody else calls CP-SAT's solver, nor a test: its own handler would stay."""
    makers = {
        str(path.relative_to(ROOT))
        for folder in ("placer", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if "CpSolver" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "CpSolver"
    }
    assert makers == {PLACE}


@pytest.mark.parametrize("engine", ["cp-sat", "highs"])
@pytest.mark.parametrize("work", [0, 1])
def test_a_search_that_is_cut_short_claims_no_more_than_is_true(engine, work):
    """No time at all proves nothing: counts of a price below 0 are still to come."""
    program = Program()
    columns = [program.column(most=7, price=-n) for n in (3, 5, 8)]
    program.row([Term(c, n) for c, n in zip(columns, (2, 3, 5), strict=True)], most=9)
    whole = solve(program, EngineLimits(100))
    assert whole.is_proved
    assert whole.bound == -15
    answer = solve(program, EngineLimits(work, seconds=0.0, engine=engine))
    assert answer.bound <= whole.bound
    assert not answer.is_proved
