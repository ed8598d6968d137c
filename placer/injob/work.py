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
from typing import Any

import placer
from placer.base.errors import InputError
from placer.documents.files import is_file, read_text

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
# TorchRec's nodes a pod, whose ranks follow each other (``distributed/comm.py``).
_POD = re.compile(
    r"(?:topology[-_]domain[-_]multiple|torchrec_resolved_pod_size|--pod[-_]size)"
    r"[\"']?\s*[=:\s]\s*[\"']?([1-9][0-9]{0,5})\b",
    re.IGNORECASE,
)
# A back end for experts that wants equal parts of their groups in every NVLink domain.
_HYBRID_EP = re.compile(
    r"hybridep|NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=[0-9]", re.IGNORECASE
)
_POD_VARIABLES = ("TORCHREC_RESOLVED_POD_SIZE", "TOPOLOGY_DOMAIN_MULTIPLE")
# How near the members of a group are wanted, where nothing says what they send.
_WEIGHTS = {"tp": 4000, "cp": 400, "ep": 64, "pp": 40, "dp": 4}


def job_of(
    command: Sequence[str],
    machine: placer.Topology,
    ranks: int,
    tell: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
) -> placer.Job:
    """The job of ``PLACER_JOB``, else of the command, else its degrees or none.

    Where the command does not say enough to price a step, groups lie near by usual
    weights; where it names no degrees, NVLink domains are kept together.

    ``ranks``: how many there are. ``tell``: called with what was read and what was
    assumed. Raises `InputError` if ``PLACER_JOB`` cannot be read.
    """
    env = os.environ if environ is None else environ
    if given := env.get("PLACER_JOB"):
        try:
            return placer.read_job(given, note=tell)
        except InputError:
            return placer.read_job(given, gpus=ranks, machine=machine, note=tell)
    texts = _texts(command)
    for text in texts.values():
        if found := _read(text, machine, ranks, tell):
            return found
    text = "\n".join(texts.values())
    if pod := _pod(text, env):
        return _of_pods(pod, machine, ranks, tell)
    degrees = _degrees(text)
    shown = " ".join(f"{axis} {n}" for axis, n in degrees.items())
    if degrees and ranks % prod(n for axis, n in degrees.items() if axis != "ep"):
        tell(f"{shown} do not divide {ranks:,} ranks: not used")
        degrees = {}
    if degrees:
        tell(
            f"assumed: usual weights for {shown}; a job prices a step (PLACER_JOB, -j)"
        )
        parts = {}
        if "ep" in degrees and _HYBRID_EP.search(text):
            parts["ep"] = machine.tiers[max(machine.scale_up_tier, 0)].name
            tell(f"HybridEP wants equal parts, one a {parts['ep']}")
        with suppress(InputError):
            return _of_degrees(degrees, ranks, even=parts)
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
    text: str, machine: placer.Topology, ranks: int, tell: Callable[[str], None]
) -> placer.Job | None:
    """The job of a script; None where it does not say enough of one."""
    notes: list[str] = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "command.sh"
        path.write_text(text)
        try:
            job = placer.read_job(
                str(path), gpus=ranks, machine=machine, note=notes.append
            )
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


def _pod(text: str, environ: Mapping[str, str]) -> int:
    """Nodes of a pod of TorchRec's planner; 0 where nothing says it."""
    said = [*_POD.findall(text), *(environ.get(name, "") for name in _POD_VARIABLES)]
    return next((int(number) for number in said if number.isdecimal()), 0)


def _of_pods(
    pod: int, machine: placer.Topology, ranks: int, tell: Callable[[str], None]
) -> placer.Job:
    """A job whose pods of consecutive ranks lie in one NVLink domain each.

    TorchRec's planner takes the links inside a pod for NVLink
    (``distributed/planner/types.py``, ``intra_group_size``).

    Raises `InputError` if the ranks are no whole pods.
    """
    size = pod * int(machine.gpus_of_node.max())
    if ranks % size:
        raise InputError(
            f"TorchRec's pods of {pod} nodes do not divide {ranks:,} ranks"
        )
    tier = max(machine.scale_up_tier, machine.node_tier)
    name = machine.tiers[tier].name
    if size > int(machine.gpus_of_domain(tier).max()):
        tell(f"TorchRec's pods of {pod} nodes fit in no {name}: kept as near as can be")
        return weighed({"cp": size, "dp": ranks // size})
    tell(f"TorchRec's pods of {pod} nodes: each in one {name}")
    return weighed({"cp": size, "dp": ranks // size}, require={"cp": name})


def weighed(
    sizes: Mapping[str, int], order: str = "", **rules: Mapping[str, str]
) -> placer.Job:
    """A job of these axes whose groups lie near by usual weights.

    ``sizes``: axis -> size. ``order``: in which ranks count, the fastest first.
    ``**rules``: axis -> tier: ``require`` and ``even`` of the job.
    """
    from placer.documents import parse_document
    from placer.job.read import decode_job

    axes: dict[str, Any] = dict(sizes)
    job = {
        "format": "placer/job",
        "version": 1,
        "name": "command",
        "parallelism": axes | ({"order": order} if order else {}),
        "weights": {axis: _WEIGHTS[axis] for axis in axes},
        **{name: dict(rule) for name, rule in rules.items()},
    }
    return decode_job(parse_document(json.dumps(job), "command"))


def _of_degrees(
    degrees: Mapping[str, int], ranks: int, **rules: Mapping[str, str]
) -> placer.Job:
    """The job of so many ranks with these degrees."""
    sizes = {axis: n for axis, n in degrees.items() if n > 1}
    replicas = ranks // prod(n for axis, n in sizes.items() if axis != "ep")
    return weighed(sizes | {"dp": replicas}, "", **rules)
