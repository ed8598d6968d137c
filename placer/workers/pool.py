"""An engine on the cores of this machine, one process each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from placer.base.errors import PlacerError
from placer.workers.engine import Run, Sequential, Stop, Task
from placer.workers.helpers import Helpers, NoHelpError

_POLL_S = 0.2

# In a helper: its task.
_at_work: list[Task] = []


@dataclass(frozen=True)
class Pool:
    """An engine of so many processes; with one, of none but this."""

    workers: int

    @contextmanager
    def opened(self, task: Task, stop: Stop) -> Iterator[Run]:
        """As `Engine.opened`; processes start with the second of the first points."""
        with Sequential().opened(task, stop) as alone, ExitStack() as stack:
            pools: list[_Pool] = []

            def run(points: Sequence[Any]) -> Iterator[tuple[int, Any]]:
                if self.workers <= 1 or (len(points) == 1 and not pools):
                    yield from alone(points)
                    return
                if not pools:
                    # Helpers are ended first, so that no thread waits for one.
                    threads = stack.enter_context(ThreadPoolExecutor(self.workers))
                    helpers = stack.enter_context(Helpers(_begin, task))
                    pools.append(_Pool(threads, helpers, stop))
                yield from pools[0].run(points)

            yield run


@dataclass(frozen=True)
class _Pool:
    """A thread a process, which waits for its answers."""

    threads: ThreadPoolExecutor
    helpers: Helpers
    stop: Stop

    def run(self, points: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Index and answer of every point, as they are done, until ``stop``."""
        index_of = {
            self.threads.submit(self.helpers.ask, self.stop, _answer, point): index
            for index, point in enumerate(points)
        }
        pending: set[Future[Any]] = set(index_of)
        while pending and not self.stop():
            done, pending = wait(pending, _POLL_S, FIRST_COMPLETED)
            for future in done:
                try:
                    yield index_of[future], future.result()
                except NoHelpError:
                    if _is_soon(self.stop):
                        return
                    hint = "for lack of memory? Try fewer workers"
                    raise PlacerError(f"a worker process ended, {hint}") from None
        for future in pending:
            future.cancel()


def _is_soon(stop: Stop) -> bool:
    """Whether a request to stop is there, or arrives right now.

    The signal that stops us may have ended a process, too.
    """
    for _ in range(10):
        if stop():
            return True
        time.sleep(_POLL_S / 10)
    return False


def _begin(task: Task) -> None:
    _at_work.append(task)


def _answer(point: Any) -> Any:
    return _at_work[-1].answer(point, lambda: False)
