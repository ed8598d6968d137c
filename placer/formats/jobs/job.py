"""A job from whatever describes it: the way in to all sources, and to their hosts."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from placer.assumed import RATE
from placer.base.arguments import (
    NOTHING,
    NUMBER,
    PATH,
    TEXT,
    instance,
    sequence,
    takes,
)
from placer.base.errors import InputError, Problem, capped, refuse
from placer.base.naming import entry, named
from placer.documents import closest, files, parse_document
from placer.documents.presets import preset_names
from placer.documents.recognise import (
    Source,
    Text,
    checked_name,
    open_text,
    perhaps_of_another,
    refuse_other,
)
from placer.documents.scalars import visible
from placer.formats.jobs.convert import (
    assumptions,
    changed_job,
    doubts,
    summary,
    to_job,
    to_text,
)
from placer.formats.jobs.findings import (
    GPUS,
    Asked,
    Fact,
    Findings,
    Place,
    Scalar,
    join,
    one_line,
    refuse_long,
)
from placer.formats.jobs.registry import FORMATS
from placer.formats.jobs.settings import plain_value
from placer.formats.jobs.settle import TIME, settle
from placer.formats.machines.registry import FORMATS as MACHINES
from placer.job import read as job_files
from placer.job.model import Job
from placer.job.read import decode_job
from placer.topology.gpu_kinds import HostHint
from placer.topology.model import Topology

_JOB_KEY = "job."


@dataclass(frozen=True)
class Options:
    """What a user says beside the sources, as `read_job` takes it."""

    gpus: int | None = None
    tflops: float | None = None
    micro_batch_time: float | str | None = None
    settings: Mapping[str, str] | None = None
    select: str | None = None
    strict: bool = False
    name: str | None = None
    machine: Topology | None = None
    asks_time: bool = True  # who asks for degrees alone needs no rate


@dataclass(frozen=True)
class Opened:
    """Sources that are joined and settled: all of a job but its validation."""

    found: Findings
    name: str  # of the job
    sources: tuple[str, ...]  # what it was read from

    def job(self) -> Job:
        """The job, validated."""
        job = to_job(self.found, self.name, self.sources)
        return replace(job, assumed=assumptions(self.found))

    def remarks(self) -> list[str]:
        """What a user should know: a line of what was read and assumed, then notes."""
        source = self.found.source
        notes = (f"{source}: {one_line(note)}" for note in self.found.notes)
        return [f"{source}: {summary(self.found)}", *notes]

    def text(self) -> str:
        """The job file, with the origin of each value."""
        return to_text(self.found, self.name, self.sources)


@takes(
    source=PATH | sequence("a list of paths", PATH),
    micro_batch_time=NUMBER | TEXT | NOTHING,
    machine=instance(Topology) | NOTHING,
)
def read_job(
    source: Source | Sequence[Source],
    *,
    gpus: int | None = None,
    tflops: float | None = None,
    micro_batch_time: float | str | None = None,
    settings: Mapping[str, str] | None = None,
    select: str | None = None,
    strict: bool = False,
    name: str | None = None,
    machine: Topology | None = None,
    note: Callable[[str], None] | None = None,
) -> Job:
    """The job that ``source`` describes.

    Parameters
    ----------
    source : str, path, or sequence of them
        A preset name, a file of the job format, or ``-`` for standard input. Or what
        other programs are given, as ``FORMAT:FILE`` (``megatron:pretrain.sh``) or a
        file whose content shows its format; several of these are joined, each filling
        the gaps of those before it. Nothing in them is run. What follows is for these
        alone.
    gpus : int, optional
        Ranks of the job.
    tflops : float, 1e12 FLOP/s, optional
        Sustained rate of a GPU.
    micro_batch_time : float or str, s, optional
        Measured time of one micro-batch on one stage: seconds, or with a unit.
    settings : mapping of str to str, optional
        Variables of scripts, and ``job.KEY`` for keys of the job.
    select : str, optional
        Which of several functions or launches in a file.
    strict : bool
        Refuse what is assumed and what cannot be modelled.
    name : str, optional
        Name of the job; by default that of the first file.
    machine : Topology, optional
        That it runs on: where nothing says how long the work takes, a usual rate of its
        GPUs is assumed.
    note : callable, optional
        Called with everything a user should know: a line of what was read and assumed,
        then the notes. By default these are one `UserWarning`, where something is
        assumed, not modelled or noted.

    Returns
    -------
    Job

    Raises
    ------
    InputError
        If a source cannot be read, sources contradict each other, the framework would
        refuse them, or something is missing, with the option that says it.

    Examples
    --------
    >>> placer.read_job("quickstart").world_size
    16
    """
    options = Options(
        gpus, tflops, micro_batch_time, settings, select, strict, name, machine
    )
    opened = open_job(source, options)
    if isinstance(opened, Job):
        return opened
    job = opened.job()
    if note:
        for line in opened.remarks():
            note(line)
    elif opened.found.notes or doubts(opened.found):
        warnings.warn("; ".join(opened.remarks()), stacklevel=3)
    return job


def open_job(source: Source | Sequence[Source], options: Options) -> Job | Opened:
    """A job that is complete as it is, or sources that are joined and settled."""
    sources = [source] if isinstance(source, str | PathLike) else list(source)
    if not sources:
        raise InputError([Problem("no job is given")])
    opened = [open_source(given) for given in sources]
    plain = [found for found in opened if isinstance(found, Job)]
    if plain:
        _check_plain(plain[0], len(opened), options)
        keys = _keys_set(options)
        if options.name is not None:
            keys["name"] = checked_name(options.name)
        return changed_job(sources[0], keys) if keys else plain[0]
    texts = [found for found in opened if not isinstance(found, Job)]
    found = _settled(texts, options)
    name = texts[0].stem if options.name is None else checked_name(options.name)
    shown = tuple(f"{t.format}: {visible(Path(t.shown).name)}" for t in texts)
    return Opened(found, name, shown)


def _settled(texts: Sequence[Text], options: Options) -> Findings:
    """The joined findings, with nothing wrong and nothing missing."""
    asked = Asked(options.gpus, options.settings or {}, options.select or "", include)
    findings = [_given(options)]
    problems: list[Problem] = []
    for text in texts:
        try:
            found = FORMATS[text.format].read(text.text, text.shown, asked)
        except InputError as error:
            problems += error.problems
            continue
        found.format = text.format
        findings.append(found)
    refuse([*problems, *_unused(options, asked)])
    joined = join(findings)
    joined.source = texts[0].shown
    settle(joined, options.machine, options.asks_time)
    # What options give is not asked for.
    given = {key for key, fact in joined.facts.items() if fact.kind == "given"}
    missing = [problem for problem in joined.asked if problem.key not in given]
    if problems := [*joined.problems, *missing]:
        # A file that is not there comes first, as the rest may follow from it.
        notes = (f"{joined.source}: {one_line(note)}" for note in joined.notes)
        raise InputError(capped([*joined.missing, *problems]), notes=notes)
    if options.strict:
        refuse(doubts(joined))
    joined.notes[:0] = [f"{p.message} ({p.source}:{p.line})" for p in joined.missing]
    return joined


def _given(options: Options) -> Findings:
    """What the options say of the job, as a source that counts more than any file."""
    values: list[tuple[str, Scalar | None, str]] = [
        (key, value, entry("settings", f"{_JOB_KEY}{key}"))
        for key, value in _keys_set(options).items()
    ]
    values += [
        (GPUS, options.gpus, named("gpus")),
        (RATE, options.tflops, named("tflops")),
        (TIME, options.micro_batch_time, named("micro_batch_time")),
    ]
    found = Findings("")
    for key, value, origin in values:
        if value is not None:
            found.facts[key] = Fact(value, "given", origin, Place(origin))
    if options.gpus is not None and options.gpus < 1:
        found.problem(GPUS, "must be 1 or more")
    return found


def _keys_set(options: Options) -> dict[str, Scalar]:
    """Values of ``job.KEY`` by the key of the job."""
    return {
        key.removeprefix(_JOB_KEY): plain_value(text)
        for key, text in (options.settings or {}).items()
        if key.startswith(_JOB_KEY)
    }


def _unused(options: Options, asked: Asked) -> list[Problem]:
    """Settings that no source has a use for."""
    return [
        Problem(
            f"no source has a variable {visible(name)}",
            entry("settings", visible(name)),
            hint=closest(name, asked.used) or "job.KEY sets a key of the job",
        )
        for name in options.settings or {}
        if name not in asked.used and not name.startswith(_JOB_KEY)
    ]


def _check_plain(job: Job, count: int, options: Options) -> None:
    """Refuse what only other programs' files take, beside a job that is complete.

    Keys of the job, its name among them, may be set.
    """
    complete = f"the job {job.name} is complete"
    hint = (
        f"{named('settings', {'job.KEY': 'VALUE'})} sets a key of it, as placer job "
        "convert writes them"
    )
    problems = [
        Problem(f"{complete} and takes no {named(key)}", key=key, hint=hint)
        for key in ("gpus", "tflops", "micro_batch_time", "select")
        if getattr(options, key)
    ]
    problems += _unused(options, Asked())
    if count > 1:
        message = f"{complete} and cannot be joined with others"
        problems.append(Problem(message, key="job", hint="give it alone"))
    refuse(problems)


# Requests of sbatch for GPUs of a host, with their type and number.
_BATCH = re.compile(
    r"^#SBATCH[ \t][^\n]*?(?P<option>--gpus-per-node|--gres|--gpus|-G)[= \t]+"
    r"(?:gres[:/])?(?:gpu:)?(?:(?P<gpu>[A-Za-z][\w.-]*):)?(?P<count>[0-9]{1,4})\b",
    re.MULTILINE,
)


def open_source(source: Source) -> Job | Text:
    """A job as such, or a text with the format it is in."""
    if os.fspath(source) in preset_names("jobs"):
        return job_files.read_job(source)
    found = open_text(source, FORMATS)
    if found is None:
        return job_files.read_job(source)
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
