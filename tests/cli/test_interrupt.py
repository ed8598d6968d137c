"""Ctrl-C and SIGTERM: the best plan so far is checked and written."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from placer.cli.interrupt import Interruptible

ROOT = Path(__file__).resolve().parents[2]

# The command with a search that has its plan at once and then goes on until it is told
# to stop; "deaf" ones never listen. It says on stderr when it has begun.
SLOW = """\
import signal, sys, time
sys.path.insert(0, {root!r})
signal.signal(signal.SIGINT, signal.default_int_handler)
import placer.solve.search as search
fast = search.solve

def slow(*args, stop, **options):
    found = fast(*args, stop=stop, **options)
    print("begun", file=sys.stderr, flush=True)
    while {deaf} or not stop():
        time.sleep(0.01)
    from dataclasses import replace
    return replace(found, stop_reason="interrupted", deterministic=False)

search.solve = slow
from placer.cli.main import main
main({args!r})
"""


def start(path: Path, *, deaf: bool = False) -> subprocess.Popen[str]:
    args = ["place", "-q", "-t", "dgx-h100-32", "-j", "quickstart", "-o", str(path)]
    script = SLOW.format(root=str(ROOT), deaf=deaf, args=args)
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    assert run.stderr.readline() == "begun\n"
    return run


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_first_signal_keeps_the_plan(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The best plan so far is written and the exit code names the signal."""
    path = tmp_path / "plan.json"
    run = start(path)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (code, "")
    assert "interrupted" in err
    assert "Traceback" not in err
    assert json.loads(path.read_text())["solver"]["stop_reason"] == "interrupted"


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_leaves_at_once(tmp_path: Path, second: signal.Signals) -> None:
    """A search that does not listen is left behind; no partial file remains."""
    path = tmp_path / "plan.json"
    run = start(path, deaf=True)
    run.send_signal(signal.SIGTERM)
    time.sleep(0.3)  # or the two could arrive as one
    assert run.poll() is None
    run.send_signal(second)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 143
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_handlers_are_put_back() -> None:
    """Handlers are those of before once the context ends, also after an error."""
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]

    def fail(_stop: Callable[[], bool]) -> None:
        raise LookupError("in the search")

    with (
        pytest.raises(LookupError, match="in the search"),
        Interruptible[None]() as interruptible,
    ):
        interruptible.run(fail)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_ignored_signals_stay_ignored() -> None:
    """Under nohup and the like a signal that is ignored does not stop the search."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interruptible[bool]() as interruptible:
            signal.raise_signal(signal.SIGTERM)
            assert interruptible.run(lambda stop: stop()) is False
        assert interruptible.exit_code == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_work_runs_beside_the_main_thread() -> None:
    """The main thread stays free to handle signals."""
    with Interruptible[str]() as interruptible:
        name = interruptible.run(lambda _stop: threading.current_thread().name)
    assert name != threading.main_thread().name
