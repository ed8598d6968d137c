"""Ways of which one is taken, as what is not known decides, how ways end, and loops.

Loops are followed pass by pass where their bounds are known. Where they are not, what
the body changes is unknown behind the loop and in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.formats.jobs.findings import Place
from placer.formats.jobs.shell.conditions import FAILS, HOLDS, Outcome
from placer.formats.jobs.shell.syntax import Loop
from placer.formats.jobs.shell.text import Text, known, opens, roots, unknown

if TYPE_CHECKING:
    from placer.formats.jobs.shell.follow import Shell
    from placer.formats.jobs.shell.variables import Environment, State

_MOST_DEPTH, _MOST_FORKS = 90, 2000
Way = Callable[[], Outcome]


@dataclass(eq=False)
class Frame:
    """What a jump may end: a ``function`` or file, a ``loop`` or a ``pass`` of one.

    ``left``: what there was where one of several ways left it, and what decides that.
    """

    kind: str
    left: list[tuple[State, tuple[str, ...]]] = field(default_factory=list)


@dataclass(eq=False)
class JumpError(Exception):
    """What comes next is not done: it goes on behind a frame, or the script ends.

    ``names``: variables that nobody sets and that are taken to be empty there.
    """

    frame: Frame | None
    place: Place
    status: Outcome = HOLDS
    names: tuple[str, ...] = ()


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


_MOST_PASSES, _MOST_PASSES_IN_ALL, _MOST_TRIES = 1000, 10_000, 6
_FILE_NAMES = re.compile(r"[*?]|\[.*\]")
_QUOTED = re.compile(r"[\"'\\$`]")


def follow_loop(shell: Shell, node: Loop) -> Outcome:
    """Follow ``for``, ``while`` or ``select``; not known where its end is not."""
    if node.name is None:
        return _passes(shell, node, lambda: shell.follow(node.condition))
    name, environment = node.name, shell.environment
    words = environment.arguments()
    names = [name.text] if node.is_menu else []
    if node.words is not None:
        words = [word for raw in node.words for word in shell.expander.words(raw)]
        plain = [raw.text for raw in node.words if not _QUOTED.search(raw.text)]
        names += [text for text in plain if _FILE_NAMES.search(text)]
    for word in words:
        if opens(word.text) and not known(word.text):  # it may stand for several
            names += roots(word.text)
    causes = tuple(dict.fromkeys(names))
    if causes:
        words = [unknown(name.text, name.place, "", causes)]
    rest = iter([*words])

    def following() -> Outcome:
        word: Text | None = words[0] if causes else next(rest, None)
        if word is None:
            return FAILS
        environment.assign(name.text, word)
        return HOLDS

    return (
        _blurred(shell, node, causes, following)
        if causes
        else _passes(shell, node, following)
    )


def _passes(shell: Shell, node: Loop, condition: Way) -> Outcome:
    """Follow passes as long as the condition holds."""
    environment, count = shell.environment, 0
    before = environment.kept()
    while (outcome := condition()).names or outcome.holds:
        names = outcome.names
        shell.passes += 1
        many = count >= _MOST_PASSES and node.name is None
        if many or shell.passes > _MOST_PASSES_IN_ALL:
            names = ("a loop of very many passes",)
        if names:
            return _blurred(shell, node, names, condition)
        _pass(shell, node, outcome)
        count += 1
        # Where nothing changes, what ends it is outside the script.
        if node.name is None and not environment.state.changed(before):
            break
        if count < 2:
            before = environment.kept()
    return HOLDS


def _pass(shell: Shell, node: Loop, outcome: Outcome) -> None:
    shell.ways.within("pass", lambda: shell.follow(node.body), outcome)
    shell.follow(node.step)


def _blurred(
    shell: Shell, node: Loop, names: tuple[str, ...], condition: Way
) -> Outcome:
    """Take all that the body changes for unknown, in it and behind it."""
    environment, commands, loop = (
        shell.environment,
        shell.script.commands,
        shell.ways.frames[-1],
    )
    start, number, left = environment.kept(), len(commands), len(loop.left)

    def tried() -> Outcome:
        condition()
        try:
            _pass(shell, node, HOLDS)
        except JumpError as jump:
            if jump.frame is not loop:
                raise
        return HOLDS

    for _ in range(_MOST_TRIES):
        before = environment.kept()
        del commands[number:], loop.left[left:]
        shell.ways.fork(names, [tried, lambda: HOLDS])
        if not environment.blur(start, before, names):
            break
    return Outcome(False, names)
