"""The machine and the job of a command: what its options describe, or a plan keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import placer
from placer.base.errors import InputError, Problem, read_before
from placer.cli.folder import MACHINE_OPTIONS, SOURCE_OPTIONS, with_folder
from placer.cli.options import teller
from placer.documents.presets import RENAMED

if TYPE_CHECKING:
    from placer.formats.machines.combine import Tree
    from placer.placement.inputs import Inputs


class Given(NamedTuple):
    """What options say instead of a plan; None where they say nothing."""

    topology: placer.Topology | None
    job: placer.Job | None


def given_inputs(options: dict[str, Any], plan: placer.Plan | None = None) -> Given:
    """The machine of ``-t`` and the job of ``-j``, where these are given.

    ``options``: of a command with `shared.plan_inputs`. ``plan``: whose machine the job
    is for, unless ``-t`` names another.
    """
    from placer.placement.inputs import kept_topology

    machine = read_machine(options) if options["topology"] else None
    if not options["job"]:
        return Given(machine, None)
    kept = None if plan is None or machine else kept_topology(plan)
    return Given(machine, read_given_job(options, machine or kept))


def stated_inputs(options: dict[str, Any], why: str = "") -> Inputs:
    """The machine, the job and the hosts of the options, or of placer.yaml.

    ``options``: of a command with `shared.plan_inputs` and ``--hosts``. ``why``: why
    they are needed, where they not always are.
    """
    from placer.placement.inputs import Inputs

    options = with_folder(options, why)
    hosts, machine = options["hosts"], read_machine(options)
    return Inputs.given(machine, read_given_job(options, machine, hosts), hosts)


def plan_inputs(plan: placer.Plan, options: dict[str, Any]) -> Inputs:
    """What a plan was made of; ranks are numbered as in the plan.

    ``options``: of a command with `shared.plan_inputs`.
    """
    from placer.api.inputs import inputs_of_plan

    return inputs_of_plan(plan, *given_inputs(options, plan), force=options["force"])


# How the samples of a step are cut.
_CUT_BATCH = frozenset({"micro_batch", "micro_batches"})


def read_given_job(
    options: dict[str, Any],
    machine: placer.Topology | None = None,
    hosts: str | None = None,
    ranks: int | None = None,
    *,
    cuts_batch: bool = False,
) -> placer.Job:
    """The job of ``-j`` and the options beside it, by ``--order`` where it is given.

    Where its sources do not say how many GPUs it has, or a number that its sizes do not
    divide, it has those of the hosts. What its sources say goes to stderr, unless the
    command is quiet.

    ``options``: of a command with `shared.job` and `shared.sources`. ``machine``: that
    it runs on: where no source says how long the work takes, a rate of its GPUs is
    assumed. ``hosts``: an allocation of the machine. ``ranks``: how many a job has
    whose sources leave it open, for commands that change it. ``cuts_batch``: whether
    the command cuts the samples of a step itself: of sources that do not say how, it
    needs ``--global-batch`` alone.
    """
    with notes_told(options):
        return _given_job(options, machine, hosts, ranks, cuts_batch)


def _given_job(
    options: dict[str, Any],
    machine: placer.Topology | None,
    hosts: str | None,
    ranks: int | None,
    cuts_batch: bool,
) -> placer.Job:
    from placer.job.resize import reordered
    from placer.topology.allocation import allocate

    try:
        own = options["gpus"] if ranks is None else None
        job = _read_job(options, own, machine)
    except InputError as error:
        asked = [problem.key for problem in error.problems]
        if cuts_batch and (open_ := {*filter(None, map(_open_cut, error.problems))}):
            if options["global_batch"] is None:
                raise _no_batch(error, ranks) from None
            cut = {f"job.{key}": "1" for key in open_}
            options = options | {"settings": {**cut, **(options["settings"] or {})}}
            return _given_job(options, machine, hosts, ranks, False)
        if "parallelism.dp" not in asked:
            raise
        if ranks is None and machine is not None and hosts is not None:
            ranks = allocate(machine, hosts).num_gpus
        if ranks is None:
            raise _no_size(error, machine) from None
        job, note = _read_job_or_fewer(options, ranks, machine, cuts_batch)
        listed = options["gpus"] if isinstance(options["gpus"], Sequence) else ()
        whose = ("as the hosts have", "as --gpus says", "the first of --gpus")
        teller(options)(note or f"{ranks:,} GPUs, {whose[min(len(listed), 2)]}")
    order = options.get("order")
    return job if order is None else reordered(job, order)


def _no_size(error: InputError, machine: placer.Topology | None) -> InputError:
    """The error, with how many GPUs there are where it asks for their number."""
    if machine is None:
        return error
    room = f"; {machine.name} has {machine.num_gpus:,}"
    problems = (
        replace(one, hint=f"{one.hint}{room}") if "--gpus" in one.hint else one
        for one in error.problems
    )
    return InputError(problems, notes=error.notes)


def _read_job_or_fewer(
    options: dict[str, Any],
    ranks: int,
    machine: placer.Topology | None,
    cuts_batch: bool,
) -> tuple[placer.Job, str]:
    """The job on so many GPUs, or on the most of them that share out its batch.

    A command that cuts the batch itself can do with the job on fewer; a note says so.
    """
    try:
        return _read_job(options, ranks, machine), ""
    except InputError as error:
        first = error
    fewer = [n for n in range(ranks // 2, 0, -1) if ranks % n == 0]
    for count in fewer if cuts_batch and _lacks_batch(first) else ():
        try:
            job = _read_job(options, count, machine)
        except InputError as error:
            if _lacks_batch(error):
                continue
            raise
        why = first.problems[0].message
        return job, f"its own degrees are those on {count:,} GPUs: {why}"
    raise first


def _lacks_batch(error: InputError) -> bool:
    """Whether replicas do not share out the samples of a step."""
    return any(problem.key == "global_batch" for problem in error.problems)


def _open_cut(problem: Problem) -> str:
    """The key, if it says how samples are cut and nothing says it; else empty.

    What is asked for stands at no line; a wrong value in a file does.
    """
    return "" if problem.line or problem.key not in _CUT_BATCH else problem.key


def _no_batch(error: InputError, ranks: int | None) -> InputError:
    """An error that asks for samples of a step instead of how they are cut.

    Where it is known how many GPUs the job has, these are not asked for.
    """
    known = _CUT_BATCH if ranks is None else _CUT_BATCH | {"parallelism.dp"}
    wrong = [p for p in error.problems if p.key in _CUT_BATCH and not _open_cut(p)]
    others = [*wrong, *(p for p in error.problems if p.key not in known)]
    message = "the number of samples of a step is not given"
    source = error.problems[0].source
    asked = Problem(message, source, key="global_batch", hint="--global-batch N")
    return InputError([*others, asked])


@contextmanager
def notes_told(options: dict[str, Any]) -> Iterator[None]:
    """A context in which the notes of an input are told before its error."""
    try:
        yield
    except InputError as error:
        for note in error.notes:
            teller(options)(note)
        raise


def _read_job(
    options: dict[str, Any], gpus: int | None, machine: placer.Topology | None
) -> placer.Job:
    from placer.formats.jobs.convert import origins
    from placer.formats.jobs.job import Options, open_job

    others = {name: options[name] for name in SOURCE_OPTIONS if name != "gpus"}
    others["asks_time"] = options.get("asks_time", True)
    opened = open_job(options["job"], Options(gpus=gpus, machine=machine, **others))
    if isinstance(opened, placer.Job):
        return opened
    job = opened.job()
    if options["verbose"] and not options.get("quiet"):
        for line in origins(opened.found):
            click.echo(line, err=True)
    for remark in opened.remarks():
        teller(options)(remark)
    return job


def read_machine(
    options: dict[str, Any],
    sources: Sequence[str] = (),
    name: str | None = None,
    beside: Sequence[Callable[[], object]] | None = None,
) -> placer.Topology:
    """The machine of ``-t``, or of ``sources``, and of the options beside them.

    What the readers have to say goes to stderr, unless the command is quiet. Where the
    machine cannot be read, the error says what is wrong with the jobs, too.

    ``options``: of a command with `shared.topology`. ``name``: of the machine.
    ``beside``: each reads a job without the machine; by default the one of ``-j``.
    """
    if beside is None:
        told = options | {"quiet": True}
        beside = [partial(_read_job, told, None, None)] if options.get("job") else []
    return read_before(lambda: _read(options, sources, name), beside)


def _read(
    options: dict[str, Any], sources: Sequence[str], name: str | None
) -> placer.Topology:
    from placer.formats.jobs.job import host_hint

    named = (*(sources or options["topology"]), options["hardware"])
    for old, new in RENAMED["topologies"].items():
        if old in named:
            teller(options)(
                f"the preset {old} is {new} now; the old name will be removed"
            )
    job, settings = options.get("job"), options.get("settings")
    return placer.read_topology(
        sources or options["topology"],
        **{key: options[key] for key in MACHINE_OPTIONS},
        name=name,
        hint=lambda: host_hint(job or (), settings, options.get("select")),
        note=teller(options),
    )


def read_alone(options: dict[str, Any], source: str) -> placer.Topology | Tree:
    """What ``source`` says by itself, with the hardware where that is given."""
    from placer.formats.machines import machine

    given = set(MACHINE_OPTIONS) - {"labels"}
    if not any(options[name] for name in given):
        return machine.read_alone(source, teller(options))
    return read_machine(options, [source])
