"""Cases of the placement benchmark: instances, time jobs and random machines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.cluster_jobs import drawn
from benchmarks.generate import random_case
from benchmarks.instances import INSTANCES, TOYS, load, uneven_racks
from placer.cost.step import StepModel
from placer.job.axes import MEGATRON_DEFAULT_ORDER
from placer.job.edges import hop_edges
from placer.job.read import read_job
from placer.placement.baselines import baseline
from placer.topology.read import read_topology

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

NAMES = {"hop-cost": (*INSTANCES, *TOYS), "time": ("A", "Araw", "B", "Braw")}
RANDOM = "random-"
UNEVEN = "uneven-"
DRAWN = "drawn-"
TIME_TOPOLOGY = "azure-gb200-mlperf-v6"
TIME_JOB = "llama3.1-405b-mlperf-v6"
MEGABYTE = 1e6


def case(name: str, objective: str) -> tuple[Topology, Job]:
    """Machine and job of a case.

    For ``time`` the machine of A or B with the links of `TIME_TOPOLOGY`, and `TIME_JOB`
    without the requirement that a pipeline stays in a rack. Names that end in ``raw``
    tell the mappers, which know no time, the bytes as weights.

    ``uneven-RANKS-LOAD-SEED`` is `uneven_racks`, ``drawn-SEED`` is `drawn`.

    Raises
    ------
    KeyError
        If there is no such case.
    """
    if name.startswith(RANDOM):
        return random_case(int(name.removeprefix(RANDOM)))
    if name.startswith(DRAWN):
        draw = drawn(int(name.removeprefix(DRAWN)))
        if objective == "time":
            return draw.topology, weighted_by_bytes(draw.topology, draw.job)
        return draw.topology, draw.job
    if name.startswith(UNEVEN):
        ranks, share, seed = name.removeprefix(UNEVEN).split("-")
        return uneven_racks(int(ranks), float(share), int(seed))
    if objective == "hop-cost":
        return load(name)
    if name not in NAMES["time"]:
        raise KeyError(name)
    return _time_case(name)


def weighted_by_bytes(topology: Topology, job: Job) -> Job:
    """The job with the megabytes that an edge of an axis carries in a step as weights.

    That is what a mapper, which knows no time, can be told about it.
    """
    placement = baseline("given-order", topology, job)
    sent = StepModel(topology, job).step(placement.gpu_of_rank).traffic()
    weights = {}
    for axis, _, edges in hop_edges(job):
        of_axis = sent.get("dp" if axis == "edp" else axis)
        size = 0.0 if of_axis is None else float(of_axis.bytes_by_tier.sum())
        weights[axis] = max(1, round(size / len(edges) / MEGABYTE))
    return replace(job, weights=weights)


def _time_case(name: str) -> tuple[Topology, Job]:
    machine, _ = load(name.removesuffix("raw"))
    _, weighted = load("Araw" if name.endswith("raw") else "A")
    measured = read_topology(TIME_TOPOLOGY)
    # A leaf is a rack here, so trays inside racks drop out.
    tiers = tuple(
        replace(link, name=tier.name, distance=tier.distance)
        for tier, link in zip(machine.tiers, measured.tiers[1:], strict=True)
    )
    job = read_job(TIME_JOB)
    leaf = machine.tiers[0].name
    job = replace(
        job,
        name=f"{job.name}, {name}",
        parallelism=replace(job.parallelism, order=MEGATRON_DEFAULT_ORDER),
        require={"tp": leaf, "cp": leaf},
        launcher="free",
        weights=weighted.weights,
    )
    return replace(machine, name=name, tiers=tiers), job
