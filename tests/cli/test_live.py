"""What moves on a terminal: it fits, follows its size, and leaves nothing behind."""

import os
import time

import pytest

from placer.cli.progress import CountBar, ProgressLines
from placer.solve.run.budget import Pulse
from placer.solve.run.solution import Improvement
from tests.cli.terminal import Terminal

PULSE = Pulse("annealed", 1.0)
FIRST = Improvement(0.1, "given-order", 2.0, 0.0, pulse=PULSE)
BETTER = Improvement(1.5, "[red]n[1-2] :smile:", 1.25, 1.0, pulse=PULSE)


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
        lines(BETTER)
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
    ("size", "later"),
    [
        ((200, 60), (60, 3)),
        ((80, 24), (25, 24)),
        ((60, 8), (120, 40)),
        ((41, 12), (1, 1)),
        ((30, 24), (40, 12)),
    ],
)
def test_it_fits_whatever_the_size_becomes(monkeypatch, size, later):
    """From the next drawing on no line is broken; at the end nothing is left."""
    with Terminal(*size).be_stderr(monkeypatch) as terminal:
        os.write(terminal.side, b"before\n")
        with ProgressLines(60.0, delay_s=0.0) as lines:
            lines(FIRST)
            lines(BETTER)
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
