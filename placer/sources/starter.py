"""What starts a job: the launcher in the command of its script."""

from __future__ import annotations

import itertools
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from placer.job.started import Started

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from placer.sources.findings import Findings
    from placer.sources.megatron.launches import Launch
    from placer.sources.shell import Script, Text

_BACKEND = "rdzv_backend"
# Backends that number hosts by name (PyTorch, dynamic_rendezvous.py).
_SORT = ("c10d", "etcd", "etcd-v2")
_HYDRA_OPTIONS = ("-f", "-ppn", "-hosts", "-launcher", "-bootstrap")
_AGENT = "torchrun"
_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_PROGRAM = re.compile(r"[\w./-]+\.py")


def read_starter(found: Findings, launch: Launch, script: Script) -> None:
    """Find what starts the job: the innermost launcher of its command.

    A step of Slurm may run a shell that starts the program, ``srun bash -c '...'``.
    """
    called = starter(launch.words, script.variables)
    if called is None and launch.words:
        outer = [c for c in script.commands if _runs_a_shell(c.words)]
        called = starter(outer[-1].words, script.variables) if outer else None
    if called is None:
        return
    name, word = called
    source, line, _ = word.place
    if not line or source.startswith("<"):
        return  # what stands in no file cannot be changed there
    found.started = Started(name, source, line)


def starter(
    words: Sequence[Text], variables: Mapping[str, Text]
) -> tuple[str, Text] | None:
    """Name of the innermost launcher of a command, and the word that calls it."""
    found = None
    for before, word in itertools.pairwise([None, *words]):
        called = PurePath(word.text).name if word is not None else ""
        if word is None or _PROGRAM.fullmatch(word.text):
            break
        module = before is not None and before.text == "-m" and word.text in _MODULES
        if called == _AGENT or module:
            found = _agent(words, variables), word
        elif called in ("srun", "deepspeed"):
            found = {"srun": "slurm"}.get(called, called), word
        elif called in ("mpirun", "mpiexec", "mpiexec.hydra"):
            options = {one.text for one in words}
            hydra = called == "mpiexec.hydra" or options & {*_HYDRA_OPTIONS}
            found = "hydra" if hydra else "openmpi", word
    return found


def _agent(words: Sequence[Text], variables: Mapping[str, Text]) -> str:
    """How torchrun numbers hosts: by its rendezvous backend, static by default."""
    backend = variables.get("PET_RDZV_BACKEND")
    text = backend.text if backend is not None else ""
    for name, value in options_of(words):
        if name == _BACKEND:
            text = value
    return "torchrun-c10d" if text in _SORT else "torchrun-static"


def options_of(words: Sequence[Text]) -> Iterator[tuple[str, str]]:
    """Long options with their values, names with ``_`` for ``-``."""
    for word, following in itertools.pairwise([*words, *words[:1]]):
        if word.text.startswith("--"):
            name, equals, value = word.text[2:].partition("=")
            yield name.replace("-", "_"), value if equals else following.text


def _runs_a_shell(words: Sequence[Text]) -> bool:
    texts = [PurePath(word.text).name for word in words]
    return bool({"bash", "sh"} & {*texts}) and "-c" in texts
