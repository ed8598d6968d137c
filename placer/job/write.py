"""A job back in its file form, everything written out."""

from __future__ import annotations

from typing import Any

from placer.assumed import assumed_entry
from placer.documents.records import entries
from placer.job.axes import AUTO_ORDER
from placer.job.even import axis_of, is_even
from placer.job.model import Job
from placer.job.traffic import Group


def to_document(job: Job) -> dict[str, Any]:
    """The job as a job file, ready for JSON, with every default written out.

    Reading it back gives the same job, with the same digest.
    """
    if job.roles:
        return _workload(job)
    axes, require = job.parallelism, job.require
    order = AUTO_ORDER if axes.auto_order else "-".join(axes.order)
    started = {} if job.started is None else entries(job.started)
    return _head("placer/job", job) | entries(
        job,
        description=None,
        sources=None,
        assumed=None,
        parallelism=entries(axes, order=order),
        stages=None if job.model is None else entries(job.stages),
        require={a: tier for a, tier in require.items() if not is_even(a)},
        even={axis_of(a): t for a, t in require.items() if is_even(a)} or None,
        launcher={"ranks": job.launcher} | started,
        groups=[entries(g, ranks=_ranks(g, job.world_size)) for g in job.groups],
        traffic=None if job.traffic is None else job.traffic.to_document(),
        memory=entries(job.memory) or None,
        rules=job.rules.to_document() or None,
    )


def _head(format_name: str, job: Job) -> dict[str, Any]:
    return {
        "format": format_name,
        "version": 1,
        "name": job.name,
        **({"description": job.description} if job.description else {}),
        "sources": list(job.sources),
        **assumed_entry(job.assumed),
    }


def _workload(job: Job) -> dict[str, Any]:
    """The workload file: its transfers are counted a cycle."""
    document: dict[str, Any] = {
        **_head("placer/workload", job),
        "roles": [entries(role, job=to_document(role.job)) for role in job.roles],
        "transfers": [*map(entries, job.transfers)],
        "launcher": {"ranks": job.launcher},
        "rules": job.rules.to_document() or None,
    }
    return {key: value for key, value in document.items() if value is not None}


def _ranks(group: Group, world_size: int) -> list[list[int]] | str:
    """Members of each group; ``all`` for the one of the whole world."""
    if len(group.ranks[0]) == world_size and group.ranks == (tuple(range(world_size)),):
        return "all"
    return [list(ranks) for ranks in group.ranks]
