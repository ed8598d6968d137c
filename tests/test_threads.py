"""Threads that are left behind come to their end before the process does."""

import subprocess
import sys

SCRIPT = """
import sys, time
sys.path.insert(0, {root!r})
from placer.base.threads import start
start(lambda: (time.sleep(0.3), print("done", flush=True)), "left-behind")
"""


def test_the_end_of_the_process_waits_a_little():
    """What a thread that nobody waits for is at, it ends."""
    root = __file__.rsplit("/tests/", 1)[0]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(root=root)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "done\n"
