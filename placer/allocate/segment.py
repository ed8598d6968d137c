"""Before the nodes exist: how many nodes must lie in one NVLink domain.

Slurm's ``--segment`` gives nodes in segments that lie in one block each; a segment
divides the nodes. So a segment keeps groups in a domain where its GPUs are whole units
of ranks that belong together. The largest that a domain has room for is taken: rings of
gradients then cross the fewest domains. Schedulers find a smaller one sooner.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

from placer.base.arrays import divisors
from placer.base.units import counted
from placer.job.axes import Parallelism

# The rule of NVIDIA-NeMo/Megatron-Bridge's launcher: the largest divisor up to this.
PUBLIC_MOST = 18
_LABEL = "nvidia.com/gpu.clique"
_SLICE = "kueue.x-k8s.io/podset-slice"


@dataclass(frozen=True)
class Segment:
    """A segment, and what it keeps in a domain."""

    # nodes and size: of the job, and of a segment.
    nodes: int
    size: int
    # Axes whose groups it keeps whole, those most worth it first.
    keeps: tuple[str, ...]
    # Ranks of an ep group that share a domain, where it lies in equal parts; else 0.
    parts: int
    least: int  # the smallest segment that keeps as much

    @property
    def text(self) -> str:
        """What it keeps, in words."""
        whole = ", ".join(self.keeps)
        parts = f"ep in parts of {self.parts}" if self.parts else ""
        return " and ".join(filter(None, (whole, parts))) or "no group of several nodes"


def units_of(axes: Parallelism) -> list[tuple[tuple[str, ...], int, int]]:
    """Axes kept whole, ranks of an ep group in a part, and ranks tied; best first."""
    dense, expert = axes.tp * axes.cp, axes.etp * axes.ep
    together = lcm(dense, expert)
    found: list[tuple[tuple[str, ...], int, int]] = [
        (("tp", "cp", "ep", "pp"), 0, together * axes.pp),
        (("tp", "cp", "ep"), 0, together),
        *(
            (("tp", "cp"), size, lcm(dense, axes.etp * size))
            for size in reversed(divisors(axes.ep)[1:-1])
        ),
        (("tp", "cp"), 0, dense),
        (("tp",), 0, axes.tp),
    ]
    return [
        (tuple(a for a in keeps if getattr(axes, a) > 1), parts, unit)
        for keeps, parts, unit in found
    ]


def segment_of(axes: Parallelism, nodes: int, gpus: int, domain: int) -> Segment:
    """The segment that keeps the most in domains of ``domain`` nodes."""
    sizes = [size for size in reversed(divisors(nodes)) if size <= domain]
    for keeps, parts, unit in units_of(axes):
        fitting = [s for s in sizes if s * gpus % unit == 0]
        if fitting:
            return Segment(nodes, fitting[0], keeps, parts, fitting[-1])
    # A node holds less than a tp group, or no whole number of them.
    return Segment(nodes, sizes[0], (), 0, 1)


def is_kept(axes: Parallelism, segment: Segment) -> bool:
    """Whether groups of tp, cp and ep all stay inside a domain, or in equal parts."""
    return units_of(axes)[1][0] == tuple(a for a in segment.keeps if a != "pp")


def has_job(axes: Parallelism, nodes: int, gpus: int) -> bool:
    """Whether all GPUs of so many nodes can have ranks of a job with these degrees."""
    whole = lcm(axes.tp * axes.cp, axes.etp * axes.ep) * axes.pp
    return nodes * gpus % whole == 0


def advice(axes: Parallelism, nodes: int, gpus: int, domain: int) -> dict[str, Any]:
    """All that is said of a job of so many nodes, ready for JSON."""
    found = segment_of(axes, nodes, gpus, domain)
    fits = is_kept(axes, found) or found.parts > 0
    usable = [
        segment
        for count in range(nodes, 0, -1)
        if has_job(axes, count, gpus)
        for segment in [segment_of(axes, count, gpus, domain)]
        if is_kept(axes, segment)
    ]
    better = max(
        (one for one in usable if 4 * one.nodes >= 3 * nodes),
        key=lambda one: (one.size * 2 > domain, one.nodes, one.size),
        default=None,
    )
    room = counted(domain, "node")
    why = f"keeps {found.text} inside a domain of {room}"
    if found.least < found.size:
        why += f"; {found.least} keeps as much, and is sooner given"
    if not fits:
        asked = counted(nodes, "node")
        why = f"no segment of {asked} keeps tp, cp and ep inside {room}"
    document: dict[str, Any] = {
        "nodes": nodes,
        "domain": domain,
        "segment": found.size,
        "keeps": list(found.keeps),
        "ep_ranks_a_domain": found.parts or (axes.ep if "ep" in found.keeps else 0),
        "why": why,
        "fits": fits,
        "has_ranks_for_all": has_job(axes, nodes, gpus),
        "flags": _flags(found.size, domain),
        "public": _public(axes, nodes, gpus, domain, found),
    }
    if nodes > 1:
        fewer = segment_of(axes, nodes - 1, gpus, domain)
        document["one_node_fewer"] = {
            "nodes": nodes - 1,
            "segment": fewer.size,
            "keeps": fewer.text,
            "has_ranks_for_all": has_job(axes, nodes - 1, gpus),
        }
    if better is not None and better.nodes != nodes and better.size > found.size:
        document["better"] = {
            "nodes": better.nodes,
            "segment": better.size,
            "keeps": better.text,
        }
    return document


def _flags(size: int, domain: int) -> dict[str, Any]:
    """A segment as schedulers take it."""
    return {
        "slurm": f"--segment={size}",
        "environment": f"SBATCH_SEGMENT_SIZE={size}",
        "pending": f"scontrol update JobId=ID SegmentSize={size}",
        "topology.conf": f"BlockSizes={domain}",
        "kueue": {f"{_SLICE}-required-topology": _LABEL, f"{_SLICE}-size": str(size)},
    }


def _public(
    axes: Parallelism, nodes: int, gpus: int, domain: int, found: Segment
) -> list[dict[str, Any]]:
    """What rules that others use would give, and whether they are right here."""
    by_size = 16 if nodes * gpus >= 128 else 4 if nodes * gpus >= 32 else 1
    rules = {
        "Megatron-Bridge: the largest divisor up to 18": max(
            size for size in divisors(nodes) if size <= PUBLIC_MOST
        ),
        "NVIDIA for NVL72: 16 from 128 GPUs on, 4 from 32, else 1": by_size,
    }
    document = []
    for rule, size in rules.items():
        if size == found.size:
            verdict = "the same"
            if not is_kept(axes, found):
                verdict += f", and keeps no more than {found.text}"
        elif nodes % size:
            verdict = f"refused: {size} does not divide {counted(nodes, 'node')}"
        elif size > domain:
            verdict = f"refused: a domain has {counted(domain, 'node')}"
        else:
            keeps = next(
                keeps + ((f"ep in parts of {parts}",) if parts else ())
                for keeps, parts, unit in [*units_of(axes), ((), 0, 1)]
                if size * gpus % unit == 0
            )
            told = ", ".join(keeps) or "no group of several nodes"
            verdict = f"keeps {told}"
        document.append({"rule": rule, "segment": size, "verdict": verdict})
    return document
