"""What ``placer place`` prints on a real terminal, and in a pipe."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

COMMAND = ["place", "-t", "dgx-h100-32", "-j", "quickstart", "--time-limit", "1"]
COLOUR = re.compile("\x1b\\[[0-9;]*m")
FULL = "\u2588"


def environment(**changed: str) -> dict[str, str]:
    left_out = ("COLUMNS", "NO_COLOR", "PYTHONIOENCODING")
    kept = {k: v for k, v in os.environ.items() if k not in left_out}
    return kept | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | changed


def on_terminal(width: int, **changed: str) -> str:
    """Standard output of the command on a terminal of ``width`` columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "placer", *COMMAND],
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env=environment(**changed),
    ) as process:
        os.close(slave)
        written = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not part:
                break
            written += part
    os.close(master)
    assert process.returncode == 0
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("width", [40, 80, 132])
def test_fits_the_terminal(width: int) -> None:
    """No line is wider than the terminal; there are colours, and bars with room."""
    text = on_terminal(width)
    lines = COLOUR.sub("", text).splitlines()
    assert max(map(len, lines)) <= width
    assert COLOUR.search(text)
    assert (FULL in text) == (width > 40)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("changed", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_none_are_wanted(changed: dict[str, str]) -> None:
    """NO_COLOR and a dumb terminal get no escape sequence."""
    assert "\x1b" not in on_terminal(80, **changed)


def test_a_pipe_is_plain(tmp_path: Path) -> None:
    """In a pipe: 80 columns whatever COLUMNS says, no colours, no bars."""
    path = tmp_path / "plan.json"
    run = subprocess.run(
        [sys.executable, "-m", "placer", *COMMAND, "-o", str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=environment(COLUMNS="200"),
    )
    assert "\x1b" not in run.stdout
    assert FULL not in run.stdout
    assert max(map(len, run.stdout.splitlines())) <= 80
    assert "\nnext\n  placer explain " in run.stdout or len(str(path)) > 70
