"""Processes that help: answers, failures, and nothing left behind."""

import os
import pickle
import subprocess
import sys
import time
from math import factorial
from pathlib import Path

import pytest

from placer.base.threads import in_order
from placer.workers.helpers import Helpers, NoHelpError


def never():
    return False


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_answers_come_from_other_processes():
    """One process is used again, several work at a time, all end with the context."""
    with Helpers() as helpers:
        here = {os.getpid()}
        first = helpers.ask(never, os.getpid)
        assert helpers.ask(never, os.getpid) == first
        assert helpers.ask(never, factorial, 20) == factorial(20)
        both = set(
            in_order(lambda s: helpers.ask(never, _slowly, s), [0.5, 0.5], workers=2)
        )
        assert len(both | here) == 3
    assert not any(is_alive(pid) for pid in both)
    with pytest.raises(NoHelpError):
        helpers.ask(never, os.getpid)


def _slowly(seconds):
    time.sleep(seconds)
    return os.getpid()


def test_what_the_work_raises_and_whom_nobody_waits_for():
    """It is raised here, and the process goes on.

    A process that is not waited for is ended; so is one that cannot answer.
    """
    with Helpers() as helpers:
        with pytest.raises(ValueError, match="factorial"):
            helpers.ask(never, factorial, -1)
        assert helpers.ask(never, factorial, 3) == 6
        begin = time.monotonic()
        with pytest.raises(NoHelpError):
            helpers.ask(lambda: True, time.sleep, 60)
        assert time.monotonic() - begin < 10
        with pytest.raises(NoHelpError):
            helpers.ask(never, os._exit, 3)
        with pytest.raises(NoHelpError):
            helpers.ask(never, lambda: None)
        assert helpers.ask(never, factorial, 3) == 6


def test_no_interpreter_no_help(monkeypatch):
    """Where Python is embedded there is none to start."""
    monkeypatch.setattr(sys, "executable", "")
    with Helpers() as helpers, pytest.raises(NoHelpError):
        helpers.ask(never, os.getpid)


def test_a_killed_process_leaves_no_helpers(tmp_path):
    """Helpers end with the process that asks, in the middle of their work too."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, threading, time\n"
        f"sys.path.insert(0, {str(Path.cwd())!r})\n"
        "from placer.workers.helpers import Helpers\n"
        "helpers = Helpers()\n"
        "print(helpers.ask(lambda: False, os.getpid), flush=True)\n"
        "helpers.ask(lambda: False, time.sleep, 60)\n"
    )
    asks = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True
    )
    assert asks.stdout is not None
    with asks.stdout:
        pid = int(asks.stdout.readline())
        assert is_alive(pid)
        asks.kill()
        asks.wait()
    end = time.monotonic() + 20
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_alive(pid)


def test_nothing_is_said_when_nobody_reads_the_answer():
    """A process that asks may end between its request and the answer."""
    helper = subprocess.Popen(
        [sys.executable, "-c", "from placer.workers.helpers import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert helper.stdin is not None
    assert helper.stdout is not None
    assert helper.stderr is not None
    helper.stdout.close()
    with helper.stdin, helper.stderr:
        helper.stdin.write(pickle.dumps((factorial, (3,))))
        helper.stdin.flush()
        assert helper.stderr.read() == b""
        assert helper.wait() == 0
