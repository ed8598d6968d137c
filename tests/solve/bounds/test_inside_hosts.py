"""What is known of groups inside hosts with islands, and of units behind uplinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from placer.documents import document_of
from placer.job.read import decode_job
from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from placer.topology.read import decode_topology
from tests.solve.construct.test_whole_groups import job, machine

DENSE = {"hidden": 1024, "ffn": 4096, "heads": 8, "kv_heads": 8, "vocab": 32000}
SPARSE = {**DENSE, "experts": 16, "top_k": 2, "expert_ffn": 1024, "moe_layers": 2}


def islands(hosts: list[list[int]], node_bandwidth: float = 100e9) -> dict[str, Any]:
    """Hosts of two islands, all of a host in one scale-up domain."""
    fast = {"scale_up": True, "latency": 1e-6}
    tiers = [
        {"name": "island", "size": 4, "bandwidth": 450e9, **fast},
        {"name": "node", "size": 2, "bandwidth": node_bandwidth, **fast},
        {"name": "cluster", "bandwidth": 50e9, "latency": 5e-6},
    ]
    nodes = [{"names": f"h{n}", "gpus": gpus} for n, gpus in enumerate(hosts)]
    head = {"format": "placer/topology", "version": 1, "name": "islands"}
    return {**head, "tiers": tiers, "nodes": nodes}


def problem(hosts: list[list[int]], model: dict[str, Any], **changes: Any) -> Problem:
    """A job by nodes on such hosts."""
    document = {
        "format": "placer/job",
        "version": 1,
        "name": "j",
        "model": {"layers": 2, **model},
        "sequence": 4096,
        "micro_batches": 8,
        "compute": {"tflops_per_gpu": 400},
        "launcher": {"ranks": "node-contiguous"},
        **changes,
    }
    topology = decode_topology(document_of(islands(hosts), "t"))
    return Problem.of(topology, decode_job(document_of(document, "j")), "time")


def test_a_ring_kept_on_a_host_passes_between_its_islands() -> None:
    """It could leave the host on four NICs, which are faster, but for the rule."""
    axes = {"tp": 8, "pp": 1, "dp": 2, "order": "tp-cp-ep-dp-pp"}
    kept = problem([[4, 4]] * 2, DENSE, parallelism=axes, require={"tp": "node"})
    value = kept.goal.value(np.arange(16))
    assert lower_bound(kept, kept.forced_block).value == pytest.approx(value, rel=0.01)


def test_experts_of_a_host_send_between_its_islands() -> None:
    """Four of the seven peers of each are on the other island."""
    axes = {"ep": 8, "pp": 1, "dp": 16, "order": "tp-cp-ep-dp-pp"}
    whole = problem([[4, 4]] * 2, SPARSE, parallelism=axes)
    value = whole.goal.value(np.arange(16))
    assert lower_bound(whole, whole.forced_block).value == pytest.approx(
        value, rel=0.02
    )


def test_a_unit_waits_for_its_uplink_longer_than_for_its_parts() -> None:
    """Three leaves hold three, two and one of six hosts, a unit takes two of them."""
    hosts = machine([8] * 6, [0, 0, 0, 1, 1, 2])
    thin = replace(hosts.tiers[-1], oversubscription=2.0)
    hosts = replace(hosts, tiers=(*hosts.tiers[:-1], thin))
    by_nodes = replace(job(tp=1, ep=16, pp=1, dp=48, vp=1), launcher="node-contiguous")
    split = Problem.of(hosts, by_nodes, "time")
    value = split.goal.value(np.arange(48))
    bound = lower_bound(split, split.forced_block).value
    assert 0.98 * value < bound <= value
