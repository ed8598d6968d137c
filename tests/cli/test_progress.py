"""Progress: a line a better placement in a pipe; what moves on a terminal fits it."""

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from placer.cli import progress
from placer.cli.progress import CountBar, ProgressLines
from placer.solve.orders import solve_orders
from placer.solve.run.budget import Pulse
from placer.solve.run.solution import Improvement
from tests.cli.terminal import Terminal
from tests.commands import run
from tests.forked import Forked, command

FIRST = Improvement(0.1, "given-order", 2.0, 0.0)
BETTER = Improvement(1.5, "nesting", 1.25, 1.0)
ODD = replace(BETTER, phase="[red]n[1-2] :smile:", pulse=Pulse("annealed", 1.0))


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
        time.sleep(0.2)
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


@pytest.fixture
def terminal():
    with Terminal() as one:
        yield one


def soon(found):
    """Wait until something is so."""
    deadline = time.monotonic() + 10
    while not found():
        assert time.monotonic() < deadline


def shown(terminal, text):
    """The lines, once some text is among them."""
    soon(lambda: text in "\n".join(terminal.seen()))
    return terminal.seen()


def test_a_search_is_drawn_and_then_gone(terminal, monkeypatch):
    """Numbers, a clock and the method at work; at the end what was there."""
    terminal.be_stderr(monkeypatch)
    os.write(terminal.side, b"before\n")
    with ProgressLines(60.0, delay_s=0.0) as lines:
        lines(FIRST)
        lines(ODD)
        seen = shown(terminal, "at most")
    assert seen[0] == "before"
    assert seen[1].strip() == "step time 1.25 s, gap 20.0%, lower bound 1 s"
    assert seen[2].strip().startswith("0:00:0")
    assert seen[2].endswith("of 0:01:00 at most, now: annealed")
    assert terminal.seen() == ["before"]
    assert not terminal.is_broken


def fits(terminal):
    """Whether something arrives, and no line of it is too long."""
    terminal.is_broken, before = False, len(terminal.raw)
    terminal.seen()
    return len(terminal.raw) > before and not terminal.is_broken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "later"), [((200, 60), (60, 3)), ((60, 8), (120, 40)), ((41, 12), (1, 1))]
)
def test_it_fits_whatever_the_size_becomes(monkeypatch, size, later):
    """From the next drawing on no line is broken; at the end nothing is left."""
    with Terminal(*size).be_stderr(monkeypatch) as terminal:
        os.write(terminal.side, b"before\n")
        with ProgressLines(60.0, delay_s=0.0) as lines:
            lines(FIRST)
            lines(ODD)
            shown(terminal, "step time")
            terminal.resize(*later)
            soon(lambda: fits(terminal))
            assert len(terminal.seen()) <= max(size[1], later[1])
        assert terminal.seen() == ["before"]
        assert not terminal.is_broken


def test_count_of_points(terminal, monkeypatch):
    """The bar of a sweep counts points, never wraps, and then is gone."""
    terminal.be_stderr(monkeypatch)
    with CountBar() as done:
        done(3, 4)
        assert terminal.seen() == [f"points [{'#' * 30}{'-' * 10}] 3/4"]
        terminal.resize(30, 24)
        done(3, 4)
        assert terminal.seen() == ["points [" + "#" * 21]
    assert terminal.seen() == []


COMMAND = ["place", "-t", "node:2 gpu:8", "-j", "quickstart", "-v"]
COLOUR = re.compile("\x1b\\[[0-9;]*m")
FULL = "\u2588"


def environment(**changed):
    left_out = ("COLUMNS", "NO_COLOR", "PYTHONIOENCODING")
    kept = {k: v for k, v in os.environ.items() if k not in left_out}
    return kept | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | changed


def on_terminal(folder, width, **changed):
    """Standard output of the command on a terminal of ``width`` columns."""
    with Terminal(width, 40) as terminal:
        out, environ = Path(os.ttyname(terminal.side)), environment(**changed)
        run = Forked(command(*COMMAND), folder, out=out, environ=environ)
        while run.is_running():
            terminal.seen()
        terminal.seen()
        assert run.end()[0] == 0
        return terminal.raw.replace("\r\n", "\n")


@pytest.mark.parametrize("width", [40, 132])
def test_fits_the_terminal(tmp_path, width):
    """No line is wider than the terminal; there are colours, and bars with room."""
    text = on_terminal(tmp_path, width)
    lines = COLOUR.sub("", text).splitlines()
    assert max(map(len, lines)) <= width
    assert COLOUR.search(text)
    assert (FULL in text) == (width > 40)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("changed", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_none_are_wanted(tmp_path, changed):
    """NO_COLOR and a dumb terminal get no escape sequence."""
    assert "\x1b" not in on_terminal(tmp_path, 80, **changed)


def test_a_pipe_is_plain(tmp_path):
    """In a pipe: 80 columns whatever COLUMNS says, no colours, no bars."""
    path = tmp_path / "plan.json"
    script, environ = command(*COMMAND, "-o", str(path)), environment(COLUMNS="200")
    _, out, _ = Forked(script, tmp_path, environ=environ).end()
    assert "\x1b" not in out
    assert FULL not in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\nnext\n  placer emit " in out or len(str(path)) > 70
