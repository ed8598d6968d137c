"""A search in a thread: its answer, or the best it told when it does not end."""

from collections.abc import Callable
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from placer.base.errors import StoppedError
from placer.placement.placement import Placement
from placer.solve.run.budget import Budget, InTime, LeftBehind, Patience
from placer.solve.run.solution import Improvement, Progress, Solution, improvement_of

Stop = Callable[[], bool]


def told(value: float, bound: float = 0.0, reason: str = "interrupted") -> Improvement:
    placement = Placement(np.array([0]))
    solution = Solution(
        placement, "time", value, bound, "none", "test", reason, 0.0, False
    )
    return improvement_of(solution, ("tp", "cp", "ep", "pp", "dp"))


QUICK = Patience(interrupted=0.05, time_limit=0.05, look_after=0.01)


def never() -> bool:
    return False


def test_the_answer_of_a_search_that_ends() -> None:
    """A search that ends gives its own answer."""
    assert InTime(lambda _tell, _within: "answer", Budget(60.0)).run() == "answer"


def test_an_error_of_the_search_is_raised() -> None:
    """What the search raises is raised where it is waited for."""

    def fail(_tell: Progress, _within: Budget) -> str:
        raise LookupError("in the search")

    with pytest.raises(LookupError, match="in the search"):
        InTime(fail, Budget(60.0), patience=QUICK).run()


@pytest.mark.parametrize(
    ("time_limit", "stop", "reason"),
    [(60.0, lambda: True, "interrupted"), (0.0, never, "time-limit")],
)
def test_a_deaf_search_is_left_with_its_best(
    time_limit: float, stop: Stop, reason: str
) -> None:
    """Asked to stop or out of time, the best that was told is the result."""
    end = Event()

    def deaf(tell: Progress, _within: Budget) -> str:
        for incumbent in (told(3.0), told(2.0), told(2.0, bound=1.5), told(2.5)):
            tell(incumbent)
        end.wait()
        return "late"

    found = InTime(deaf, Budget(time_limit, stop), patience=QUICK).run()
    end.set()
    assert isinstance(found, LeftBehind)
    assert found.solution.value == 2.0
    assert found.solution.lower_bound == 1.5
    assert found.solution.stop_reason == reason
    assert not found.solution.deterministic
    assert found.solution.wall_s >= QUICK.look_after  # of all, not up to that best


def test_a_finished_search_keeps_its_reason() -> None:
    """What comes after the search, left behind, takes nothing from its proof."""
    end = Event()

    def proved(tell: Progress, _within: Budget) -> str:
        tell(told(2.0, bound=2.0, reason="proved"))
        end.wait()
        return "late"

    found = InTime(proved, Budget(60.0, lambda: True), patience=QUICK).run()
    end.set()
    assert isinstance(found, LeftBehind)
    assert found.solution.stop_reason == "proved"


def test_stopped_without_a_placement() -> None:
    """Without any placement there is nothing to return."""
    end = Event()

    def empty(_tell: Progress, _within: Budget) -> str:
        end.wait()
        return "late"

    with pytest.raises(StoppedError):
        InTime(empty, Budget(60.0, lambda: True), patience=QUICK).run()
    end.set()


def test_the_first_placement_is_waited_for() -> None:
    """Out of time without a placement, or stopped where one must be, it goes on."""
    begun = Event()

    def slow(_tell: Progress, _within: Budget) -> str:
        begun.wait(0.3)
        return "answer"

    assert InTime(slow, Budget(0.0), patience=QUICK).run() == "answer"
    begun.clear()
    patient = replace(QUICK, for_any=True)
    assert InTime(slow, Budget(60.0, lambda: True), patience=patient).run() == "answer"


def test_a_search_is_told_that_it_was_left() -> None:
    """A search left behind ends at its next look, and is no longer listened to."""
    ended, go_on = Event(), Event()
    seen: list[float] = []

    def deaf(tell: Progress, within: Budget) -> str:
        tell(told(2.0))
        go_on.wait()
        tell(told(1.0))
        if within.is_over():
            ended.set()
        return "late"

    stops = iter([False, True])
    found = InTime(
        deaf,
        Budget(60.0, lambda: next(stops, False)),
        lambda one: seen.append(one.value),
        QUICK,
    ).run()
    go_on.set()
    assert ended.wait(60)
    assert isinstance(found, LeftBehind)
    assert seen == [2.0]


def test_progress_hears_better_placements_only() -> None:
    """A bound that rises changes what is kept, not what the user is shown."""
    seen: list[float] = []

    def search(tell: Progress, _within: Budget) -> str:
        for incumbent in (told(3.0), told(3.0, bound=1.0), told(2.0), told(4.0)):
            tell(incumbent)
        return "answer"

    InTime(search, Budget(60.0), lambda one: seen.append(one.value)).run()
    assert seen == [3.0, 2.0]
