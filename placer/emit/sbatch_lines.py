"""The ``#SBATCH`` lines of the script that a job was read from, for a new one."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from placer.errors import InputError
from placer.files import read_text
from placer.placement.started import started_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_LINE = re.compile(r"#SBATCH[ \t]+(?P<option>--?[A-Za-z][a-z-]*)")
# What the plan says itself: how many, on which nodes, in which order.
_OF_THE_PLAN = {
    *("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--exclusive"),
    *("--nodelist", "-w", "--exclude", "-x", "--distribution", "-m", "--segment"),
    *("--gpus-per-node", "--gpus", "-G", "--gpus-per-task", "--ntasks-per-gpu"),
    *("--switches", "--contiguous", "--nodefile", "-F"),
}


def kept_lines(plan: Plan) -> list[str]:
    """The script's own lines but those that the plan says; a comment if it is lost."""
    started = started_of(plan)
    if started is None:
        return []
    name = PurePath(started.source).name
    try:
        text = read_text(started.source)
    except InputError:
        shown = "".join(c if c.isprintable() else "?" for c in name)
        return [f"# {shown} is not here: its #SBATCH lines are not kept."]
    lines = [line.rstrip() for line in text.split("\n")]
    return [line for line in lines if _is_kept(line)]


def _is_kept(line: str) -> bool:
    found = _LINE.match(line)
    if found is None or not line.isprintable():
        return False
    option = found["option"]
    if re.match(r"#SBATCH[ \t]+--gres[= ]\S*gpu", line):
        return False
    short = not option.startswith("--")
    return (option[:2] if short else option) not in _OF_THE_PLAN
