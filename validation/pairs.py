"""Pairs of public steps: calibrated on one, at one rate, the other is predicted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from placer.cost.step import StepModel
from placer.cost.work import on_gpu
from placer.documents import parse_document
from placer.job.fixed import with_fixed_time
from placer.job.pace import compute_at
from placer.job.read import decode_job
from placer.topology.read import read_topology
from validation.markdown import percent, seconds, table

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

FILE = Path(__file__).with_suffix(".yaml")
# Errors that are promised: the median, and that of nine pairs in ten.
MEDIAN, MOST = 0.02, 0.08
_HALVINGS = 45
_OVERLAP = {"tp": True, "cp": True, "pp": True, "ep": False}
_BOTH = (
    "model",
    "sequence",
    "stages",
    "expert_parallel",
    "host_time",
    "bytes",
    "data_parallel",
)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two steps of one model on one kind of machine.

    Attributes
    ----------
    title, source : str
    machine : Topology
    jobs : pair of Job
    steps_s : pair of float
        As they were measured.
    untested : str
        Why it is not judged; empty where it is.
    """

    title: str
    source: str
    machine: Topology
    jobs: tuple[Job, Job]
    steps_s: tuple[float, float]
    untested: str


@cache
def pairs() -> tuple[Pair, ...]:
    """All pairs of the file."""
    return tuple(_pair(entry) for entry in yaml.safe_load(FILE.read_text())["pairs"])


def _pair(entry: Mapping[str, Any]) -> Pair:
    machine = _in_whole_parts(read_topology(entry["machine"]))
    one, other = (_job(entry, entry[which]) for which in ("one", "other"))
    measured = entry["one"]["step"], entry["other"]["step"]
    return Pair(
        entry["title"],
        entry["source"],
        machine,
        (one, other),
        measured,
        entry.get("untested", ""),
    )


def _job(both: Mapping[str, Any], own: Mapping[str, Any]) -> Job:
    axes = dict(own.get("axes", {}))
    inside = axes.get("tp", 1) * axes.get("cp", 1) * axes.get("pp", 1)
    axes["dp"] = own["gpus"] // inside
    size = own.get("micro_batch", 1)
    memory = both.get("memory", {}) | own.get("memory", {})
    said = {**both, **own}
    document = {key: said[key] for key in _BOTH if key in said} | {
        "format": "placer/job",
        "version": 1,
        "name": "pair",
        "parallelism": axes,
        "micro_batch": size,
        "micro_batches": own["batch"] // axes["dp"] // size,
        "memory": {"gemm": both["gemm"], **memory},
        "overlap": _OVERLAP | both.get("overlap", {}) | own.get("overlap", {}),
        "compute": {"tflops_per_gpu": 1000.0},
    }
    return decode_job(parse_document(json.dumps(document), both["title"]))


def _in_whole_parts(machine: Topology) -> Topology:
    """As many nodes of each scale-up domain as a power of two has."""
    domain = machine.domain_of_node[machine.scale_up_tier]
    place = np.arange(len(domain)) - np.unique(domain, return_index=True)[1][domain]
    kept = 2 ** np.floor(np.log2(np.bincount(domain))).astype(np.int64)
    return machine.select(np.flatnonzero(place < kept[domain]))


def predicted_s(pair: Pair) -> float:
    """The second step, at the rate at which the first takes what was measured."""
    jobs = (on_gpu(with_fixed_time(job), pair.machine.gpu) for job in pair.jobs)
    one, other = jobs
    low, high = 1.0, 1e6
    for _ in range(_HALVINGS):
        rate = (low * high) ** 0.5
        one = replace(one, compute=replace(one.compute, tflops_per_gpu=rate))
        if _step_s(pair.machine, one) > pair.steps_s[0]:
            low = rate
        else:
            high = rate
    other = replace(other, compute=one.compute)
    return _step_s(pair.machine, replace(other, compute=compute_at(one, other)))


def _step_s(machine: Topology, job: Job) -> float:
    """Along the hosts."""
    gpus = np.arange(job.world_size)
    return StepModel(machine, job).step(gpus).step_time_s


def error(pair: Pair) -> float:
    """Predicted over measured, less one."""
    return predicted_s(pair) / pair.steps_s[1] - 1


def errors() -> list[float]:
    """Of the pairs that are judged."""
    return [error(pair) for pair in pairs() if not pair.untested]


def judged(found: list[float]) -> tuple[float, float]:
    """The median of absolute errors, and the share of them within `MOST`."""
    sizes = [abs(one) for one in found]
    return median(sizes), sum(size <= MOST for size in sizes) / len(sizes)


def pair_table() -> str:
    """Every pair, those that are not judged too."""
    rows = []
    for pair in pairs():
        note = f"; not judged: {pair.untested}" * bool(pair.untested)
        what = f"{pair.title} ({pair.source}{note})"
        rows.append((what, seconds(pair.steps_s[1]), percent(error(pair), 1)))
    return table(("pair", "second step", "error"), rows)
