"""A sweep on the cores of this machine, one process each."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from typing import TYPE_CHECKING

from placer.errors import PlacerError
from placer.sweep.point import Row, Task, row_of
from placer.sweep.run import Stop, sequential

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from placer.sweep.grid import Point

_POLL_S = 0.2

_interrupted: Event | None = None


@dataclass(frozen=True)
class Pool:
    """An engine of so many processes; with one, or for one point, of none but this."""

    workers: int

    def __call__(
        self, task: Task, points: Sequence[Point], stop: Stop
    ) -> Iterator[tuple[int, Row]]:
        """Index and row of every point, as they are done."""
        workers = min(self.workers, len(points))
        if workers <= 1:
            yield from sequential(task, points, stop)
            return
        # Forking a process that has threads may lock up, so each starts afresh.
        context = get_context("spawn")
        interrupted = context.Event()
        with ProcessPoolExecutor(workers, context, _begin, (interrupted,)) as pool:
            # Processes start with the first task, and inherit what is blocked.
            with _ctrl_c_blocked():
                index_of = {
                    pool.submit(_row_of, task, point): index
                    for index, point in enumerate(points)
                }
            try:
                for future in _done(set(index_of), stop):
                    row = future.result()
                    if row is not None:
                        yield index_of[future], row
            except BrokenProcessPool:
                if _is_soon(stop):  # the signal that stops us ended a process, too
                    return
                hint = "for lack of memory? Try fewer --workers"
                raise PlacerError(f"a process of the sweep ended, {hint}") from None
            finally:
                interrupted.set()
                pool.shutdown(wait=True, cancel_futures=True)


def _is_soon(stop: Stop) -> bool:
    """Whether a request to stop is there, or arrives right now."""
    for _ in range(10):
        if stop():
            return True
        time.sleep(_POLL_S / 10)
    return False


def _done(pending: set[Future[Row | None]], stop: Stop) -> Iterator[Future[Row | None]]:
    """Futures as they are done, until ``stop``."""
    while pending and not stop():
        done, pending = wait(pending, _POLL_S, FIRST_COMPLETED)
        yield from done


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Ctrl-C waits meanwhile, and never reaches processes that start here."""
    if sys.platform == "win32":  # has no such masks
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(interrupted: Event) -> None:
    """Prepare a worker, which ends with its parent."""
    global _interrupted
    _interrupted = interrupted
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to answer
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _row_of(task: Task, point: Point) -> Row | None:
    if _interrupted is None:
        return row_of(task, point)
    return row_of(task, point, _interrupted.is_set)
