"""Ways of which one is taken, as what is not known decides, how ways end, and loops.

Loops are followed pass by pass where their bounds are known. Where they are not, what
the body changes is unknown behind the loop and in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.formats.jobs.shell.conditions import HOLDS, Outcome
from placer.formats.jobs.shell.text import known, opens, roots, unknown

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place
    from placer.formats.jobs.shell.follow import Shell
    from placer.formats.jobs.shell.syntax import Count, Loop
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

    ``loops``: those that are being followed, one in another. ``returns``: of functions
    and files, what there was where one way left them. ``doubts``: what decides the ways
    that are being followed.
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


_MOST_PASSES, _MOST_PASSES_IN_ALL = 1000, 10_000
_MOST_TRIES = 6
_FILE_NAMES = re.compile(r"[*?]|\[.*\]")
_QUOTED = re.compile(r"[\"'\\$`]")


def follow_loop(shell: Shell, node: Loop) -> Outcome:
    """Follow ``for`` over words, ``while``, ``until`` and ``select``."""
    if node.name is None:
        return _Follower(shell, lambda: shell.follow(node.body)).run(
            lambda: _while(shell, node)
        )
    name = node.name
    words = list(shell.environment.arguments())
    names: tuple[str, ...] = (name.text,) if node.is_menu else ()
    if node.words is not None:
        words = [w for raw in node.words for w in shell.expander.words(raw)]
        names += tuple(
            raw.text
            for raw in node.words
            if _FILE_NAMES.search(raw.text) and not _QUOTED.search(raw.text)
        )
    for word in words:
        if opens(word.text) and not known(word.text):  # it may stand for several
            names += roots(word.text)
    follower = _Follower(shell, lambda: shell.follow(node.body))
    if names:
        causes = tuple(dict.fromkeys(names))

        def choose() -> None:
            shell.environment.assign(
                name.text, unknown(name.text, name.place, "", causes)
            )

        return follower.unknown(causes, choose)
    rest = iter(words)

    def following() -> Outcome:
        word = next(rest, None)
        if word is None:
            return Outcome(False)
        shell.environment.assign(name.text, word)
        return HOLDS

    return follower.run(following, is_counted=True)


def _while(shell: Shell, node: Loop) -> Outcome:
    outcome = shell.follow(node.condition)
    return outcome.negated() if node.until else outcome


def follow_count(shell: Shell, node: Count) -> Outcome:
    """Follow ``for (( first; condition; step ))``."""
    first, condition, step = node.parts

    def holds() -> Outcome:
        return shell.calculate(condition) if condition.text.strip() else HOLDS

    def body() -> Outcome:
        try:
            shell.follow(node.body)
        except BreakError as error:
            if error.is_over or error.levels > 1:
                raise
        frame = shell.ways.loops[-1]
        shell.ways.settle(frame.passes)
        frame.passes = []
        return shell.calculate(step)

    shell.calculate(first)
    return _Follower(shell, body).run(holds)


class _Follower:
    """Follows the passes of one loop."""

    def __init__(self, shell: Shell, body: Callable[[], Outcome]) -> None:
        self.shell = shell
        self.body = body
        self.frame = Frame()

    def run(
        self, condition: Callable[[], Outcome], *, is_counted: bool = False
    ) -> Outcome:
        """Follow passes as long as the condition holds.

        ``is_counted``: it ends by itself, however often it holds.
        """
        return self._in_frame(lambda: self._run(condition, is_counted))

    def unknown(self, names: tuple[str, ...], choose: Callable[[], None]) -> Outcome:
        """Follow a loop of which it is not known how often it runs."""

        def first() -> Outcome:
            choose()
            return HOLDS

        return self._in_frame(lambda: self._blurred(names, first))

    def _in_frame(self, way: Callable[[], Outcome]) -> Outcome:
        self.shell.ways.loops.append(self.frame)
        try:
            return way()
        except BreakError as error:  # of a loop around this one
            raise BreakError(error.levels - 1, is_over=error.is_over) from None
        finally:
            self.shell.ways.loops.pop()

    def _run(self, condition: Callable[[], Outcome], is_counted: bool) -> Outcome:
        shell, count = self.shell, 0
        before = shell.environment.kept()
        while True:
            outcome = condition()
            if not (outcome.names or outcome.holds):
                break
            names = outcome.names
            shell.passes += 1
            many = count >= _MOST_PASSES and not is_counted
            if many or shell.passes > _MOST_PASSES_IN_ALL:
                names = ("a loop of very many passes",)
            if names:
                return self._blurred(names, condition)
            if self._pass(outcome):
                break
            count += 1
            # Where nothing changes, what ends it is outside the script.
            if not is_counted and before.is_same(shell.environment.state):
                break
            if count < 2:
                before = shell.environment.kept()
        shell.ways.settle(self.frame.over)
        return HOLDS

    def _pass(self, outcome: Outcome) -> bool:
        """Follow the body once; whether the loop is over."""
        is_over = False
        try:
            self.shell.ways.branch(outcome, self.body)
        except BreakError as error:
            if error.levels > 1:
                raise
            is_over = error.is_over
        passes, self.frame.passes = self.frame.passes, []
        if is_over and passes:  # one way goes on
            (state, names), *passes = passes
            self.frame.left(self.shell.environment.kept(), names, is_over=True)
            self.shell.environment.restore(state)
            is_over = False
        self.shell.ways.settle(passes)
        return is_over

    def _blurred(
        self, names: tuple[str, ...], condition: Callable[[], Outcome]
    ) -> Outcome:
        """Take all that the body changes for unknown, in it and behind it."""
        shell = self.shell
        start = shell.environment.kept()
        commands, over = len(shell.script.commands), len(self.frame.over)
        for _ in range(_MOST_TRIES):
            before = shell.environment.kept()
            del shell.script.commands[commands:], self.frame.over[over:]
            shell.ways.fork(names, [lambda: self._tried(condition), lambda: HOLDS])
            if not shell.environment.blur(start, before, names):
                break
        shell.ways.settle(self.frame.over)
        return Outcome(False, names)

    def _tried(self, condition: Callable[[], Outcome]) -> Outcome:
        condition()
        self._pass(HOLDS)
        return HOLDS
