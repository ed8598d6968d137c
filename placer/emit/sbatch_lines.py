"""The ``#SBATCH`` lines of the script that a job was read from, for a new one."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.documents.files import read_text
from placer.placement.started import started_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_SBATCH = "#SBATCH"
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
    kept = [_kept(line.rstrip()) for line in text.split("\n")]
    return [line for line in kept if line]


def _kept(line: str) -> str:
    """A line with the options that the plan leaves to it; empty without any."""
    if not (line.startswith(_SBATCH) and line.isprintable()):
        return ""
    options = re.split(r"\s+(?=--?[A-Za-z])", line)[1:]
    left = [option for option in options if not _of_the_plan(option)]
    return " ".join([_SBATCH, *left]) if left else ""


def _of_the_plan(option: str) -> bool:
    name = re.split(r"[=\s]", option, maxsplit=1)[0]
    asks_for_gpus = re.match(r"--gres[=\s]\S*gpu", option) is not None
    short = not name.startswith("--")
    return asks_for_gpus or (name[:2] if short else name) in _OF_THE_PLAN
