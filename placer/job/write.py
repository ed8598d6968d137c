"""A job back in its file form, everything written out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from placer.assumed import assumed_entry
from placer.job.axes import AUTO_ORDER
from placer.job.even import axis_of, is_even
from placer.job.model import ATTENTION_RATE
from placer.job.parallel import NEWER_EXPERT_KEYS, NEWER_TENSOR_KEYS, SM_SHARE, said

if TYPE_CHECKING:
    from placer.job.adapters import Adapters
    from placer.job.model import Group, Job

_SIZES = ("tp", "cp", "ep", "pp", "vp", "dp", "etp")


def to_document(job: Job) -> dict[str, Any]:
    """The job as a job file, ready for JSON, with every default written out.

    Reading it back gives the same job, with the same digest.
    """
    if job.roles:
        return _workload(job)
    axes = job.parallelism
    document: dict[str, Any] = {
        "format": "placer/job",
        "version": 1,
        "name": job.name,
        "description": job.description,
        "sources": list(job.sources),
        **assumed_entry(job.assumed),
        "parallelism": {axis: axes.size(axis) for axis in _SIZES}
        | {"order": AUTO_ORDER if axes.auto_order else "-".join(axes.order)},
        "model": None if job.model is None else _given(asdict(job.model)),
        "sequence": job.sequence,
        "micro_batch": job.micro_batch,
        "micro_batches": job.micro_batches,
        "bytes": asdict(job.bytes),
        "data_parallel": _data_parallel(job),
        "overlap": asdict(job.overlap),
        "collectives": asdict(job.collectives),
        "tensor_parallel": said(asdict(job.tensor_parallel), NEWER_TENSOR_KEYS),
        "context_parallel": asdict(job.context_parallel),
        "expert_parallel": said(asdict(job.expert_parallel), NEWER_EXPERT_KEYS),
        "stages": None if job.model is None else asdict(job.stages),
        "compute": _compute(job),
        "require": {a: t for a, t in job.require.items() if not is_even(a)},
        "even": {axis_of(a): t for a, t in job.require.items() if is_even(a)} or None,
        "launcher": {"ranks": job.launcher} | _started(job),
        "groups": [
            {
                "name": group.name,
                "collective": group.collective,
                "bytes": group.size_bytes,
                "per_step": group.per_step,
                "overlap": group.overlap,
                "ranks": _ranks(group, job.world_size),
            }
            for group in job.groups
        ],
        "traffic": None if job.traffic is None else job.traffic.to_document(),
        "adapters": None if job.adapters is None else _adapters(job.adapters),
        "host_time": job.host_time,
        "memory": job.memory.to_document() or None,
        "weights": dict(job.weights),
        "rules": job.rules.to_document() or None,
    }
    return {key: value for key, value in document.items() if value not in (None, "")}


def _workload(job: Job) -> dict[str, Any]:
    """The workload file: its transfers are counted a cycle."""
    document: dict[str, Any] = {
        "format": "placer/workload",
        "version": 1,
        "name": job.name,
        "description": job.description,
        "sources": list(job.sources),
        "roles": [
            {
                "name": role.name,
                "job": to_document(role.job),
                "instances": role.instances,
                "steps": role.steps,
            }
            for role in job.roles
        ],
        "transfers": [
            {
                "from": transfer.sender,
                "to": transfer.receiver,
                "pattern": transfer.pattern,
                "bytes": transfer.size_bytes,
                "overlap": transfer.overlap,
                "expert_share": transfer.expert_share,
                "fixed_time": transfer.fixed_time,
            }
            for transfer in job.transfers
        ],
        "launcher": {"ranks": job.launcher},
        "rules": job.rules.to_document() or None,
    }
    return {key: value for key, value in document.items() if value not in (None, "")}


def _started(job: Job) -> dict[str, Any]:
    """What starts the job today, where it is known."""
    return {} if job.started is None else job.started.to_document()


def _ranks(group: Group, world_size: int) -> list[list[int]] | str:
    """Members of each group; ``all`` for the one of the whole world."""
    if len(group.ranks[0]) == world_size and group.ranks == (tuple(range(world_size)),):
        return "all"
    return [list(ranks) for ranks in group.ranks]


def _adapters(adapters: Adapters) -> dict[str, Any]:
    """What is given; that experts have some goes without saying."""
    section = _given(asdict(adapters))
    if adapters.experts:
        del section["experts"]
    return section


def _data_parallel(job: Job) -> dict[str, Any]:
    """What is given; the share of multiprocessors where it is not the usual one."""
    section, mode = _given(asdict(job.data_parallel)), job.data_parallel
    section.pop("sm_share", None)
    return (
        section if mode.sm_share == SM_SHARE else section | {"sm_share": mode.sm_share}
    )


def _compute(job: Job) -> dict[str, Any]:
    """Times and rates; that of attention only where it is not the usual one."""
    section = _given(asdict(job.compute))
    if job.compute.attention_rate == ATTENTION_RATE:
        del section["attention_rate"]
    if job.compute.fixed_time == 0.0:
        section["fixed_time"] = 0.0
    return section


def _given(section: dict[str, Any]) -> dict[str, Any]:
    """The section without the keys whose 0 means that nothing was said."""
    return {
        key: value
        for key, value in section.items()
        if isinstance(value, bool | str) or value
    }
