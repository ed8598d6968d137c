"""Measured steps of a job, as a file gives them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from placer.document import Document, Section, Value, open_document
from placer.errors import InputError
from placer.job.models import flops_per_sample
from placer.job.read import read_job
from placer.job.resize import resized
from placer.topology.allocation import allocate, parse_hosts
from placer.topology.read import read_topology
from placer.units import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.job.model import Job
    from placer.topology.model import Topology

FORMAT = "placer/measurements"
MAX_POINTS = 1000

Read = TypeVar("Read")


@dataclass(frozen=True, eq=False)
class Point:
    """One measured step.

    Attributes
    ----------
    name : str
        What people call it.
    topology : Topology
        The hosts it ran on, in launch order.
    job : Job
        At the size it ran with.
    step_s : float, s
    fit : bool
        Whether the fit may use it; a point kept out is only predicted.
    source : str
        Where the figure comes from; may be empty.
    """

    name: str
    topology: Topology
    job: Job
    step_s: float
    fit: bool = True
    source: str = ""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measured steps that share one compute time.

    Attributes
    ----------
    name, description : str
    job : Job
        The job whose compute times are asked for.
    points : tuple of Point
    sources : tuple of str
    """

    name: str
    job: Job
    points: tuple[Point, ...]
    description: str = ""
    sources: tuple[str, ...] = ()


def read_measurements(source: str) -> Measurements:
    """Measurements of a file, or of standard input for ``-``.

    Machines and jobs that are files are named from the folder of this file.

    Raises
    ------
    InputError
        If it cannot be read, or anything in it is wrong.
    """
    folder = Path() if source == "-" else Path(source).parent
    return decode_measurements(open_document(source), folder)


def decode_measurements(document: Document, folder: Path) -> Measurements:
    """Measurements of a parsed document; ``folder`` is where its file names start.

    Raises
    ------
    InputError
        If anything in it is wrong; all problems at once.
    """
    document.check_format(FORMAT)
    root = document.root
    inputs = _Inputs(folder)
    job = inputs.job(root.get("job", required=True))
    topology = inputs.topology(root.get("topology", required=True))
    points = [
        _point(value.section(), inputs, job, topology)
        for value in root.items("points", required=True)[:MAX_POINTS]
    ]
    _check_points(root, len(points), [point for point in points if point])
    measurements = Measurements(
        name=root.text("name", "measurements"),
        job=job or Job_stand_in(),
        points=tuple(point for point in points if point),
        description=root.text("description", ""),
        sources=tuple(root.texts("sources")),
    )
    document.finish()
    return measurements
