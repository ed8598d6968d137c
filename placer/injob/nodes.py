"""The probes of all nodes of an allocation, and the machine that they make."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import placer
from placer.base.errors import InputError
from placer.documents.scalars import visible
from placer.formats.machines.probe import PROBE
from placer.injob.bounded import LateError, output_of
from placer.injob.probe import FORMAT, VERSION
from placer.topology.model import Topology

STEP_S = 60.0
_MOST_SAID = 10_000
# A plan's or a batch script's wishes for steps, which one task a node must not have.
_NOT_OURS = ("SLURM_HOSTFILE", "SLURM_DISTRIBUTION", "SLURM_NTASKS_PER_NODE")


def probe_step(count: int) -> str:
    """What ``placer probe`` prints on each of the ``count`` nodes of this allocation.

    Raises `InputError` if the step cannot be run or does not end in time.
    """
    step = ("srun", f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1")
    command = (*step, "--overlap", sys.executable, "-m", "placer", "probe")
    kept = {name: os.environ.pop(name) for name in _NOT_OURS if name in os.environ}
    with TemporaryFile() as errors:
        try:
            status, text = output_of(command, STEP_S, errors)
            why = f"ended with {status}"
        except (LateError, OSError) as error:
            status, text = 1, ""
            why = (isinstance(error, OSError) and error.strerror) or str(error)
        finally:
            os.environ.update(kept)
        if status and not PROBE.search(text):
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _MOST_SAID))
            said = errors.read().decode("utf-8", "replace").strip()
            message = f"srun, which asks the nodes what they are: {why}"
            raise InputError(message, hint=visible(said.rpartition("\n")[2], 200))
    return text


def completed(text: str, hosts: Sequence[str]) -> list[dict[str, Any]]:
    """The probe of each of these hosts; one without says that it has none."""
    probes = {}
    decoder = json.JSONDecoder()
    for match in PROBE.finditer(text):
        with suppress(ValueError, RecursionError):
            data, _ = decoder.raw_decode(text, match.start())
            probes[data.get("host")] = data
    none = {"format": FORMAT, "version": VERSION, "gpus": 0}
    none["problems"] = ["no probe came from it"]
    return [probes.get(host, none | {"host": host}) for host in hosts]


def machine_of(
    probes: Collection[dict[str, Any]],
    tell: Callable[[str], None],
    gpus: int | None = None,
) -> Topology:
    """The machine that probes describe, without what they contradict each other in.

    ``tell``: called with what a user should know. ``gpus``: of each node whose probe
    does not count them, by default as most others have, else as Slurm gave the job.
    """
    counts = Counter(n for one in probes if isinstance(n := one.get("gpus"), int) and n)
    if gpus is None:
        gpus = max(counts, key=counts.__getitem__) if counts else _gpus_given()
    without: tuple[str, ...] = ()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "probes"
        while True:
            told = [{k: one[k] for k in one if k not in without} for one in probes]
            path.write_text("".join(f"{json.dumps(one)}\n" for one in told))
            notes: list[str] = []
            try:
                machine = placer.read_topology(
                    f"probe:{path}",
                    gpus_per_node=gpus,
                    name="probed",
                    note=notes.append,
                )
            except InputError as error:
                left = [key for key in _GIVE_WAY if key not in without]
                if not left:
                    # The file is nobody's, and is gone once this is read.
                    raise InputError(
                        replace(problem, source="probes") for problem in error.problems
                    ) from None
                what = str(error).replace(str(path), "probes").splitlines()[0]
                tell(f"{what}: left out {_GIVE_WAY[left[0]]}")
                without = (*without, left[0])
                continue
            for note in notes:
                tell(note.replace(str(path), "probes"))
            return machine


# What says the least of NVLink goes first where nodes contradict each other.
_GIVE_WAY = {
    "topology_addr": "Slurm's switches",
    "labels": "labels",
    "cloud": "what the cloud says",
}


def _gpus_given() -> int | None:
    """GPUs a node that Slurm gave this job, where it was asked for them."""
    given = map(os.environ.get, ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"))
    counts = (text.rpartition(":")[2] for text in given if text)  # 4, h100:4
    return next((int(count) for count in counts if count.isdigit()), None) or None
