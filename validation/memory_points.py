"""Public runs whose memory was measured, and the footprints that placer expects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from placer.cost.footprint.stages import footprints
from placer.documents import parse_document
from placer.job.read import decode_job
from validation.files import FOLDER

if TYPE_CHECKING:
    from placer.cost.footprint.stages import Footprint
    from placer.job.model import Job

GIB = 2.0**30
# What an allocator of expandable segments hands out of what it reserves: a round share,
# the same for every run; see the page.
RESERVED = 0.95
_STATES = ("parameters", "gradients", "optimizer")


@dataclass(frozen=True)
class MemoryPoint:
    """One run.

    Attributes
    ----------
    name : str
    job : Job
    measured : float, GiB
    states : float, GiB
        Measured after a step; 0 when not known.
    """

    name: str
    job: Job
    measured: float
    states: float


@dataclass(frozen=True)
class MemorySeries:
    """Runs that were measured alike.

    Attributes
    ----------
    title, source : str
    of : str
        ``allocated``, ``reserved`` or ``device``.
    stage : int or str
        The pipeline rank that was measured, or ``fullest``.
    aim : float
        The largest error promised.
    points : tuple of MemoryPoint
    """

    title: str
    source: str
    of: str
    stage: int | str
    aim: float
    points: tuple[MemoryPoint, ...]

    def footprint_of(self, point: MemoryPoint) -> Footprint:
        """What the measured GPU holds."""
        if isinstance(self.stage, int):
            return footprints(point.job)[self.stage]
        return max(footprints(point.job), key=lambda stage: stage.total)

    def expected(self, point: MemoryPoint) -> float:
        """What the model expects to be measured, GiB."""
        return self.seen(self.footprint_of(point))

    def seen(self, found: Footprint) -> float:
        """What would be measured of such a GPU, GiB."""
        if self.of == "device":
            return found.total / GIB
        share = RESERVED if self.of == "reserved" else 1.0
        return found.allocated / share / GIB

    def error(self, point: MemoryPoint) -> float:
        """Expected over measured, less one."""
        return self.expected(point) / point.measured - 1


def expected_states(found: Footprint) -> float:
    """Parameters, gradients and optimizer, GiB."""
    return sum(float(getattr(found, part)) for part in _STATES) / GIB


@cache
def memory_series() -> tuple[MemorySeries, ...]:
    """All series of ``points/memory.yaml``."""
    return tuple(_series(entry, (0.1, "allocated")) for entry in _file()["series"])


@cache
def memory_options() -> tuple[MemorySeries, ...]:
    """Runs with and without an option: the first point of a series is without any."""
    found = []
    for entry in _file()["options"]:
        bare = {"name": "without", "measured": entry["measured"], **entry["without"]}
        points = [bare, *entry["points"]]
        found.append(_series({**entry, "points": points}, (1.0, "allocated")))
    return tuple(found)


@cache
def memory_choices() -> MemorySeries:
    """Published runs with what their GPUs have as ``measured``."""
    (entry,) = _file()["choices"]
    return _series(entry, (1.0, "device"))


def job_of(content: dict[str, Any]) -> Job:
    """The job of a mapping that leaves out its name and its time."""
    usual = {"format": "placer/job", "version": 1, "name": "measured"}
    rate = {"compute": {"tflops_per_gpu": 400}}
    text = json.dumps(usual | rate | content)
    return decode_job(parse_document(text, "memory.yaml"))


def _series(entry: dict[str, Any], usual: tuple[float, str]) -> MemorySeries:
    return MemorySeries(
        entry["title"],
        entry["source"],
        entry.get("of", usual[1]),
        entry["stage"],
        entry.get("aim", usual[0]),
        tuple(_point(entry["job"], dict(point)) for point in entry["points"]),
    )


def _point(base: dict[str, Any], point: dict[str, Any]) -> MemoryPoint:
    name, measured = point.pop("name"), point.pop("measured")
    states = point.pop("states", 0.0)
    content = dict(base)
    for key, value in point.items():
        both = isinstance(value, dict) and isinstance(content.get(key), dict)
        content[key] = {**content[key], **value} if both else value
    if isinstance(content["model"], str):
        content["model"] = _file()["models"][content["model"]]
    return MemoryPoint(name, job_of(content), measured, states)


@cache
def _file() -> dict[str, Any]:
    text = (FOLDER / "points/memory.yaml").read_text()
    return dict(yaml.safe_load(text))
