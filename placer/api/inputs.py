"""The topology and the job of a library call, from whatever says what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from placer.base.arguments import PATH, instance, sequence, takes
from placer.base.errors import read_before, refuse
from placer.documents.recognise import Source
from placer.formats.jobs.job import host_hint, read_job
from placer.formats.jobs.job_list import Listed
from placer.job.model import Job
from placer.placement.host_rules import unknown_tiers
from placer.placement.inputs import Inputs, inputs_of, kept_topology
from placer.placement.plan import Plan
from placer.topology.model import Topology

TopologyLike = Topology | Source | Sequence[Source]
JobLike = Job | Source | Sequence[Source]
JobsLike = JobLike | Listed | Sequence[JobLike | Listed]

_TOPOLOGY = instance(Topology) | PATH | sequence("a list of paths", PATH)
_JOB = instance(Job) | PATH | sequence("a list of paths", PATH)
_LISTED = _JOB | instance(Listed)
JOBS = _LISTED | sequence("a list of jobs", _LISTED)


def read_inputs(topology: TopologyLike, job: JobLike) -> tuple[Topology, Job]:
    """The machine and the job, known to fit each other: where the two first meet.

    Raises `InputError` if one cannot be read, or the job names a tier that the machine
    lacks.
    """
    machine = read_before(
        lambda: _read_topology(topology, job), [lambda: read_given_job(job)]
    )
    work = read_given_job(job, machine)
    refuse(unknown_tiers(machine, work.require.items(), work.rules))
    return machine, work


def inputs_of_plan(
    plan: Plan,
    topology: TopologyLike | None = None,
    job: JobLike | None = None,
    *,
    force: bool = True,
) -> Inputs:
    """What a plan was made of, with the machine or the job that is given instead.

    ``force``: take them although the plan names others. Raises `InputError` if one
    cannot be read, is neither given nor kept, is not the one that the plan names, or
    the job names a tier that the machine lacks.
    """
    machine = None if topology is None else _read_topology(topology)
    if not (job is None or isinstance(job, Job)):
        job = read_given_job(job, machine or kept_topology(plan))
    found = inputs_of(plan, machine, job, force=force)
    rules = found.job.rules.and_also(found.rules)
    require = (*found.job.require.items(), *found.require.items())
    refuse(unknown_tiers(found.topology, require, rules))
    return found


@takes(topology=_TOPOLOGY)
def _read_topology(topology: TopologyLike, job: JobLike | None = None) -> Topology:
    if isinstance(topology, Topology):
        return topology
    from placer.formats.machines.machine import read_topology

    known = job is None or isinstance(job, Job)
    hint = None if known else lambda: host_hint(cast("Source", job))
    return read_topology(topology, hint=hint)


@takes(job=_JOB)
def read_given_job(job: JobLike, machine: Topology | None = None) -> Job:
    """A job, read unless it is one, for the machine where that is known."""
    return job if isinstance(job, Job) else read_job(job, machine=machine)
