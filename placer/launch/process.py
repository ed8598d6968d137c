"""What a process of a job tells of itself: from its environment alone, as a report.

A report is one line of JSON, found again in what a job printed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from placer.base.errors import InputError


@dataclass(frozen=True)
class Process:
    """One process of a job, as its launcher describes it."""

    host: str  # ``PLACER_HOST``, else ``SLURMD_NODENAME``, else the machine's own name
    # ``torchrun``, ``env``, ``openmpi``, ``hydra``, ``jax``, ``slurm``, ``kubernetes``;
    # empty when none is recognised.
    launcher: str = ""
    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    # Devices of ``CUDA_VISIBLE_DEVICES``; None when it is not set or empty.
    visible: tuple[str, ...] | None = None
    # node_rank, slurm_procid and slurm_nodeid: ``GROUP_RANK`` and Slurm's own numbers,
    # which explain wrong ranks.
    node_rank: int | None = None
    slurm_procid: int | None = None
    slurm_nodeid: int | None = None

    @property
    def gpu(self) -> str | None:
        """Name of the device the process should use; None when nothing says it.

        The one device it sees, else device ``local_rank`` of those it sees.
        """
        if self.visible is not None and len(self.visible) == 1:
            return self.visible[0]
        if self.local_rank is None:
            return None
        if self.visible is None:
            return str(self.local_rank)
        inside = self.local_rank < len(self.visible)
        return self.visible[self.local_rank] if inside else None


@dataclass(frozen=True)
class _Variables:
    """Environment variables of one launcher; ``sign`` must be set as well."""

    launcher: str
    rank: str
    world_size: tuple[str, ...] = ()
    local_rank: str = ""
    sign: str = ""


# The first whose variables are set counts: a launcher's children inherit those of what
# started it, so mpirun's come before Slurm's, and what the user may set comes first.
_KNOWN = (
    _Variables(
        "torchrun", "RANK", ("WORLD_SIZE",), "LOCAL_RANK", "TORCHELASTIC_RUN_ID"
    ),
    _Variables("env", "RANK", ("WORLD_SIZE",), "LOCAL_RANK"),
    _Variables(
        "openmpi",
        "OMPI_COMM_WORLD_RANK",
        ("OMPI_COMM_WORLD_SIZE",),
        "OMPI_COMM_WORLD_LOCAL_RANK",
    ),
    _Variables(
        "hydra", "PMI_RANK", ("PMI_SIZE",), "MPI_LOCALRANKID", "MPI_LOCALRANKID"
    ),
    _Variables("jax", "JAX_PROCESS_ID", ("JAX_NUM_PROCESSES",)),
    _Variables(
        "slurm",
        "SLURM_PROCID",
        ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        "SLURM_LOCALID",
    ),
    _Variables("kubernetes", "JOB_COMPLETION_INDEX"),
)
RANK_VARIABLES = tuple(dict.fromkeys(row.rank for row in _KNOWN))


def this_process(environ: Mapping[str, str] | None = None) -> Process:
    """The process that asks, or the one with this environment.

    Raises `InputError` if a variable that must be a number is none.
    """
    env = os.environ if environ is None else environ
    set_ = (row for row in _KNOWN if env.get(row.rank))
    known = next((row for row in set_ if not row.sign or env.get(row.sign)), None)
    listed = [item.strip() for item in env.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    found = Process(
        host=host_name(env),
        visible=tuple(listed) if any(listed) else None,
        node_rank=_number(env, "GROUP_RANK"),
        slurm_procid=_number(env, "SLURM_PROCID"),
        slurm_nodeid=_number(env, "SLURM_NODEID"),
    )
    if known is None:
        return found
    return replace(
        found,
        launcher=known.launcher,
        rank=_number(env, known.rank),
        world_size=_number(env, *known.world_size),
        local_rank=_number(env, known.local_rank),
    )


def host_name(environ: Mapping[str, str]) -> str:
    """The host as the emitted scripts take it; ``HOSTNAME`` may be another host's."""
    for name in ("PLACER_HOST", "SLURMD_NODENAME"):
        if environ.get(name):
            return environ[name]
    return os.uname().nodename


def local_index(environ: Mapping[str, str], process: Process) -> int | None:
    """``PLACER_LOCAL_INDEX``, else the launcher's local rank.

    Raises `InputError` if the variable is set and no number.
    """
    given = _number(environ, "PLACER_LOCAL_INDEX")
    return process.local_rank if given is None else given


def _number(environ: Mapping[str, str], *names: str) -> int | None:
    """Value of the first of these variables that is set; None when none is."""
    for name in names:
        text = environ.get(name, "")
        if not text:
            continue
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise InputError(f"expected a number, got {text[:40]!r}", name)
        return int(text)
    return None


FORMAT = "placer/report"
VERSION = 1

_START = re.compile(r'\{"format": ?"placer/report"')
_NUMBERS = (
    *("rank", "world_size", "local_rank"),
    *("node_rank", "slurm_procid", "slurm_nodeid"),
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
        or not all(
            value is None or (type(value) is int and 0 <= value < 10**9)
            for value in numbers.values()
        )
        or not (visible is None or isinstance(visible, list))
        or not all(isinstance(n, str) and n.isprintable() for n in visible or ())
    ):
        return None
    return Process(
        host=host,
        launcher=launcher,
        visible=None if visible is None else tuple(visible),
        **numbers,
    )
