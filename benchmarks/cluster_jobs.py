"""Nine kinds of jobs, as large as a machine holds, for both objectives."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.clusters import FAMILIES, HISTORIES, machine
from benchmarks.instances import EXPERT_WEIGHTS, PRIORITY_WEIGHTS
from placer.documents import document_of
from placer.job.read import decode_job

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

LLAMA_70B = {
    "layers": 80,
    "hidden": 8192,
    "ffn": 28672,
    "heads": 64,
    "kv_heads": 8,
    "vocab": 128256,
}
QWEN_235B = {
    "layers": 94,
    "hidden": 4096,
    "ffn": 12288,
    "heads": 64,
    "kv_heads": 4,
    "vocab": 151936,
    "experts": 128,
    "top_k": 8,
    "expert_ffn": 1536,
    "moe_layers": 94,
}
LLAMA_405B = {"model": "llama3.1-405b", "stages": {"embedding": 1, "loss": 1}}
DEEPSEEK = {
    "model": "deepseek-v3",
    "stages": {"embedding": 0, "loss": 1},
    "bytes": {"activation": 2, "gradient": 2, "parameter_gather": 1},
}
# Axes on hosts of 8, axes in racks of 72, and the rest of the job.
KINDS: dict[str, tuple[dict[str, int], dict[str, int], dict[str, Any]]] = {
    "dense": (
        {"tp": 8, "pp": 4, "vp": 2},
        {"tp": 4, "pp": 4, "vp": 2},
        {"model": LLAMA_70B},
    ),
    "dense, cp": (
        {"tp": 4, "cp": 2, "pp": 8, "vp": 2},
        {"tp": 4, "cp": 2, "pp": 8, "vp": 2},
        LLAMA_405B,
    ),
    "deep pipeline": (
        {"tp": 8, "pp": 16, "vp": 2},
        {"tp": 4, "pp": 16, "vp": 2},
        LLAMA_405B,
    ),
    "long context": (
        {"tp": 8, "cp": 4, "pp": 4, "vp": 2},
        {"tp": 4, "cp": 8, "pp": 4, "vp": 2},
        {**LLAMA_405B, "sequence": 131072, "micro_batches": 4},
    ),
    "experts": (
        {"ep": 8, "pp": 8, "vp": 2},
        {"ep": 32, "pp": 8, "vp": 2},
        DEEPSEEK,
    ),
    "wide experts": (
        {"ep": 32, "pp": 4, "vp": 2},
        {"ep": 64, "pp": 4, "vp": 2},
        DEEPSEEK,
    ),
    "experts, tp": (
        {"tp": 4, "ep": 8, "etp": 2, "pp": 2, "vp": 2},
        {"tp": 4, "ep": 32, "etp": 2, "pp": 2, "vp": 2},
        {"model": QWEN_235B, "micro_batches": 16},
    ),
    "fsdp": ({}, {}, {"model": LLAMA_70B, "data_parallel": {"sharding": "zero3"}}),
    "hsdp": (
        {},
        {},
        {
            "model": LLAMA_70B,
            "data_parallel": {"sharding": "hsdp", "shard_size": 64},
        },
    ),
}
TFLOPS = {"hosts": 420, "racks": 1000}
# A tp group lies in a node of hosts, and in a rack.
TP_WITHIN = {"hosts": "node", "racks": "rack"}
LAUNCHERS = ("free", "free", "node-contiguous")
# Of most machines, and of every sixteenth.
GPUS, MANY_GPUS, MANY = (160, 2_048), 8_192, 16


@dataclass(frozen=True, eq=False)
class Draw:
    """A machine and a job drawn from a seed.

    Attributes
    ----------
    topology : Topology
    job : Job
    family, history, kind : str
        Of `FAMILIES`, `HISTORIES` and `KINDS`.
    missing : float
        Share of the GPUs of the leaves (racks) it has nodes in that it lacks.
    """

    topology: Topology
    job: Job
    family: str
    history: str
    kind: str
    missing: float


def drawn(seed: int) -> Draw:
    """The draw of a seed: 90 of them have every job with every history once."""
    rng = np.random.default_rng([seed, *GPUS])
    family = list(FAMILIES)[seed % 2]
    kind = list(KINDS)[seed // 2 % 9]
    history = HISTORIES[(seed + seed // 18) % 5]
    low, high = GPUS
    while True:
        size = int(low * (high / low) ** rng.random())
        size = MANY_GPUS if seed % MANY == MANY - 1 else size
        topology, missing = machine(rng, family, history, size)
        load = float(rng.choice((0.75, 0.9, 0.97, 1.0)))
        found = job(topology, family, kind, load, str(rng.choice(LAUNCHERS)))
        if found is not None:
            return Draw(topology, found, family, history, kind, missing)


def job(
    topology: Topology, family: str, kind: str, load: float, launcher: str
) -> Job | None:
    """The largest job of a kind for a share of a machine; None if it holds none."""
    on_hosts, in_racks, rest = KINDS[kind]
    axes = dict(on_hosts if family == "hosts" else in_racks)
    dense = {axis: axes.get(axis, 1) for axis in ("tp", "cp", "pp")}
    inside = dense["tp"] * dense["cp"]
    expert = axes.get("ep", 1) * axes.get("etp", dense["tp"])
    shard = rest.get("data_parallel", {}).get("shard_size", 1)
    replicas = lcm(lcm(inside, expert) // inside, shard)
    step = inside * dense["pp"] * replicas
    dp = int(load * _usable(topology, family, dense["tp"])) // step * replicas
    if dp == 0:
        return None
    document = {
        "format": "placer/job",
        "version": 1,
        "name": kind,
        "parallelism": {**axes, "dp": dp, "order": "tp-cp-ep-dp-pp"},
        "sequence": 4096 if "ep" in axes else 8192,
        "micro_batches": max(8, dense["pp"]),
        "overlap": {"tp": False, "cp": True, "pp": True, "ep": False},
        "compute": {"tflops_per_gpu": TFLOPS[family], "fixed_time": "50ms"},
        "launcher": {"ranks": launcher},
        "weights": {"tp": 4000, **EXPERT_WEIGHTS} if "ep" in axes else PRIORITY_WEIGHTS,
        "require": {"tp": TP_WITHIN[family]} if dense["tp"] > 1 else {},
        **rest,
    }
    return decode_job(document_of(document, kind))


def _usable(topology: Topology, family: str, tp: int) -> int:
    """GPUs that whole tp groups can use."""
    tier = [one.name for one in topology.tiers].index(TP_WITHIN[family])
    room = np.bincount(topology.domain_of_node[tier], topology.gpus_of_node)
    return int((room // tp * tp).sum())
