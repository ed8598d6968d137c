"""Progress lines: silent at first, one line a better placement, plain in a pipe."""

import io
import json
import time
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from placer.cli.live import CountBar, LiveBar
from placer.cli.main import main
from placer.cli.progress import ProgressLines
from placer.solve.orders import solve_orders
from placer.solve.run.solution import Improvement

FIRST = Improvement(0.1, "given-order", 2.0, 0.0)
BETTER = Improvement(1.5, "nesting", 1.25, 1.0)


def test_a_short_search_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed by a search that ends within the delay."""
    with ProgressLines(60.0) as lines:
        lines(FIRST)
        lines(BETTER)
    assert capsys.readouterr().err == ""


def test_lines_after_the_delay(capsys: pytest.CaptureFixture[str]) -> None:
    """After the delay come a header, the best so far, and then each better one."""
    with ProgressLines(60.0, delay_s=0.0) as lines:
        lines(FIRST)
        lines._timer.join()
        lines(BETTER)
    head, *rows = capsys.readouterr().err.splitlines()
    assert head.split() == ["time", "value", "lower", "bound", "gap", "phase"]
    assert rows[-2].split() == ["*", "0.1s", "2", "-", "-", "given-order"]
    assert rows[-1].split() == ["*", "1.5s", "1.25", "1", "20.000%", "nesting"]


def test_nothing_after_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    """A search left behind prints no more once the lines are closed."""
    with ProgressLines(60.0, delay_s=0.0) as lines:
        lines._timer.join()
    lines(BETTER)
    assert "nesting" not in capsys.readouterr().err


class Terminal(io.StringIO):
    """A terminal, and what is to be seen on it: its last line may be taken back."""

    def isatty(self) -> bool:
        return True

    @property
    def seen(self) -> list[str]:
        return [line.split("\r\x1b[K")[-1] for line in self.getvalue().split("\n")]


def terminal_of(monkeypatch: pytest.MonkeyPatch, **environ: str) -> Terminal:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    for name, value in ({"TERM": "xterm", "COLUMNS": "80"} | environ).items():
        monkeypatch.setenv(name, value)
    return terminal


def test_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines stand above a bar of the time, as they are; it moves, and then is gone."""
    terminal = terminal_of(monkeypatch)
    with ProgressLines(0.5, delay_s=0.0) as lines:
        lines._timer.join()
        lines(Improvement(0.1, "[red]n[1-2] :smile:", 2.0, 0.0))
        assert isinstance(lines._bar, LiveBar)
        assert terminal.seen[-1] == f"[{'-' * 40}] 0:00:00"
        time.sleep(0.45)
        assert terminal.seen[-1].count("#") >= 10
    assert terminal.seen[-2].endswith("[red]n[1-2] :smile:")
    assert terminal.seen[-1] == ""


def test_count_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar of a sweep counts points, and then is gone."""
    terminal = terminal_of(monkeypatch)
    with CountBar() as done:
        done(3, 4)
        assert terminal.seen == [f"points [{'#' * 30}{'-' * 10}] 3/4"]
    assert terminal.seen == [""]


def test_bars_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar never wraps, for a wrapped line cannot be taken back."""
    terminal = terminal_of(monkeypatch, COLUMNS="30")
    with CountBar() as done:
        done(3, 4)
        assert terminal.seen == ["points [" + "#" * 21]


def test_no_bar_on_a_dumb_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that cannot take a line back gets plain lines."""
    terminal = terminal_of(monkeypatch, TERM="dumb")
    with ProgressLines(60.0, delay_s=0.0) as lines:
        lines._timer.join()
    assert lines._bar is None
    assert "\r" not in terminal.getvalue()


@pytest.mark.parametrize("flags", [[], ["-v"]])
def test_verbose_tells_the_moves_of_local_search(
    flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``-v`` says how often each move was tried and helped, as the plan keeps it."""
    moves = {"exchange": {"tried": 1234, "helped": 5}}

    def counted(*args: Any) -> Any:
        problem, solution = solve_orders(*args)
        return problem, replace(solution, moves=moves)

    monkeypatch.setattr("placer.solve.orders.solve_orders", counted)
    args = ["place", "-t", "dgx-h100-4x8", "-j", "quickstart", "--format", "json"]
    run = CliRunner().invoke(main, [*args, *flags])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["solver"]["moves"] == moves
    told = "local search: exchange: tried 1,234 times, helped 5"
    assert (told in run.stderr) == bool(flags)
