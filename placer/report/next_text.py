"""Commands that people run after a plan is made."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_INDENT, _GOES_ON = "  ", " \\"


def next_lines(plan: Plan, path: str, width: int) -> Iterator[str]:
    """Lines that can be typed as they are.

    Long commands go on after a backslash; one with a word too long is left out.

    Parameters
    ----------
    plan : Plan
    path : str
        Where it is.
    width : int
        Columns at most.
    """
    worst = plan.score.get("worst_group")
    subject = f"{worst['axis']}:{worst['group']}" if worst else "0"
    # A name that begins so would be read as an option.
    path = f"./{path}" if path.startswith("-") else path
    commands = (
        ["explain", path, "--group" if worst else "--rank", subject],
        ["emit", path, "slurm-hostfile", "-o", "hosts.txt"],
        ["emit", "--list"],
    )
    typed = [_typed(["placer", *command], width) for command in commands]
    if any(typed):
        yield "next"
        for lines in typed:
            yield from lines


def _typed(command: Sequence[str], width: int) -> list[str]:
    """The command in lines of the width, all but the last ending in a backslash."""
    room = width - len(_GOES_ON)
    lines = [_INDENT]
    for word in map(shlex.quote, command):
        if len(_INDENT * 2 + word) > room or not word.isprintable():
            return []
        if len(f"{lines[-1]} {word}") > room:
            lines.append(_INDENT * 2 + word)
        else:
            lines[-1] += f" {word}" if lines[-1].strip() else word
    return [line + _GOES_ON for line in lines[:-1]] + lines[-1:]
