"""Reports: one line of JSON from every process, found again in what a job printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from placer.base.errors import InputError
from placer.launch.process import RANK_VARIABLES, Process

FORMAT = "placer/report"
VERSION = 1

_START = re.compile(r'\{"format": ?"placer/report"')
_NUMBERS = (
    "rank",
    "world_size",
    "local_rank",
    "node_rank",
    "slurm_procid",
    "slurm_nodeid",
)


@dataclass(frozen=True)
class Collected:
    """The reports of a job."""

    processes: tuple[Process, ...]  # every one has a rank
    # Lines (1-based) with a report that is cut or malformed.
    unreadable: tuple[int, ...] = ()


def report_line(process: Process) -> str:
    """The process as one line of JSON, without what is not known.

    Raises `InputError` if nothing says which rank the process has.
    """
    require_rank(process)
    known = {"rank": process.rank, **vars(process), "gpu": process.gpu}
    listed = {key: value for key, value in known.items() if value not in (None, "")}
    return json.dumps({"format": FORMAT, "version": VERSION, **listed})


def require_rank(process: Process) -> int:
    """The rank the process says it has.

    Raises `InputError` if it says none.
    """
    if process.rank is None:
        hint = f"start it with a launcher that sets one of {', '.join(RANK_VARIABLES)}"
        message = "nothing in the environment says which rank this process has"
        raise InputError(message, hint=hint)
    return process.rank


def read_reports(text: str, source: str) -> Collected:
    """The reports in ``text``, whatever stands before, after and between them.

    Launchers put ``0: `` or ``host: `` in front of lines, and lines of several
    processes may run together.

    Raises `InputError` if there is no readable report.
    """
    processes: list[Process] = []
    unreadable: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        for found in _in_line(line):
            if found is None:
                unreadable.append(number)
            else:
                processes.append(found)
    if not processes:
        what = f"no report can be read in line {unreadable[0]}" if unreadable else ""
        hint = "run `placer verify PLAN --report` in every process and keep its output"
        raise InputError(what or "there is no report", source, hint=hint)
    return Collected(tuple(processes), tuple(unreadable))


def _in_line(line: str) -> Iterator[Process | None]:
    """Every report that starts in a line; None for one that cannot be read."""
    decoder = json.JSONDecoder()
    at = 0
    while match := _START.search(line, at):
        try:
            data, at = decoder.raw_decode(line, match.start())
        except (ValueError, RecursionError):
            yield None
            at = match.end()
        else:
            yield _process(data)


def _process(data: dict[str, Any]) -> Process | None:
    """The process of one report; None when it is of a newer version or malformed."""
    numbers = {key: data.get(key) for key in _NUMBERS}
    host, launcher = data.get("host"), data.get("launcher", "")
    visible = data.get("visible")
    if (
        data.get("version") != VERSION
        or not isinstance(host, str)
        or not (host and host.isprintable() and len(host) <= 253)
        or not isinstance(launcher, str)
        or numbers["rank"] is None
        or not all(value is None or _is_number(value) for value in numbers.values())
        or not (visible is None or _are_names(visible))
    ):
        return None
    return Process(
        host=host,
        launcher=launcher,
        visible=None if visible is None else tuple(visible),
        **numbers,
    )


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < 10**9


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(name, str) and name.isprintable() for name in value
    )
