"""A search in a thread: its answer, or the best it told when it does not end."""

from threading import Event

import numpy as np
import pytest

from placer.base.errors import StoppedError
from placer.placement.placement import Placement
from placer.solve.run.budget import Budget, InTime, LeftBehind, Patience
from placer.solve.run.solution import Solution, improvement_of


def told(value, bound=0.0, reason="interrupted"):
    placement = Placement(np.array([0]))
    solution = Solution(
        placement, "time", value, bound, "none", "test", reason, 0.0, False
    )
    return improvement_of(solution, ("tp", "cp", "ep", "pp", "dp"))


QUICK = Patience(interrupted=0.05, time_limit=0.05, look_after=0.01)


def never():
    return False


@pytest.mark.parametrize(
    ("time_limit", "stop", "reason"),
    [(60.0, lambda: True, "interrupted"), (0.0, never, "time-limit")],
)
def test_a_deaf_search_is_left_with_its_best(time_limit, stop, reason):
    """Asked to stop or out of time, the best that was told is the result."""
    end = Event()

    def deaf(tell, _within):
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


def test_progress_hears_better_placements_only():
    """A bound that rises changes what is kept, not what the user is shown."""
    seen = []

    def search(tell, _within):
        for incumbent in (told(3.0), told(3.0, bound=1.0), told(2.0), told(4.0)):
            tell(incumbent)
        return "answer"

    InTime(search, Budget(60.0), lambda one: seen.append(one.value)).run()
    assert seen == [3.0, 2.0]


def test_nobody_leaves_what_would_have_to_be_done_again():
    """A search that is out of time is waited for while it concludes, and not after."""
    end = Event()

    def search(tell, _within):
        tell(told(2.0))
        with task.concluding():
            for _ in range(10):
                end.wait(QUICK.time_limit)
            concluded.append(not task._left.is_set())
        end.wait()

    concluded = []
    task = InTime(search, Budget(0.0), patience=QUICK)
    assert isinstance(task.run(), LeftBehind)
    end.set()
    assert concluded == [True]
    with pytest.raises(StoppedError), task.concluding():
        pass
