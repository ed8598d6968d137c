"""Commands that people run after a plan is made, for the scheduler that they have."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from textwrap import wrap

from placer.job.started import BY_HAND
from placer.placement.baselines import started_of
from placer.placement.plan import Plan
from placer.report.verdict import is_kept
from placer.report.words import slowest_group

_INDENT, _GOES_ON = "  ", " \\"
_KUBERNETES = "kubernetes"
# Formats of `placer emit` with their file: what starts the job, what asks for nodes.
_BY_SCHEDULER = {
    "slurm": (("sbatch", "job.sbatch"), ("slurm-request", "")),
    _KUBERNETES: (("kubernetes-jobset", "jobset.yaml"), ("kueue-request", "")),
    "": (("slurm-hostfile", "hosts.txt"),),
}
_MANIFESTS = ("kubernetes-jobset",)
_RAY = ("ray", "placer-ray")


def next_lines(plan: Plan, path: str, width: int) -> Iterator[str]:
    """Lines that can be typed as they are.

    Long commands go on after a backslash; one with a word too long is left out.

    ``path``: where it is. ``width``: columns at most.
    """
    worst, subject = slowest_group(plan.score), ["--rank", "0"]
    if worst:
        subject = ["--group", f"{worst['axis']}:{worst['group']}"]
    commands = [*launch_commands(plan, path), ["explain", _typable(path), *subject]]
    found = [typed(["placer", *command], width) for command in commands]
    if any(found):
        yield "next"
        yield from _changed_line(plan, width)
        for lines in found:
            yield from lines


def _changed_line(plan: Plan, width: int) -> Iterator[str]:
    """A comment that names the launcher, and the line of the script to change."""
    started = started_of(plan)
    if started is None or not str(started).isprintable():
        return
    text = f"# to change: {started}; apply the patch with patch -p1"
    if _formats(plan)[0][0] in _MANIFESTS:
        text = f"# pods run the command of {started}"
    elif is_kept(plan):
        text = f"# nothing to change: {started}"
    elif started.name in BY_HAND:
        text = f"# to change by hand: {started}; emit PLAN patch says how"
    indent = f"{_INDENT}# "
    yield from wrap(text, width, initial_indent=_INDENT, subsequent_indent=indent)


def launch_commands(plan: Plan, path: str) -> list[list[str]]:
    """Words after ``placer`` that turn the plan into files of its launcher.

    ``path``: where it is.
    """
    formats = _formats(plan)
    commands = [
        ["emit", _typable(path), name, *(["-o", output] if output else [])]
        for name, output in formats
    ]
    return commands if len(formats) > 1 else [*commands, ["emit", "--list"]]


def _formats(plan: Plan) -> Sequence[tuple[str, str]]:
    """What starts the job, and what asks for nodes, each with its file.

    Pods need a manifest whatever starts the job elsewhere.
    """
    scheduler = plan.inputs.get("topology", {}).get("scheduler", "")
    started = started_of(plan)
    if started is not None and started.name == _KUBERNETES:
        scheduler = _KUBERNETES
    formats = _BY_SCHEDULER[scheduler]
    if scheduler == _KUBERNETES or started is None:
        return formats
    if started.name in BY_HAND:
        return (_RAY, *formats[1:])
    return formats if is_kept(plan) else (("patch", "placer.patch"), *formats[1:])


def _typable(path: str) -> str:
    """A path that is not read as an option."""
    return f"./{path}" if path.startswith("-") else path


def typed(command: Sequence[str], width: int) -> list[str]:
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
