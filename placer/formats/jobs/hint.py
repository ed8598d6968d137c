"""What the sources of a job say of the hosts that it runs on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.formats.jobs.findings import Asked
from placer.formats.jobs.opened import include, open_source
from placer.formats.jobs.registry import FORMATS
from placer.job.model import Job
from placer.topology.gpu_kinds import HostHint

if TYPE_CHECKING:
    from placer.documents.recognise import Source

# Requests of sbatch for GPUs of a host, with their type and number.
_BATCH = re.compile(
    r"^#SBATCH[ \t][^\n]*?(?P<option>--gpus-per-node|--gres|--gpus|-G)[= \t]+"
    r"(?:gres[:/])?(?:gpu:)?(?:(?P<gpu>[A-Za-z][\w.-]*):)?(?P<count>[0-9]{1,4})\b",
    re.MULTILINE,
)


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
    """The same of the lines that sbatch reads."""
    gpus, gpu = 0, ""
    for line in _BATCH.finditer(text):
        gpu = gpu or line["gpu"] or ""
        if line["option"] in ("--gpus-per-node", "--gres"):
            gpus = gpus or int(line["count"])
    return HostHint(gpus, gpu, shown if gpus or gpu else "")
