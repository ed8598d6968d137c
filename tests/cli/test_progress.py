"""Progress lines: silent at first, one line a better placement, plain in a pipe."""

import json
from dataclasses import replace
from time import sleep

import pytest

from placer.cli import progress
from placer.cli.progress import ProgressLines
from placer.solve.orders import solve_orders
from placer.solve.run.budget import Pulse
from placer.solve.run.solution import Improvement
from tests.commands import run

FIRST = Improvement(0.1, "given-order", 2.0, 0.0)
BETTER = Improvement(1.5, "nesting", 1.25, 1.0)


def test_lines_after_the_delay(capsys):
    """After the delay come a header, the best so far, and then each better one."""
    with ProgressLines(60.0, delay_s=0.0) as lines:
        lines(FIRST)
        lines.opened.wait()
        lines(BETTER)
    head, *rows = capsys.readouterr().err.splitlines()
    assert head.split() == ["time", "value", "lower", "bound", "gap", "phase"]
    assert rows[-2].split() == ["*", "0.1s", "2", "-", "-", "given-order"]
    assert rows[-1].split() == ["*", "1.5s", "1.25", "1", "20.0%", "nesting"]


def test_a_log_hears_of_a_search_that_finds_nothing_new(capsys, monkeypatch):
    """Every ten seconds a line: how long, the best so far, what the search is at."""
    assert progress.TICK_S == 10.0
    monkeypatch.setattr(progress, "TICK_S", 0.05)
    pulse = Pulse("levelled", lower_bound=1.2)
    with ProgressLines(60.0, delay_s=0.0) as lines:
        lines(replace(BETTER, pulse=pulse))
        lines.opened.wait()
        sleep(0.2)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.split()[1:] == ["1.25", "1.2", "4.000%", "levelled"]


@pytest.mark.parametrize("flags", [[], ["-v"]])
def test_verbose_tells_the_moves_of_local_search(flags, monkeypatch):
    """``-v`` says how often each move was tried and helped, as the plan keeps it."""
    moves = {"exchange": {"tried": 1234, "helped": 5}}

    def counted(*args):
        problem, solution = solve_orders(*args)
        return problem, replace(solution, moves=moves)

    monkeypatch.setattr("placer.solve.orders.solve_orders", counted)
    args = ["place", "-t", "dgx-h100-4x8", "-j", "quickstart", "--format", "json"]
    found = run(*args, *flags)
    assert json.loads(found.stdout)["solver"]["moves"] == moves
    told = "local search: exchange: tried 1,234 times, helped 5"
    assert (told in found.stderr) == bool(flags)
