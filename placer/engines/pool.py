"""An engine on the cores of this machine, one process each."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from typing import TYPE_CHECKING, Any

from placer.engines.engine import Run, Sequential, Stop, Task
from placer.errors import PlacerError

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

_POLL_S = 0.2

# In a worker: its task, and whether it should stop.
_at_work: list[tuple[Task, Event]] = []


@dataclass(frozen=True)
class Pool:
    """An engine of so many processes; with one, of none but this."""

    workers: int

    @contextmanager
    def opened(self, task: Task, stop: Stop) -> Iterator[Run]:
        """As `Engine.opened`; processes start with the second of the first points."""
        with Sequential().opened(task, stop) as alone, ExitStack() as stack:
            pools: list[ProcessPoolExecutor] = []

            def run(points: Sequence[Any]) -> Iterator[tuple[int, Any]]:
                if self.workers <= 1 or (len(points) == 1 and not pools):
                    yield from alone(points)
                    return
                if not pools:
                    pools.append(stack.enter_context(_processes(self.workers, task)))
                yield from _run_in(pools[0], points, stop)

            yield run


@contextmanager
def _processes(workers: int, task: Task) -> Iterator[ProcessPoolExecutor]:
    """Processes that all have the task; at the end they are interrupted."""
    # Forking a process that has threads may lock up, so each starts afresh.
    context = get_context("spawn")
    interrupted = context.Event()
    with ProcessPoolExecutor(workers, context, _begin, (interrupted, task)) as pool:
        try:
            yield pool
        finally:
            interrupted.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _run_in(
    pool: ProcessPoolExecutor, points: Sequence[Any], stop: Stop
) -> Iterator[tuple[int, Any]]:
    """Index and answer of every point, as they are done."""
    # Processes start with their first point, and inherit what is blocked.
    with _ctrl_c_blocked():
        index_of = {pool.submit(_answer, p): index for index, p in enumerate(points)}
    try:
        for future in _done(set(index_of), stop):
            answer = future.result()
            if answer is not None:
                yield index_of[future], answer
    except BrokenProcessPool:
        if _is_soon(stop):  # the signal that stops us ended a process, too
            return
        hint = "for lack of memory? Try fewer --workers"
        raise PlacerError(f"a worker process ended, {hint}") from None


def _is_soon(stop: Stop) -> bool:
    """Whether a request to stop is there, or arrives right now."""
    for _ in range(10):
        if stop():
            return True
        time.sleep(_POLL_S / 10)
    return False


def _done(pending: set[Future[Any]], stop: Stop) -> Iterator[Future[Any]]:
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


def _begin(interrupted: Event, task: Task) -> None:
    """Prepare a worker, which ends with its parent."""
    _at_work.append((task, interrupted))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to answer
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _answer(point: Any) -> Any:
    task, interrupted = _at_work[-1]
    return task.answer(point, interrupted.is_set)
