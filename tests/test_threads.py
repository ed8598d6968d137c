"""Threads that are left behind come to their end before the process does."""

import subprocess
import sys

SCRIPT = """
import sys, threading, time
sys.path.insert(0, {root!r})
from placer.base.threads import start
start(lambda: (time.sleep(0.3), print("done", flush=True)), "left-behind")
"""
CUT = """
def interrupted(thread):
    raise KeyboardInterrupt
threading.Thread.start = interrupted
try:
    start(print, "never begun")
except KeyboardInterrupt as error:
    kept = error  # and with it the thread
"""


def at_the_end_of(script):
    """What a process of its own says, all but a traceback."""
    root = __file__.rsplit("/tests/", 1)[0]
    run = subprocess.run(
        [sys.executable, "-c", script.format(root=root)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    return run.stdout


def test_the_end_of_the_process_waits_a_little():
    """What a thread that nobody waits for is at, it ends."""
    assert at_the_end_of(SCRIPT) == "done\n"


def test_a_signal_before_a_thread_begins_spares_those_that_run():
    """The thread that never began is not waited for, the other still is."""
    assert at_the_end_of(SCRIPT + CUT) == "done\n"
