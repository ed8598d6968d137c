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
Way = Callable[[], Outcome]


class Frame:
    """What a jump may end: a ``function`` or file, a ``loop`` or a ``pass`` of one.

    ``left``: what there was where one of several ways left it, and what decides that.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.left: list[tuple[State, tuple[str, ...]]] = []


class JumpError(Exception):
    """What comes next is not done: it goes on behind a frame, or the script ends.

    ``names``: variables that nobody sets and that are taken to be empty there.
    """

    def __init__(
        self,
        frame: Frame | None,
        place: Place,
        status: Outcome = HOLDS,
        names: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.frame = frame
        self.place = place
        self.status = status
        self.names = names


class Ways:
    """Follows ways one after the other and joins what they leave.

    ``frames``: those that are being followed, one in another. ``doubts``: what decides
    the ways that are being followed.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.frames: list[Frame] = []
        self.doubts: list[tuple[str, ...]] = []
        self._absent: list[tuple[str, ...]] = []  # what nobody sets and leads here
        self._depth = 0
        self._forks = 0

    def fork(self, names: tuple[str, ...], ways: Sequence[Way]) -> Outcome:
        """Follow each of several ways of which one is taken, as ``names`` decide."""
        self._forks += len(ways)
        if self._forks > _MOST_FORKS:
            self._refuse("too many branches depend on what is not known")
        start = self.environment.kept()
        ended: list[tuple[State, Outcome]] = []
        jumps: list[tuple[State, JumpError]] = []
        self.doubts.append(names)
        for way in ways:
            self.environment.restore(start)
            try:
                status = self.branch(HOLDS, way)
                ended.append((self.environment.kept(), status))
            except JumpError as jump:
                jumps.append((self.environment.kept(), jump))
                self._leave(jump, names)
        self.doubts.pop()
        if not ended:
            state, last = ([one for one in jumps if one[1].frame] or jumps)[-1]
            self.environment.restore(state)
            raise last
        self.environment.merge([state for state, _ in ended], names)
        found = [status for _, status in ended]
        if all(not s.names and s.holds == found[0].holds for s in found):
            return Outcome(found[0].holds)
        causes = (*names, *(name for s in found for name in s.names))
        return Outcome(False, tuple(dict.fromkeys(causes)))

    def _leave(self, jump: JumpError, names: tuple[str, ...]) -> None:
        """Keep what there is where one way leaves a frame."""
        if jump.frame is not None:
            jump.frame.left.append((self.environment.kept(), names))

    def within(self, kind: str, way: Way, outcome: Outcome = HOLDS) -> Outcome:
        """Follow what jumps may end, and go on behind it with what all ways left."""
        frame = Frame(kind)
        self.frames.append(frame)
        try:
            status = self.branch(outcome, way)
        except JumpError as jump:
            status = jump.status
            if jump.frame is not frame:
                if not frame.left:
                    raise
                state, names = frame.left[0]  # this way goes on
                self._leave(jump, names)
                self.environment.restore(state)
        finally:
            self.frames.pop()
        if not frame.left:
            return status
        causes = tuple(dict.fromkeys(n for _, names in frame.left for n in names))
        states = [self.environment.kept(), *(state for state, _ in frame.left)]
        self.environment.merge(states, causes)
        return Outcome(False, causes) if kind == "function" else status

    def apart(self, way: Way) -> Outcome:
        """Follow what runs in a shell of its own, whose end is not that of others."""
        frames, self.frames = self.frames, [Frame("function")]
        try:
            return self.branch(HOLDS, way)
        except JumpError:
            return Outcome(False, ("what runs in a shell of its own",))
        finally:
            self.frames = frames

    def frame(self, kind: str, level: int = 1) -> Frame | None:
        """The innermost frame of a kind, or as many levels out as there are."""
        found = [frame for frame in self.frames if frame.kind == kind]
        return found[-min(level, len(found))] if found else None

    def branch(self, outcome: Outcome, way: Way) -> Outcome:
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

    def causes(self) -> tuple[str, ...]:
        """What decides whether the script comes here; empty where it does."""
        return tuple(dict.fromkeys(name for names in self.doubts for name in names))

    def taken_for_empty(self) -> tuple[str, ...]:
        """The variables that nobody sets and that lead here."""
        return next((names for names in reversed(self._absent) if names), ())

    def _refuse(self, message: str) -> None:
        raise InputError([Problem(message, self.environment.source)])
