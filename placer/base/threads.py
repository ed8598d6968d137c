"""Threads that may be left behind, and that the end of the process waits for a little.

Native code that still runs when a process ends is torn down under its feet, and aborts.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from time import monotonic
from weakref import WeakSet

_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def granted_cores() -> int:
    """Cores that this process may use: by affinity, and by its cgroup's quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = _CGROUP_QUOTA.read_text().split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))


# Seconds that they get at the end, all together: a step of a search is mostly shorter,
# but not on a busy machine.
PATIENCE = 60.0

_started: WeakSet[Thread] = WeakSet()


def start(target: Callable[[], object], name: str) -> Thread:
    """A thread that runs ``target``, begun."""
    thread = Thread(target=target, name=name, daemon=True)
    _started.add(thread)
    thread.start()
    return thread


@atexit.register
def _wait() -> None:
    end = monotonic() + PATIENCE
    for thread in list(_started):
        if not thread.is_alive():  # or a signal came before it began
            continue
        thread.join(max(0.0, end - monotonic()))
