"""Threads that are left behind come to their end before the process does."""

from threading import Barrier

import pytest

from placer.base.threads import in_order
from tests.commands import python

SCRIPT = """
import threading, time
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
    run = python("-c", script, check=True)
    assert run.stderr == ""
    return run.stdout


def test_the_end_of_the_process_waits_a_little():
    """What a thread that nobody waits for is at, it ends.

    One that a signal kept from beginning is not waited for, others still are.
    """
    assert at_the_end_of(SCRIPT) == "done\n"
    assert at_the_end_of(SCRIPT + CUT) == "done\n"


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_error_is_that_of_the_first_item_that_fails(workers):
    """The last of the first four fails first, by the clock."""
    began = Barrier(min(workers, 4), timeout=10.0)

    def work(item):
        if item < workers:
            began.wait()
        if item >= 1:
            raise ValueError(item)

    with pytest.raises(ValueError, match=r"^1$"):
        in_order(work, range(4), workers)
