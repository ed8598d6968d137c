"""Sources of a job as users write them, and what they say of its hosts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from placer.base.errors import InputError, Problem
from placer.documents import files, parse_document
from placer.documents.presets import preset_names
from placer.documents.recognise import (
    Source,
    Text,
    open_text,
    perhaps_of_another,
    refuse_other,
)
from placer.formats.jobs.findings import Asked, refuse_long
from placer.formats.jobs.registry import FORMATS
from placer.formats.machines.registry import FORMATS as MACHINES
from placer.job.model import Job
from placer.job.read import decode_job, read_job
from placer.topology.gpu_kinds import HostHint

# Requests of sbatch for GPUs of a host, with their type and number.
_BATCH = re.compile(
    r"^#SBATCH[ \t][^\n]*?(?P<option>--gpus-per-node|--gres|--gpus|-G)[= \t]+"
    r"(?:gres[:/])?(?:gpu:)?(?:(?P<gpu>[A-Za-z][\w.-]*):)?(?P<count>[0-9]{1,4})\b",
    re.MULTILINE,
)


def open_source(source: Source) -> Job | Text:
    """A job as such, or a text with the format it is in."""
    if os.fspath(source) in preset_names("jobs"):
        return read_job(source)
    found = open_text(source, FORMATS)
    if found is None:
        return read_job(source)
    if not found.format:
        return _own(found.text, found.shown)
    if not FORMATS[found.format].logs:
        refuse_long(found.text, found.shown)
    return found


def include(source: str, name: str) -> tuple[str, str] | None:
    """Text and shown name of a file that a source names; None when there is none.

    It is looked for beside the source: by its path from there, then by its last part
    alone. Standard input has nothing beside it, and no other folder is looked at for a
    path from the root.
    """
    if source == "<stdin>" or not name:
        return None
    for relative in (name, Path(name).name):
        path = files.beside(source, relative)
        if relative and not Path(relative).is_absolute() and files.is_file(path):
            return files.read_text(path), path
    return None


def _own(text: str, shown: str) -> Job:
    """A text that shows no other format, as a job file."""
    refuse_other(text, shown, MACHINES, "topology")
    if text.startswith("#!"):
        message = "its format does not show from its content"
        hint = "say which: FORMAT:FILE; placer job formats lists what is read"
        raise InputError([Problem(message, shown, hint=hint)])
    with perhaps_of_another(text, "placer job formats"):
        return decode_job(parse_document(text, shown))


def host_hint(
    source: Source | Sequence[Source],
    settings: Mapping[str, str] | None = None,
    select: str | None = None,
) -> HostHint:
    """What the job's sources say of its hosts; empty where they say nothing.

    What is wrong with them is told by who reads the job.
    """
    sources = [source] if isinstance(source, str | PathLike) else list(source)
    hints = [_of(one, Asked(None, settings or {}, select or "")) for one in sources]
    return HostHint(
        next((hint.gpus for hint in hints if hint.gpus), 0),
        next((hint.gpu for hint in hints if hint.gpu), ""),
        next((hint.origin for hint in hints if hint.origin), ""),
    )


def _of(source: Source, asked: Asked) -> HostHint:
    asked.include = include
    try:
        opened = open_source(source)
        if isinstance(opened, Job):
            return HostHint()
        batch = _batch_hint(opened.text, opened.shown)
        if batch.gpus:
            return batch
        own = FORMATS[opened.format].read(opened.text, opened.shown, asked).host
    except InputError:
        return HostHint()
    return HostHint(own.gpus, batch.gpu, own.origin or batch.origin)


def _batch_hint(text: str, shown: str) -> HostHint:
    """What the lines that sbatch reads say of hosts."""
    gpus, gpu = 0, ""
    for line in _BATCH.finditer(text):
        gpu = gpu or line["gpu"] or ""
        if line["option"] in ("--gpus-per-node", "--gres"):
            gpus = gpus or int(line["count"])
    return HostHint(gpus, gpu, shown if gpus or gpu else "")
