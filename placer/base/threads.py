"""Threads that may be left behind, and independent pieces of work side by side.

Native code that still runs when a process ends is torn down under its feet, and aborts,
so the end of the process waits a little.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from time import monotonic
from typing import TypeVar
from weakref import WeakSet

Item = TypeVar("Item")
Answer = TypeVar("Answer")

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
# Seconds between two looks at whether an answer is still waited for.
LOOK_AFTER_S = 0.1
LEAVING = 0.2  # s, for a caller to let go of what it was answered

_started: WeakSet[Thread] = WeakSet()
_open: dict[Event, Thread] = {}  # searching calls of the library, and who made them


def start(target: Callable[[], object], name: str) -> Thread:
    """A thread that runs ``target``, begun."""
    thread = Thread(target=target, name=name, daemon=True)
    _started.add(thread)
    thread.start()
    return thread


@contextmanager
def awaited() -> Iterator[None]:
    """A context that the end of the process waits for, in whichever thread it is."""
    done = Event()
    _open[done] = current_thread()
    try:
        yield
    finally:
        del _open[done]
        done.set()


@atexit.register
def _wait() -> None:
    end = monotonic() + PATIENCE
    for done, caller in list(_open.items()):
        # Not in a process that a call was copied into.
        if caller.is_alive() and caller is not current_thread():
            done.wait(max(0.0, end - monotonic()))
            caller.join(LEAVING)  # native code is still on its stack
    for thread in list(_started):
        if not thread.is_alive():  # or a signal came before it began
            continue
        thread.join(max(0.0, end - monotonic()))


def in_order(
    work: Callable[[Item], Answer], items: Sequence[Item], workers: int
) -> list[Answer]:
    """What ``work`` answers for each item, in the order of the items.

    Engines that solve programs, and numpy within large arrays, let other threads go on
    meanwhile. The answers do not depend on the number of threads.

    ``work``: called once for each item, in this thread or another. It must not depend
    on the calls before it. ``workers``: threads at most, of which this one is the
    first. Raises what ``work`` raised for the first item that failed; items after it
    may be left out.
    """
    answers: dict[int, Answer] = {}
    errors: dict[int, BaseException] = {}
    todo = iter(enumerate(items))
    taking = Lock()

    def take() -> tuple[int, Item] | None:
        with taking:
            return None if errors else next(todo, None)

    def run() -> None:
        while (taken := take()) is not None:
            index, item = taken
            try:
                answers[index] = work(item)
            except BaseException as error:
                errors[index] = error

    others = min(workers, len(items)) - 1
    threads = [start(run, "placer-worker") for _ in range(others)]
    run()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [answers[index] for index in range(len(items))]
