"""Several jobs in one file, ``placer/jobs``: each a job of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError
from placer.documents import Document, Section, Value, files, open_document
from placer.documents.keys import DURATION, TEXT, integer, key, number, special
from placer.documents.presets import is_preset
from placer.documents.recognise import Source
from placer.documents.records import nested, read
from placer.formats.jobs.job import Options, open_source, read_job
from placer.formats.jobs.registry import FORMATS
from placer.job.decode import job_digest
from placer.job.model import Job
from placer.job.read import decode_job
from placer.job.resize import with_gpus
from placer.job.roles import MAX_RANKS, job_or_name
from placer.topology.model import Topology

if TYPE_CHECKING:
    Note = Callable[[str], None] | None

FORMAT = "placer/jobs"
MOST_JOBS = 1024

_HEAD = 65_536
_OWN = re.compile(r"""\bformat["']?\s*:\s*["']?placer/jobs\b""")


@dataclass(frozen=True)
class Listed:
    """A job of a list."""

    job: Job
    weight: float = 1.0  # what a second of its step counts beside those of the others


@dataclass(frozen=True)
class Entry:
    """What a list says of a job."""

    job: Value | None = key(
        special(job_or_name),
        "a file beside this one, a preset, `FORMAT:FILE`, or the keys of a job",
    )
    name: str = key(
        TEXT,
        "what it is called in tables, files and `--weight`",
        "",
        absent="of the job",
    )
    count: int = key(integer(1, MOST_JOBS), "how many such jobs", 1)
    gpus: int = key(
        integer(1, MAX_RANKS), "GPUs of each: `dp` follows", 0, absent="of the job"
    )
    weight: float = key(
        number(1e-9, 1e9), "what a second of its step counts beside the others", 1.0
    )
    tflops: float = key(
        number(0.0, 1e6),
        "sustained rate of a GPU in TFLOP/s, of a file of another program",
        0.0,
        absent="",
    )
    micro_batch_time: float = key(
        DURATION,
        "measured time of a micro-batch on a stage, of a file of another program",
        0.0,
        absent="",
    )


@dataclass(frozen=True)
class JobList:
    """Jobs that want nodes at the same time."""

    jobs: tuple[Listed, ...] = key(
        special(lambda: {"type": "array", "minItems": 1, "items": _entry()}),
        "jobs that want nodes at the same time: each the name of a job, or a mapping",
    )


def _entry() -> dict[str, Any]:
    return {"anyOf": [TEXT.schema(), nested(Entry).schema()]}


def is_job_list(source: Source) -> bool:
    """Whether a source, ``-`` included, says that it is a list of jobs."""
    path = os.fspath(source)
    if not (path == "-" or files.is_file(path)):
        return False
    return _OWN.search(files.read_text(path), 0, _HEAD) is not None


def read_job_list(
    source: Source, note: Note = None, machine: Topology | None = None
) -> list[Listed]:
    """The jobs of a file, each as often as it says.

    Parameters
    ----------
    note : callable, optional
        Told what was read and assumed of jobs in files of other programs, as that of
        `read_job`.
    machine : Topology, optional
        That they run on, as in `read_job`.
    """
    return decode_job_list(open_document(os.fspath(source)), note, machine)


def decode_job_list(
    document: Document, note: Note = None, machine: Topology | None = None
) -> list[Listed]:
    """The jobs of a parsed document."""
    document.check_format(FORMAT)
    root = document.root
    found: list[Listed] = []
    for value in root.items("jobs", required=True):
        found += _listed(value, note, machine)
    if len(found) > MOST_JOBS:
        root.problem(f"more than {MOST_JOBS:,} jobs", "jobs")
    document.finish()
    return found


def _listed(value: Value, note: Note, machine: Topology | None) -> Iterator[Listed]:
    """An entry: what is read, or a mapping that says more about it."""
    if value.kind != "mapping":
        job = _at(value, lambda: _named(value, Options(machine=machine), note))
        if job is not None:
            yield Listed(job)
        return
    section = value.section()
    given = section.get("job", required=True)
    entry = read(section, Entry, job=given)
    said = Options(
        gpus=entry.gpus or None,
        tflops=entry.tflops or None,
        micro_batch_time=entry.micro_batch_time or None,
        name=entry.name,
        machine=machine,
    )
    job = None if given is None else _job(section, given, said, note)
    if job is not None:
        yield from [Listed(job, entry.weight)] * entry.count


def _job(section: Section, given: Value, said: Options, note: Note) -> Job | None:
    """The job of an entry, under its name and at its size."""
    name = said.name or ""
    if given.kind == "mapping":
        for key in ("tflops", "micro_batch_time"):
            if section.has(key):
                section.problem("is for files of other programs", key, "use compute")
        start = {"format": "placer/job", "version": 1, "name": name}
        inner = section.document.inner(given, start)
        job = _at(given, lambda: with_gpus(decode_job(inner), said.gpus or 0))
    else:
        job = _at(given, lambda: _named(given, said, note))
    if job is None or name in ("", job.name):
        return job
    return replace(job, name=name, sha256=job_digest(replace(job, name=name)))


def _named(value: Value, said: Options, note: Note) -> Job:
    """A job of a file beside the list, of a preset, or ``FORMAT:FILE``."""
    source = _source(value.text(), value.document.source)
    rates: dict[str, Any] = {
        "tflops": said.tflops,
        "micro_batch_time": said.micro_batch_time,
        "machine": said.machine,
    }
    if isinstance(open_source(source), Job):
        return with_gpus(read_job(source, **rates), said.gpus or 0)
    return read_job(source, gpus=said.gpus, note=note, **rates)


def _source(given: str, listed: str) -> str:
    """What an entry names, as seen from the list."""
    head, colon, rest = given.partition(":")
    known = {name for row in FORMATS.values() for name in (row.name, *row.also)}
    if colon and head in known:
        return f"{head}:{files.beside(listed, rest)}"
    path = files.beside(listed, given)
    return given if not files.is_file(path) and is_preset("jobs", given) else path


def _at(value: Value, read: Callable[[], Job]) -> Job | None:
    """What ``read`` gives; its problems become those of the list, at their place."""
    document = value.document
    try:
        return read()
    except InputError as error:
        for problem in error.problems:
            if problem.source not in ("", document.source):
                document.add(problem)
                continue
            key = ".".join(filter(None, (value.key, problem.key)))
            at = problem if problem.line else value.place
            source, line, column = at.source, at.line, at.column
            document.add(
                replace(problem, key=key, source=source, line=line, column=column)
            )
        return None
