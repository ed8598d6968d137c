"""The one place that makes CP-SAT solvers."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

ROOT = Path(__file__).resolve().parents[3]
PLACE = "placer/solve/count/engine.py"

# A signal while each engine solves and one afterwards must reach the script's handler.
SCRIPT = """\
import os, signal, sys, time
from datetime import timedelta
sys.path.insert(0, {root!r})
from ortools.math_opt.python import mathopt
from ortools.sat.python import cp_model
from placer.solve.count.engine import Limits, cp_sat

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

    made = cp_sat(Limits(1.0))
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


def test_engines_leave_ctrl_c_to_the_caller() -> None:
    """The caller's handler answers while CP-SAT solves, and after each engine."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(root=str(ROOT))],
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (0, "2\n1\n"), run.stderr


def test_no_other_place_makes_a_solver() -> None:
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
def test_a_search_that_is_cut_short_claims_no_more_than_is_true(
    engine: Literal["cp-sat", "highs"], work: int
) -> None:
    """No time at all proves nothing: counts of a price below 0 are still to come."""
    program = Program()
    columns = [program.column(most=7, price=-n) for n in (3, 5, 8)]
    program.row([Term(c, n) for c, n in zip(columns, (2, 3, 5), strict=True)], most=9)
    whole = solve(program, Limits(100))
    assert whole.is_proved
    assert whole.bound == -15
    answer = solve(program, Limits(work, seconds=0.0, engine=engine))
    assert answer.bound <= whole.bound
    assert not answer.is_proved
