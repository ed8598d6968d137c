"""Azure's MLPerf v6.0 run: exposed cross-rack time, volumes and single mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.api.score import score
from placer.calibrate.fit import calibrate
from placer.cost.collectives import ring_pass
from placer.cost.fabric import Fabric
from placer.cost.rings import build_rings
from placer.placement.baselines import baseline
from placer.placement.placement import Placement
from placer.topology.allocation import allocate
from placer.topology.read import read_topology
from validation.files import series
from validation.markdown import milliseconds, percent, seconds, table
from validation.steps import calibrated

if TYPE_CHECKING:
    from placer.calibrate.fit import Prediction
    from placer.job.model import Job
    from placer.topology.model import Topology

SERIES = "llama3.1-405b-gb200-fp4"
SMALL, LARGE = "Azure, 7,168 GPUs", "Azure, 8,192 GPUs"
RACK = 64  # GPUs in use
PUBLISHED = 1.2734, 1.2712  # s on 112 and 128 racks: Azure HPC blog, June 2026


def prediction(name: str) -> Prediction:
    """The prediction at one of Azure's points."""
    return next(p for p in calibrated(SERIES).predictions if p.point.name == name)


def racks_apart() -> tuple[float, float]:
    """What the step gains from 112 to 128 racks: as published, and as predicted."""
    small, large = prediction(SMALL), prediction(LARGE)
    return PUBLISHED[1] / PUBLISHED[0] - 1, large.step_s / small.step_s - 1


def from_elsewhere() -> tuple[float, float]:
    """The large step from the points that are not Azure's, and as measured, s."""
    measured = series(SERIES)
    points = tuple(
        replace(point, fit=point.name not in (SMALL, LARGE))
        for point in measured.points
    )
    fit = calibrate(replace(measured, points=points))
    found = next(p for p in fit.predictions if p.point.name == LARGE)
    return found.step_s, found.point.step_s


@cache
def inputs() -> tuple[Topology, Job]:
    """Machine and job of the large run, with the times of its series."""
    point = prediction(LARGE).point
    return point.topology, calibrated(SERIES).applied_to(point.job)


@cache
def scored() -> dict[str, Any]:
    """Score of the large run as it was placed."""
    topology, job = inputs()
    return score(topology, job, baseline("given-order", topology, job))


def seen() -> tuple[float, float]:
    """Cross-rack time that is seen, s and as a share of the step.

    Without what hidden traffic takes of the work beside it: a trace does not show it.
    """
    topology, job = inputs()
    mode = replace(job.data_parallel, sm_share=0.0)
    job = replace(job, data_parallel=mode)
    found = score(topology, job, baseline("given-order", topology, job))
    return found["exposed_scale_out_s"], found["exposed_scale_out_share"]


def step_parts() -> str:
    """Where the predicted step goes."""
    found = scored()
    parts = [("compute", found["compute_s"]), ("pipeline bubble", found["bubble_s"])]
    parts += [(f"exposed {axis}", s) for axis, s in found["exposed_s"].items() if s]
    parts += [("fixed", found["fixed_s"]), ("step", found["step_time_s"])]
    rows = [(what, milliseconds(s)) for what, s in parts]
    return table(("part", "predicted"), rows)


@dataclass(frozen=True)
class Mistake:
    """One thing changed, and what arithmetic expects of it (shares of the step)."""

    what: str
    topology: Topology
    job: Job
    placement: Placement
    least: float
    most: float
    why: str


def mistakes() -> str:
    """Each single mistake: predicted slow-down beside the expected one."""
    usual = scored()["step_time_s"]
    rows = []
    for change in _mistakes():
        found = score(change.topology, change.job, change.placement)["step_time_s"]
        slowdown = found / usual - 1
        expected = f"{percent(change.least, 1)} to {percent(change.most, 1)}"
        inside = change.least - 5e-4 <= slowdown <= change.most + 5e-4
        rows.append(
            (
                f"{change.what} ({change.why})",
                expected,
                percent(slowdown, 1),
                seconds(found),
                "yes" if inside else "no",
            )
        )
    head = ("change", "expected", "predicted", "step", "inside")
    return table(head, rows)


def _mistakes() -> Iterator[Mistake]:
    topology, job = inputs()
    usual = baseline("given-order", topology, job)
    yield Mistake(
        "TP groups over four racks",
        topology,
        job,
        _spread(job, "tp"),
        0.65,
        0.86,
        "101.5 GB at one NIC instead of NVLink: 69 %, 86 % with the second gather",
    )
    mode = replace(job.data_parallel, overlap_reduce=False, overlap_gather=False)
    exposed = replace(job, data_parallel=mode)
    why = "254 ms on two NICs, all of it seen"
    yield Mistake("no DP overlap", topology, exposed, usual, 0.17, 0.20, why)
    yield Mistake(
        "every PP hop between racks",
        topology,
        job,
        _spread(job, "pp"),
        0.02,
        0.04,
        "0.34 ms a message instead of 0.05 ms, 14 of them in a row and more",
    )
    yield Mistake(
        "CP pairs over two racks",
        topology,
        job,
        _spread(job, "cp"),
        0.0,
        0.01,
        "16 ms on one NIC, beside attention",
    )
    for share, what, least, most, why in (
        (0.5, "half the NIC rate", 0.02, 0.03, "twice the tail and head"),
        (0.25, "a quarter of the NIC rate", 0.20, 0.30, "past the overlap windows"),
    ):
        slow = _with_nics(topology, share)
        yield Mistake(what, slow, job, usual, least, most, why)
    split = split_pair()
    why = "its gradient groups go from two NICs to one: as half the rate"
    placement = baseline("given-order", split, job)
    yield Mistake("one CP pair split", split, job, placement, 0.015, 0.035, why)


def split_pair() -> Topology:
    """The run's hosts, with the second host of the first replica in the second rack.

    That host holds the CP partners of the first: the pair talks over the fabric.
    """
    topology, _ = inputs()
    hosts = list(topology.node_names)
    hosts[1] = hosts[16].replace("n01", "n17")
    return allocate(read_topology("azure-gb200-mlperf-v6"), hosts)


def split_slowdown() -> float:
    """Reduction of the split pair's gradient group, in the time of a whole one."""
    topology, job = inputs()
    times = []
    for machine in (topology, split_pair()):
        gpus = baseline("given-order", machine, job).gpu_of_rank
        members = job.parallelism.ranks_of_group["dp_cp"][:1]
        fabric = Fabric.of(machine)
        route = build_rings(fabric, gpus[members]).route(fabric)
        times.append(ring_pass(route, 1e9).transfer.item())
    return times[1] / times[0]


def _spread(job: Job, axis: str) -> Placement:
    """The run with the members of every group of an axis in racks of their own."""
    width = job.parallelism.size(axis)
    rack = np.arange(job.world_size) // RACK
    turned = rack // width * width + (rack + job.parallelism.coordinates[axis]) % width
    gpu_of_rank = np.empty(job.world_size, dtype=np.int64)
    gpu_of_rank[np.argsort(turned, kind="stable")] = np.arange(job.world_size)
    return Placement(gpu_of_rank)


def _with_nics(topology: Topology, share: float) -> Topology:
    tiers = tuple(
        tier if tier.scale_up else replace(tier, bandwidth=tier.bandwidth * share)
        for tier in topology.tiers
    )
    return replace(topology, tiers=tiers)
