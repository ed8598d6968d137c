"""Machines and jobs of the tests of allocations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placer.documents import parse_document
from placer.job.read import decode_job
from placer.topology.read import parse_topology

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology


def racks(
    sizes: Mapping[str, int | Sequence[int]],
    gpus: int = 4,
    joined: bool = True,
    oversubscription: float = 1,
) -> Topology:
    """Racks of so many nodes, or of nodes of so many GPUs each.

    NVLink joins a rack where ``joined``, else a node.
    """
    nodes = []
    for name, size in sizes.items():
        counts = [gpus] * size if isinstance(size, int) else size
        nodes += [
            {"names": f"{name}{i:02}", "rack": name, "gpus": count}
            for i, count in enumerate(counts, start=1)
        ]
    inner = {"bandwidth": 900e9, "latency": 1e-6, "scale_up": True}
    outer = {"bandwidth": 50e9, "latency": 5e-6}
    content = {
        "format": "placer/topology",
        "version": 1,
        "name": "racks",
        "tiers": [
            {"name": "node", "size": gpus, **inner},
            {"name": "rack", **(inner if joined else outer)},
            {"name": "cluster", **outer, "oversubscription": oversubscription},
        ],
        "nodes": nodes,
    }
    return parse_topology(json.dumps(content), "racks.json")


def training(name: str = "training", **sizes: Any) -> Job:
    """A training job of these axes; ``require`` and ``launcher`` too."""
    require = sizes.pop("require", {})
    launcher = sizes.pop("launcher", "node-contiguous")
    content = {
        "format": "placer/job",
        "version": 1,
        "name": name,
        "parallelism": sizes,
        "model": "llama3.1-405b",
        "sequence": 8192,
        "micro_batch": 1,
        "micro_batches": 8,
        "overlap": {"cp": True, "pp": True},
        "compute": {"micro_batch_time": "120ms", "fixed_time": "200ms"},
        "launcher": {"ranks": launcher},
        "require": require,
    }
    return decode_job(parse_document(json.dumps(content), "job.json"))
