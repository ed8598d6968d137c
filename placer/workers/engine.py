"""What an engine is, and the plainest one: this process, point after point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

Stop = Callable[[], bool]
# Yields index and answer of every point that is done, in any order; it may be called
# again with more points.
Run = Callable[[Sequence[Any]], Iterator[tuple[int, Any]]]


class Task(Protocol):
    """What all points share; it can be pickled."""

    def answer(self, point: Any, stop: Stop) -> Any:
        """What is found out about a point; None when ``stop`` cut it short."""


class Engine(Protocol):
    """Works out points; the answers do not depend on which engine does."""

    def opened(self, task: Task, stop: Stop) -> AbstractContextManager[Run]:
        """The engine at work, until the context ends.

        Once ``stop`` is true, points that are not done are left out.
        """


class Sequential:
    """An engine without processes of its own."""

    @contextmanager
    def opened(self, task: Task, stop: Stop) -> Iterator[Run]:
        """As `Engine.opened`."""

        def run(points: Sequence[Any]) -> Iterator[tuple[int, Any]]:
            for index, point in enumerate(points):
                answer = None if stop() else task.answer(point, stop)
                if answer is None:
                    return
                yield index, answer

        yield run
