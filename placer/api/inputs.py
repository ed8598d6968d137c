"""The topology and the job of a library call, from whatever says what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from placer.arguments import PATH, instance, sequence, takes
from placer.errors import refuse
from placer.job.model import Job
from placer.job.read import read_job
from placer.placement.tier_names import unknown_tiers
from placer.topology.model import Topology

if TYPE_CHECKING:
    import os

    from placer.readers.sources import Source

    TopologyLike = Topology | Source | Sequence[Source]
    JobLike = Job | str | os.PathLike[str]

_TOPOLOGY = instance(Topology) | PATH | sequence("a list of paths", PATH)
_JOB = instance(Job) | PATH


@takes(topology=_TOPOLOGY, job=_JOB)
def inputs(topology: TopologyLike, job: JobLike) -> tuple[Topology, Job]:
    """The machine and the job, known to fit each other: where the two first meet.

    Parameters
    ----------
    topology : Topology, or what `placer.read_topology` takes
    job : Job, or what `placer.read_job` takes

    Raises
    ------
    InputError
        If one cannot be read, or the job names a tier that the machine lacks.
    """
    machine, work = _topology(topology), _job(job)
    refuse(unknown_tiers(machine, work.require.items(), work.rules))
    return machine, work


def _topology(given: TopologyLike) -> Topology:
    if isinstance(given, Topology):
        return given
    from placer.readers.machine import read_topology

    return read_topology(given)


def _job(given: JobLike) -> Job:
    return given if isinstance(given, Job) else read_job(given)
