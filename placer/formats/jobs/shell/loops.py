"""Loops, pass by pass where their bounds are known.

Where they are not, what the body changes is unknown behind the loop and in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.conditions import FAILS, HOLDS, Outcome
from placer.formats.jobs.shell.text import Text, known, opens, roots, unknown
from placer.formats.jobs.shell.ways import JumpError, Way

if TYPE_CHECKING:
    from placer.formats.jobs.shell.follow import Shell
    from placer.formats.jobs.shell.syntax import Loop

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
