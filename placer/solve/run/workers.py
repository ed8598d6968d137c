"""Independent pieces of work side by side, and their answers one after another.

Threads do: the engines that solve programs, and numpy within large arrays, let other
threads go on meanwhile. The answers do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

from placer.base.threads import start

Item = TypeVar("Item")
Answer = TypeVar("Answer")

WORKER_THREAD = "placer-worker"


def in_order(
    work: Callable[[Item], Answer], items: Sequence[Item], workers: int
) -> list[Answer]:
    """What ``work`` answers for each item, in the order of the items.

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
    threads = [start(run, WORKER_THREAD) for _ in range(others)]
    run()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [answers[index] for index in range(len(items))]
