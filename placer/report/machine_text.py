"""A machine as a page of plain text: its tiers, and its tree folded into one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from placer.base.arrays import IntArray
from placer.base.hostlist import compress
from placer.base.units import (
    counted,
    format_bandwidth,
    format_bytes,
    format_count,
    format_seconds,
)
from placer.job.adapters import trained_parameters
from placer.job.even import told
from placer.job.model import Job
from placer.job.models import total_parameters
from placer.report.columns import columns
from placer.topology.affinity import gpu_words
from placer.topology.machine import Machine
from placer.topology.model import Tier, Topology

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


_MAX_SIZES = 8
_MAX_LINKS = 10
_HEADER: tuple[str, ...] = (
    "tier",
    "domains",
    "GPUs each",
    "bandwidth",
    "latency",
    "oversubscription",
    "efficiency",
    "link",
)


def draw(topology: Topology) -> str:
    """The machine as text, lines without trailing blanks."""
    lines = [topology.name]
    if topology.description:
        lines.append(topology.description)
    lines += [parts(topology), "", *_table(topology), "", *_tree(topology.by_island)]
    for what, factor in (
        ("bandwidth", topology.bandwidth_factor),
        ("compute", topology.speed_of_node),
    ):
        if slow := int(np.count_nonzero(factor < 1.0)):
            lines.append(f"{counted(slow, 'node')} with a {what} factor below 1")
    lines += _links(topology)
    if islands := topology.islands:
        groups = "; ".join(map(gpu_words, islands.groups))
        lines.append(f"{islands.tiers[0].name}: {groups}")
    lines += topology.affinity.words()
    by_reason: dict[str, list[str]] = {}
    for name, reason in topology.unavailable.items():
        by_reason.setdefault(reason, []).append(name)
    lines += [f"left out, {why}: {compress(own)}" for why, own in by_reason.items()]
    if topology.sources:
        lines += ["", "sources", *(f"  {source}" for source in topology.sources)]
    return "\n".join(line.rstrip() for line in lines)


def parts(topology: Topology) -> str:
    """How much of everything: ``4 nodes, 8 islands, 32 GPUs``."""
    seen = topology.by_island
    inside = reversed(range(seen.node_tier))
    counts = [
        (topology.num_nodes, "node"),
        *((len(seen.domain_names[t]), seen.tiers[t].name) for t in inside),
        (topology.num_gpus, "GPU"),
    ]
    return ", ".join(counted(number, noun) for number, noun in counts)


def _links(topology: Topology) -> Iterator[str]:
    """The links between named domains, the slowest first, a few of many."""
    links = sorted(topology.links, key=lambda link: (link.bandwidth, link.between))
    for link in links[:_MAX_LINKS]:
        one, other = link.between
        facts = format_bandwidth(link.bandwidth), format_seconds(link.latency)
        yield f"link {one} - {other}: {', '.join(facts)}"
    if len(links) > _MAX_LINKS:
        yield f"and {counted(len(links) - _MAX_LINKS, 'faster link')}"


def tier_rows(topology: Topology) -> list[tuple[str, ...]]:
    """A head, and a row a tier, outermost first."""
    seen = topology.by_island
    outermost_first = reversed(list(enumerate(seen.tiers)))
    rows = (_row(tier, _gpus_of_domain(seen, t)) for t, tier in outermost_first)
    return [_HEADER, *rows]


def _table(topology: Topology) -> Iterator[str]:
    """Lines of the tiers, outermost first."""
    rows = tier_rows(topology)
    for line, row in zip(columns([row[:-1] for row in rows]), rows, strict=True):
        yield f"{line}  {row[-1]}"


def _row(tier: Tier, gpus: IntArray) -> tuple[str, ...]:
    least, most = int(gpus.min()), int(gpus.max())
    return (
        tier.name,
        str(len(gpus)),
        str(most) if least == most else f"{least}-{most}",
        format_bandwidth(tier.bandwidth),
        format_seconds(tier.latency),
        f"{tier.oversubscription:g}",
        f"{tier.efficiency:g}",
        ("scale-up" if tier.scale_up else "scale-out") + ", apart" * tier.apart,
    )


def _tree(topology: Machine) -> list[str]:
    """``16 blocks x 18 nodes x 4 GPUs``; sizes of every uneven tier if it is not so."""
    names = [tier.name for tier in topology.tiers]
    sizes = [_gpus_of_domain(topology, t) for t in range(len(names))]
    uneven = [
        f"{name}: {_histogram(gpus)}"
        for name, gpus in zip(names, sizes, strict=True)
        if gpus.min() != gpus.max()
    ]
    if uneven:
        return uneven[::-1]
    gpus_of_domain = [1, *(int(gpus[0]) for gpus in sizes)]
    factors = [
        counted(outer // inner, kind)
        for (inner, outer), kind in zip(
            pairwise(gpus_of_domain), ["GPU", *names[:-1]], strict=True
        )
    ]
    return [f"{names[-1]}: {' x '.join(reversed(factors))}"]


def _gpus_of_domain(topology: Machine, t: int) -> IntArray:
    """GPUs of each domain of tier ``t``; shape (domains,)."""
    row = topology.domain_of_node[t]
    counts = np.bincount(row, weights=topology.gpus_of_node)
    return counts.astype(np.int64)


def _histogram(gpus: IntArray) -> str:
    """``118 of 72 GPUs, 10 of 64 GPUs``: the commonest sizes first."""
    sizes, counts = np.unique(gpus, return_counts=True)
    order: Sequence[int] = np.lexsort((-sizes, -counts)).tolist()
    parts = [f"{counts[i]} of {counted(int(sizes[i]), 'GPU')}" for i in order]
    more = len(parts) - _MAX_SIZES
    if more > 0:
        rest = int(sum(counts[i] for i in order[_MAX_SIZES:]))
        parts = [*parts[:_MAX_SIZES], f"{rest} of {counted(more, 'other size')}"]
    return ", ".join(parts)
