"""Ways of which one is taken, as what is not known decides, and how ways end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.formats.jobs.shell.conditions import HOLDS, Outcome

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place
    from placer.formats.jobs.shell.variables import Environment, State


_MOST_DEPTH, _MOST_FORKS = 90, 2000
# What there was where one way left a function or a loop, and what decides that.
Left = list[tuple["State", tuple[str, ...]]]


class ControlError(Exception):
    """What comes next is not done."""


class ExitError(ControlError):
    """The script ends here, as it takes variables that nobody sets for empty."""

    def __init__(self, place: Place, names: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.place = place
        self.names = names


class ReturnError(ControlError):
    """The function or the included file ends here."""

    def __init__(self, status: Outcome) -> None:
        super().__init__()
        self.status = status


class BreakError(ControlError):
    """A loop ends here, or with ``is_over`` false its pass; with those inside it."""

    def __init__(self, levels: int, *, is_over: bool) -> None:
        super().__init__()
        self.levels = levels
        self.is_over = is_over


class Frame:
    """A loop that is being followed, and what it had where one way left it."""

    def __init__(self) -> None:
        self.over: Left = []
        self.passes: Left = []

    def left(self, state: State, names: tuple[str, ...], *, is_over: bool) -> None:
        """Keep what there was where the loop, or only a pass of it, was left."""
        (self.over if is_over else self.passes).append((state, names))


class Ways:
    """Follows ways one after the other and joins what they leave.

    Attributes
    ----------
    loops : list of Frame
        Those that are being followed, one in another.
    returns : list of list
        Of functions and files, what there was where one way left them.
    doubts : list of tuple of str
        What decides the ways that are being followed.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.loops: list[Frame] = []
        self.returns: list[Left] = []
        self.doubts: list[tuple[str, ...]] = []
        self._absent: list[tuple[str, ...]] = []  # what nobody sets and leads here
        self._depth = 0
        self._forks = 0

    def fork(
        self, names: tuple[str, ...], ways: Sequence[Callable[[], Outcome]]
    ) -> Outcome:
        """Follow each of several ways of which one is taken, as ``names`` decide."""
        self._forks += len(ways)
        if self._forks > _MOST_FORKS:
            self._refuse("too many branches depend on what is not known")
        start = self.environment.kept()
        ended: list[tuple[State, Outcome]] = []
        errors: list[tuple[ControlError, State]] = []
        self.doubts.append(names)
        for way in ways:
            self.environment.restore(start)
            try:
                status = self.branch(HOLDS, way)
            except ControlError as error:
                state = self.environment.kept()
                errors.append((error, state))
                self._stash(error, state, names)
            else:
                ended.append((self.environment.kept(), status))
        self.doubts.pop()
        if not ended:
            on = [e for e in errors if not isinstance(e[0], ExitError)] or errors
            self.environment.restore(on[-1][1])
            raise on[-1][0]
        self.environment.merge([state for state, _ in ended], names)
        found = [status for _, status in ended]
        if all(not s.names and s.holds == found[0].holds for s in found):
            return Outcome(found[0].holds)
        causes = (*names, *(name for s in found for name in s.names))
        return Outcome(False, tuple(dict.fromkeys(causes)))

    def branch(self, outcome: Outcome, way: Callable[[], Outcome]) -> Outcome:
        """Follow what an outcome leads to."""
        self._absent.append(outcome.absent)
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            self._refuse("it is nested too deeply to be followed")
        try:
            return way()
        finally:
            self._absent.pop()
            self._depth -= 1

    def settle(self, states: Sequence[tuple[State, tuple[str, ...]]]) -> None:
        """Go on after ways that have ended before, as what is not known decides."""
        if states:
            names = dict.fromkeys(name for _, causes in states for name in causes)
            self.environment.merge(
                [self.environment.kept(), *(state for state, _ in states)], names
            )

    def is_sure(self) -> bool:
        """Whether it is known that the script comes here."""
        return not self.doubts

    def taken_for_empty(self) -> tuple[str, ...]:
        """The variables that nobody sets and that lead here."""
        return next((names for names in reversed(self._absent) if names), ())

    def _stash(self, error: ControlError, state: State, names: tuple[str, ...]) -> None:
        """Keep what a function or a loop has where one way leaves it."""
        if isinstance(error, ReturnError) and self.returns:
            self.returns[-1].append((state, names))
        if isinstance(error, BreakError) and error.levels <= len(self.loops):
            self.loops[-error.levels].left(state, names, is_over=error.is_over)

    def _refuse(self, message: str) -> None:
        raise InputError([Problem(message, self.environment.source)])
