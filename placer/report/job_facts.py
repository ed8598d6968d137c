"""What a job is, in a few words each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from placer.base.units import format_bytes, format_count
from placer.job.adapters import trained_parameters
from placer.job.even import told
from placer.job.models import total_parameters

if TYPE_CHECKING:
    from placer.job.model import Job

_AXES = ("tp", "cp", "ep", "pp", "dp")
_SIZES = ("tp", "cp", "ep", "etp", "pp", "vp", "dp")


def facts(job: Job) -> dict[str, str]:
    """Name -> words; empty where the job does not have it."""
    axes = job.parallelism
    order = "auto" if axes.auto_order else "-".join(axes.order)
    return {
        "description": job.description,
        "ranks": f"{job.world_size:,}",
        **_roles(job),
        "axes": "" if job.roles else _axes_text(job, _SIZES),
        "order": "" if job.roles else order,
        "model": job.model.name if job.model else "",
        "adapters": _adapters(job),
        "batch": f"{job.micro_batches} micro-batches of {job.micro_batch} x "
        f"{job.sequence:,} tokens a replica"
        if job.model
        else "",
        "groups": ", ".join(f"{g.name} ({g.collective})" for g in job.groups),
        "require": ", ".join(told(a, t) for a, t in job.require.items()),
        "launcher": job.launcher,
        "started by": str(job.started or ""),
        "weights": ", ".join(f"{a} {w:,.9g}" for a, w in job.weights.items()),
        "sha256": job.sha256,
    }


def _adapters(job: Job) -> str:
    """What alone is trained: ``rank 32, 83.89 M of 8.03 B parameters``."""
    if job.adapters is None or job.model is None:
        return ""
    rank = f"rank {job.adapters.rank}, " if job.adapters.rank else ""
    few = format_count(trained_parameters(job.model, job.adapters))
    return f"{rank}{few} of {format_count(total_parameters(job.model))} parameters"


def _roles(job: Job) -> dict[str, str]:
    """The roles of a workload and what they send each other."""
    found = {}
    for role in job.roles:
        count = f"{role.instances:,} x " if role.instances > 1 else ""
        found[f"role {role.name}"] = f"{count}{title(role.job)}"
    for number, sent in enumerate(job.transfers, start=1):
        size = format_bytes(sent.size_bytes)
        ends = f"{sent.sender} to {sent.receiver}"
        found[f"transfer {number}"] = f"{ends}, {size} a cycle, {sent.pattern}"
    return found


def title(job: Job) -> str:
    """``128 ranks, tp 4 pp 8 dp 4``: how many, and the axes that have members."""
    axes = _axes_text(job, _AXES)
    return f"{job.world_size:,} ranks{', ' if axes else ''}{axes}"


def _axes_text(job: Job, axes: Sequence[str]) -> str:
    sizes = {axis: job.parallelism.size(axis) for axis in axes}
    return " ".join(f"{axis} {size}" for axis, size in sizes.items() if size > 1)
