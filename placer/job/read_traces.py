"""The ``traffic`` of a job where it names traces of a run, one for each rank."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from placer.job.kineto import read_trace
from placer.job.traced import Traced, traced

if TYPE_CHECKING:
    from placer.documents import Section
    from placer.job.model import Group


def decode_traces(
    job: Section,
    section: Section,
    files: Iterable[tuple[bytes, str]],
    world_size: int,
    groups: tuple[Group, ...],
) -> Traced:
    """What the traces say of a step; ``section`` is the job's ``traffic``.

    Parameters
    ----------
    files : iterable of (bytes, str)
        Content and name of each trace.
    groups : tuple of Group
        The job's own, whose names are taken.

    Raises
    ------
    InputError
        If one cannot be read, or they leave open what a step sends.
    """
    steps = section.integer("steps") if section.has("steps") else 0
    without = section.texts("without")
    overlap = section.boolean("overlap", False)
    if job.has("model"):
        message = "traces hold what the model sends too: it would count twice"
        section.problem(message, "file", "remove model")
    if not world_size:
        section.problem("traces need parallelism beside them", "file")
    if section.document.problems:
        return Traced([], ())
    read = [read_trace(data, source) for data, source in files]
    taken = {group.name for group in groups}
    return traced(read, world_size, steps, without, taken, overlap=overlap)
