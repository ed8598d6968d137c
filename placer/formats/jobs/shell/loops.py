"""Loops: followed pass by pass where their bounds are known.

Where they are not, what the body changes is unknown behind the loop and in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.conditions import HOLDS, Outcome
from placer.formats.jobs.shell.text import known, opens, roots, unknown
from placer.formats.jobs.shell.ways import BreakError, Frame

if TYPE_CHECKING:
    from placer.formats.jobs.shell.follow import Shell
    from placer.formats.jobs.shell.syntax import Count, Loop

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
