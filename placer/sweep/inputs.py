"""The machine and the job of one point of a sweep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem, refuse
from placer.degrees.choice import Choice, overlap_at
from placer.degrees.space import broken
from placer.documents import closest
from placer.job.read import job_digest
from placer.job.resize import resized
from placer.sweep.grid import (
    GLOBAL_BATCH,
    GPUS,
    NIC_RATE,
    OVERSUBSCRIPTION,
    SIZES,
    Axis,
    Point,
)

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Tier, Topology


def job_at(job: Job, point: Point, framework: str = "megatron") -> Job:
    """The job with the sizes of a point, checked as if its file had them.

    It obeys the rules of a framework, but for those that the job itself breaks: what
    runs already knows better.
    """
    sizes = {key: int(point[key]) for key in SIZES if key in point}
    gpus, batch = sizes.pop(GPUS, 0), sizes.pop(GLOBAL_BATCH, 0)
    axes = {axis: job.parallelism.size(axis) for axis in ("tp", "cp", "pp", "dp")}
    axes |= {axis: size for axis, size in sizes.items() if axis in axes}
    if gpus:
        replica = axes["tp"] * axes["cp"] * axes["pp"]
        axes["dp"] = sizes["dp"] = _shared(gpus, replica, "tp x cp x pp", GPUS)
    if batch:
        samples = axes["dp"] * job.micro_batch
        what = "dp x micro_batch"
        sizes["micro_batches"] = _shared(batch, samples, what, GLOBAL_BATCH)
    found = resized(job, **sizes)
    if found is job or job.model is None:
        return found
    choice, rules = Choice.of(found), (job, job.model, framework)
    new = broken(choice, *rules) - broken(Choice.of(job), *rules)
    refuse(Problem(f"{framework} refuses {reason}") for reason in sorted(new))
    overlap = overlap_at(job, choice)
    if overlap == found.overlap:
        return found
    found = replace(found, overlap=overlap)
    return replace(found, sha256=job_digest(found))


def _shared(number: int, parts: int, what: str, key: str) -> int:
    """What each part gets of a number that must divide."""
    if number % parts:
        message = f"{what} = {parts:,} does not divide {number:,}"
        raise InputError(message, key=key)
    return number // parts


def machine_at(topology: Topology, point: Point) -> Topology:
    """The machine with the scale-out rates and oversubscriptions of a point."""
    tiers = list(topology.tiers)
    for key, value in point.items():
        name, _, tier = key.partition("_")
        if key == NIC_RATE:
            _require_scale_out(topology)
            for t in range(topology.scale_up_tier + 1, len(tiers)):
                tiers[t] = _at_rate(tiers[t], value, tiers[0].bandwidth)
        elif name == OVERSUBSCRIPTION:
            t = _scale_out_tier(topology, tier)
            tiers[t] = replace(tiers[t], oversubscription=float(value))
    if tuple(tiers) == topology.tiers:
        return topology
    # Not the machine of the file any more, so not its digest either.
    return replace(topology, tiers=tuple(tiers), sha256="")


def check_axes(topology: Topology, axes: Iterable[Axis]) -> None:
    """Nothing, when the machine has what the axes want to change."""
    outermost = topology.tiers[-1].name
    swept = []
    for axis in axes:
        machine_at(topology, {axis.key: axis.values[0]})
        name, _, tier = axis.key.partition("_")
        if name == OVERSUBSCRIPTION:
            swept.append(tier or outermost)
    for tier in swept:
        if swept.count(tier) > 1:
            raise InputError(f"the oversubscription of tier {tier} is swept twice")


def _at_rate(tier: Tier, bandwidth: float, innermost: float) -> Tier:
    """The tier at another rate; a distance that followed the rate follows it again."""
    followed = tier.distance == innermost / tier.bandwidth
    distance = innermost / bandwidth if followed else tier.distance
    return replace(tier, bandwidth=float(bandwidth), distance=distance)


def _scale_out_tier(topology: Topology, name: str) -> int:
    _require_scale_out(topology)
    names = [tier.name for tier in topology.tiers]
    if name and name not in names:
        hint = closest(name, names) or f"its tiers are {', '.join(names)}"
        message = f'the topology {topology.name} has no tier "{name}"'
        raise InputError(message, key=OVERSUBSCRIPTION, hint=hint)
    t = topology.tier_index(name) if name else len(names) - 1
    if t <= topology.scale_up_tier:
        message = f"tier {name} is NVLink, which has no shared uplinks"
        raise InputError(message, key=OVERSUBSCRIPTION)
    return t


def _require_scale_out(topology: Topology) -> None:
    if topology.scale_up_tier + 1 == len(topology.tiers):
        raise InputError(f"the topology {topology.name} has no tier above NVLink")
