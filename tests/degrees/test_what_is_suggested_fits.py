"""No row of `tune` needs more memory than a GPU has, by formulas written down again.

States: Rajbhandari et al. 2020, arXiv 1910.02054, with Adam in FP32 (12 bytes) over dp
x cp. Activations: Korthikanti et al. 2022, arXiv 2205.05198, table 2, for fused
attention, grouped queries and a gated feed-forward. In flight: Narayanan et al. 2021,
arXiv 2104.04473, the warm-up of 1F1B and of its interleaved form. This shares no code
with `placer.footprint`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

import placer
from placer.job.axes import Parallelism
from placer.job.memory import Memory
from placer.job.model import Compute, Job, Model

if TYPE_CHECKING:
    from collections.abc import Mapping

GB = 1e9


@dataclass(frozen=True)
class Shape:
    """A dense model and what of a job memory depends on."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    groups: int
    vocab: int
    sequence: int

    def job(self, batch: int) -> Job:
        model = Model(
            "dense",
            layers=self.layers,
            hidden=self.hidden,
            ffn=self.ffn,
            heads=self.heads,
            kv_heads=self.groups,
            vocab=self.vocab,
        )
        return Job(
            "dense",
            Parallelism(),
            model=model,
            sequence=self.sequence,
            micro_batches=batch,
            compute=Compute(tflops_per_gpu=400.0),
            memory=Memory(dropout=False),
        )


SMALL = Shape(32, 4096, 14336, 32, 8, 128_256, 8192)  # Llama 3 8B
LARGE = Shape(80, 8192, 28672, 64, 8, 128_256, 8192)  # Llama 3 70B
WIDE = Shape(40, 5120, 13824, 40, 40, 32_000, 4096)  # Llama 2 13B


def least_bytes(shape: Shape, row: Mapping[str, Any]) -> float:
    """Bytes of the GPU that holds most, at the least: what every formula counts."""
    return max(stage_bytes(shape, row, r) for r in range(row["parallelism"]["pp"]))


def stage_bytes(shape: Shape, row: Mapping[str, Any], rank: int) -> float:
    axes = row["parallelism"]
    t, c, p, v, d = (axes[name] for name in ("tp", "cp", "pp", "vp", "dp"))
    samples, count = row["micro_batch"], row["micro_batches"]
    h, f, a, k = shape.hidden, shape.ffn, shape.heads, shape.groups
    chunk = (shape.layers + row["embedding"] + row["loss"]) / (p * v)
    last = rank == p - 1
    lacks = row["embedding"] * (rank == 0) + row["loss"] * last
    layers = chunk * v - lacks
    ends = (rank == 0) + last
    layer = (2 * h * h * (1 + k / a) + 3 * h * f) / t
    parameters = layers * layer + ends * shape.vocab * h / t
    states = parameters * state_bytes(row, d * c)
    if row["sharding"] in ("zero3", "hsdp"):
        states += 2 * layer  # of the layer in use
    slab = shape.sequence * samples * h / (c * t)
    norms = 0 if "layernorm" in row["recompute"] else 4
    inside = 2 + 2 * (1 + 2 * max(k, t) / a) + 2 + 2 + 3 * 2 * f / h + norms
    whole = slab * inside
    warm = min(in_flight(p, v, rank, count), count * v)
    held = max(warm * chunk - lacks, 0.0)
    if row["recompute"] == "full":
        return states + 2 * slab * held + whole
    return states + whole * held


def in_flight(p: int, v: int, rank: int, count: int) -> int:
    """Forwards of a chunk that wait for their backward."""
    if v == 1:
        return min(p - rank, count)
    return 2 * (p - rank - 1) + (v - 1) * p + 1


def state_bytes(row: Mapping[str, Any], copies: int) -> float:
    """Bytes of a parameter: weights, gradients, optimizer."""
    shards = row["shard_size"] or copies
    return {
        "ddp": 2 + 2 + 12.0,
        "zero1": 2 + 2 + 12 / copies,
        "zero3": (2 + 2 + 12) / copies,
        "hsdp": (2 + 2 + 12) / shards,
    }[row["sharding"]]


@pytest.mark.parametrize(
    ("machine", "shape", "batch", "memory"),
    [
        ("dgx-h100-4x8", SMALL, 64, 40 * GB),
        pytest.param("dgx-h100-32x8", LARGE, 256, 80 * GB, marks=pytest.mark.slow),
        pytest.param("dgx-h100-4x8", WIDE, 64, 48 * GB, marks=pytest.mark.slow),
        pytest.param("nvl72", LARGE, 128, 100 * GB, marks=pytest.mark.slow),
    ],
)
def test_none_of_the_first_fifty_exceeds_memory(
    machine: str, shape: Shape, batch: int, memory: float
) -> None:
    """What the formulas ask for is at most what placer says, and both fit."""
    job = shape.job(batch)
    topology = placer.read_topology(machine)
    topology = replace(topology, gpu=replace(topology.gpu, memory=memory))
    gpus = [32 if machine != "dgx-h100-32x8" else 256]
    if machine == "nvl72":
        gpus = [64]
    found = placer.tune(topology, job, gpus=gpus, top=50)
    assert len(found.rows) == 50
    for row in found.rows:
        needed = least_bytes(shape, row)
        assert needed <= memory, row
        assert needed <= row["memory_bytes"] * 1.001, row
        assert row["memory_bytes"] <= memory
