"""What ``placer place`` prints on a real terminal, and in a pipe."""

import os
import re
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.forked import Forked, command

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
