"""The job that a command starts, as far as its words and scripts tell."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from placer.errors import InputError
from placer.files import is_file, read_text

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

_SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
# As Megatron, torchtitan, NeMo and most others write them, in options and files.
_DEGREES = {
    axis: re.compile(
        rf"(?:{words})[-_](?:model[-_])?parallel(?:ism)?[-_](?:size|degree)"
        r"[\"']?\s*[=:\s]\s*([1-9][0-9]{0,5})\b"
    )
    for axis, words in {
        "tp": "tensor",
        "cp": "context",
        "ep": "expert",
        "pp": "pipeline",
    }.items()
}
# How near the members of a group are wanted, where nothing says what they send.
_WEIGHTS = {"tp": 4000, "cp": 400, "ep": 64, "pp": 40, "dp": 4}


def job_of(
    command: Sequence[str],
    machine: Topology,
    ranks: int,
    tell: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
) -> Job:
    """The job of ``PLACER_JOB``, else of the command, else its degrees or none.

    Where the command does not say enough to price a step, groups lie near by usual
    weights; where it names no degrees, NVLink domains are kept together.

    Parameters
    ----------
    command : sequence of str
    machine : Topology
    ranks : int
        How many there are.
    tell : callable
        Called with what was read and what was assumed.
    environ : mapping of str to str, optional

    Raises
    ------
    InputError
        If ``PLACER_JOB`` cannot be read.
    """
    from placer.sources.job import read_job

    env = os.environ if environ is None else environ
    if given := env.get("PLACER_JOB"):
        try:
            return read_job(given, note=tell)
        except InputError:
            return read_job(given, gpus=ranks, machine=machine, note=tell)
    texts = _texts(command)
    for text in texts.values():
        if found := _read(text, machine, ranks, tell):
            return found
    degrees = _degrees("\n".join(texts.values()))
    if degrees and ranks % prod(n for axis, n in degrees.items() if axis != "ep"):
        shown = " ".join(f"{axis} {n}" for axis, n in degrees.items())
        tell(f"{shown} do not divide {ranks:,} ranks: not used")
        degrees = {}
    if degrees:
        shown = " ".join(f"{axis} {n}" for axis, n in degrees.items())
        tell(
            f"assumed: usual weights for {shown}; a job prices a step (PLACER_JOB, -j)"
        )
        with suppress(InputError):
            return _of_degrees(degrees, ranks)
    tell(
        "assumed: no tp, cp, ep, pp: NVLink domains are kept together (PLACER_JOB, -j)"
    )
    return _of_degrees({}, ranks)


def _texts(command: Sequence[str]) -> dict[str, str]:
    """The scripts among the words of a command, then the command itself."""
    found = {}
    for word in command:
        if PurePath(word).suffix in _SCRIPTS and is_file(word):
            with suppress(InputError):
                found[word] = read_text(word)
    return found | {"command": shlex.join(command) + "\n"}


def _read(
    text: str, machine: Topology, ranks: int, tell: Callable[[str], None]
) -> Job | None:
    """The job of a script; None where it does not say enough of one."""
    from placer.sources.job import read_job

    notes: list[str] = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "command.sh"
        path.write_text(text)
        try:
            job = read_job(str(path), gpus=ranks, machine=machine, note=notes.append)
        except InputError:
            return None
        if job.world_size != ranks:
            return None
        for note in notes:
            tell(note.replace(str(path), "the command"))
    return job


def _degrees(text: str) -> dict[str, int]:
    """The degrees that a text names, of each axis the last."""
    found = {axis: pattern.findall(text) for axis, pattern in _DEGREES.items()}
    return {axis: int(all_[-1]) for axis, all_ in found.items() if all_}


def weighed(sizes: Mapping[str, int], order: str = "") -> Job:
    """A job of these axes whose groups lie near by usual weights.

    Parameters
    ----------
    sizes : mapping of str to int
        Axis -> size.
    order : str, optional
        In which ranks count, the fastest first.
    """
    from placer.document import parse_document
    from placer.job.read import decode_job

    axes: dict[str, Any] = dict(sizes)
    job = {
        "format": "placer/job",
        "version": 1,
        "name": "command",
        "parallelism": axes | ({"order": order} if order else {}),
        "weights": {axis: _WEIGHTS[axis] for axis in axes},
    }
    return decode_job(parse_document(json.dumps(job), "command"))


def _of_degrees(degrees: Mapping[str, int], ranks: int) -> Job:
    """The job of so many ranks with these degrees."""
    sizes = {axis: n for axis, n in degrees.items() if n > 1}
    replicas = ranks // prod(n for axis, n in sizes.items() if axis != "ep")
    return weighed(sizes | {"dp": replicas})
