"""Steps worked out by hand on racks of four GPUs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import Step, StepModel
from placer.explain.score import score
from placer.job.adapters import Adapters
from placer.job.axes import Parallelism
from placer.job.model import Collectives, Compute, ExpertParallel, Job
from placer.job.models import Model
from placer.job.parallel import (
    ContextParallel,
    DataParallel,
    Overlap,
    TensorParallel,
)
from placer.placement.placement import Placement
from tests.cost.machines import racks
from tests.cost.two_racks import JOB, two_racks

NVLINK, NIC = 900e9, 100e9
IN, OUT = 0.5e-6, 3e-6
CALL = 0.13e-3  # around a dispatch, as a framework sees it
MODEL = Model("toy", layers=4, hidden=512, ffn=1024, heads=8, kv_heads=4, vocab=1000)
EXPERTS = replace(MODEL, experts=8, top_k=4, expert_ffn=256, moe_layers=4)
LAYER = 2 * 512**2 + 2 * 512 * 4 * 64 + 3 * 512 * 1024 + 2 * 512
VOCABULARY = 1000 * 512
HELD = 4 * LAYER + 2 * VOCABULARY  # parameters of the whole model
SLAB = 2048 * 512 * 2.0
KEYS = 2 * 512 * 2 * 512 * (4 / 8)  # of the quarter sequence of one of four ranks
QUERIES = 512 * 2 * 512
IN_RACK, IN_TWO, IN_FOUR = [0, 1, 2, 3], [0, 1, 4, 5], [*range(16)]


def job(axes: Parallelism, **changes: object) -> Job:
    """A job of one micro-batch of a second, with nothing hidden."""
    usual = Job(
        "toy",
        axes,
        MODEL,
        sequence=2048,
        compute=Compute(micro_batch_time=1.0),
        overlap=Overlap(False, False, False, False),
        data_parallel=DataParallel(overlap_reduce=False, overlap_gather=False),
        collectives=Collectives("ring"),
    )
    return replace(usual, **changes)


def step(found: Job, gpus: list[int]) -> Step:
    return StepModel(racks(4), found).step(np.array(gpus))


def ring(n: int, size: float, rate: float, latency: float) -> float:
    """One pass."""
    return (n - 1) / n * size / rate + (n - 1) * latency


def synced(sharding: str, **changes: object) -> dict[str, object]:
    """Five micro-batches of which nothing hides gradients or gathers."""
    usual = DataParallel(sharding, overlap_reduce=False, overlap_gather=False)
    return {"data_parallel": replace(usual, **changes), "micro_batches": 5}


TP, CP, DP = Parallelism(tp=4), Parallelism(cp=4), Parallelism(dp=4)
EP, PP = Parallelism(dp=4, ep=4), Parallelism(pp=2)
WHOLE = {"tensor_parallel": TensorParallel(sequence=False)}
TIED = {"model": replace(MODEL, tied_embeddings=True)} | synced("ddp", sync_every=10)
BESIDE = {"overlap": Overlap(tp=True, cp=False, pp=False, ep=False)}
# Of so small a slab 16 channels of 4 chunks of 16 KiB go in and out before the rest.
SWITCH = (SLAB + 2 * 16 * 4 * 2**14) / (0.74 * NVLINK) + 25 / 3.4 * IN
PASS = ring(4, 2 * HELD, NVLINK, IN)
ACROSS = 2 * ring(4, 2 * HELD / 4, NIC, OUT)


def by_context(kind: str, **changes: object) -> dict[str, object]:
    return {"context_parallel": ContextParallel(kind), **changes}


# What, the axis, its degrees, what is not usual, the GPUs, and the seconds seen.
SEEN = [
    ("four passes each way and layer", "tp", TP, {}, IN_RACK,
     4 * 8 * ring(4, SLAB, NVLINK, IN)),
    ("two all-reduces in place of them", "tp", TP, WHOLE, IN_RACK,
     4 * (2 + 2) * 2 * ring(4, SLAB, NVLINK, IN)),
    ("a switch that reduces", "tp", TP, WHOLE | {"collectives": Collectives("nvls")},
     IN_RACK, 4 * 4 * SWITCH),
    ("beside products in a rack", "tp", TP, BESIDE, IN_RACK,
     4 * 8 * ring(4, SLAB, NVLINK, IN) / 4),
    ("a ring of keys and values", "cp", CP, by_context("p2p"), IN_RACK,
     4 * 3 * 3 * (KEYS / NVLINK + IN)),
    ("a ring beside attention", "cp", CP, by_context("p2p", overlap=Overlap(cp=True)),
     IN_RACK, 0.0),
    ("a gather of them", "cp", CP, by_context("all_gather", overlap=Overlap(cp=True)),
     IN_RACK, 4 * 3 * ring(4, 4 * KEYS, NVLINK, IN)),
    ("an exchange of heads", "cp", CP, by_context("a2a"), IN_RACK,
     4 * 2 * (ring(4, QUERIES + KEYS, NVLINK, IN) + ring(4, QUERIES, NVLINK, IN))),
    ("a token once to each rack: 15/32 of them", "ep", EP,
     {"model": EXPERTS, "expert_parallel": ExpertParallel(dispatch="deduplicated")},
     IN_TWO, 4 * 4 * (4 * SLAB / 2 * 15 / 32 / NIC + IN + OUT + CALL)),
    ("an all-reduce of gradients", "dp", DP, synced("ddp"), IN_RACK, 2 * PASS),
    ("zero1", "dp", DP, synced("zero1"), IN_RACK, 2 * PASS),
    ("every fourth step", "dp", DP, synced("zero1", sync_every=4), IN_RACK, PASS / 2),
    ("zero2", "dp", DP, synced("zero2"), IN_RACK, 6 * PASS),
    ("zero2 at once", "dp", DP, synced("zero2", reduce_once=True), IN_RACK, 2 * PASS),
    ("zero3", "dp", DP, synced("zero3"), IN_RACK, 15 * PASS),
    ("zero3 kept", "dp", DP, synced("zero3", keep_parameters=True), IN_RACK, 2 * PASS),
    ("shards of four in racks", "dp", Parallelism(dp=16), synced("hsdp", shard_size=4),
     IN_FOUR, 15 * PASS + ACROSS),
    ("shards that are kept", "dp", Parallelism(dp=16),
     synced("hsdp", shard_size=4, keep_parameters=True), IN_FOUR, 2 * PASS + ACROSS),
    ("tied embeddings, every step", "dp", PP, TIED, [0, 4],
     2 * ring(2, 2 * VOCABULARY, NIC, OUT)),
]  # fmt: skip


@pytest.mark.parametrize(("axis", "axes", "changes", "gpus", "seconds"), [
    pytest.param(*row, id=name) for name, *row in SEEN
])  # fmt: skip
def test_seconds_seen_of_an_axis(
    axis: str,
    axes: Parallelism,
    changes: dict[str, object],
    gpus: list[int],
    seconds: float,
) -> None:
    """The sum over four layers, both ways, or of what a step sends once."""
    assert step(job(axes, **changes), gpus).exposed_s()[axis] == pytest.approx(seconds)


def test_tp_over_two_racks_is_waited_for() -> None:
    """Beside products it would be within a rack alone."""
    waited, found = (step(job(TP, **more), IN_TWO) for more in ({}, BESIDE))
    assert found.exposed_s()["tp"] == pytest.approx(waited.exposed_s()["tp"])


@pytest.mark.parametrize(
    ("axis", "axes", "usual", "change", "share"),
    [
        # Backward repeats gathers with sequence parallelism alone.
        ("tp", TP, {}, WHOLE, 8 / 10),
        ("tp", TP, {}, {"host_time": 1.0}, 1),
        # The busiest rank sets the time, not the bytes of all.
        ("ep", EP, {"model": EXPERTS},
         {"expert_parallel": ExpertParallel(imbalance=1.5)}, 1),
    ],
)  # fmt: skip
def test_bytes_sent(
    axis: str,
    axes: Parallelism,
    usual: dict[str, object],
    change: dict[str, object],
    share: float,
) -> None:
    """How many more or fewer bytes of an axis a change of the job sends."""
    before, after = (
        step(job(axes, **usual | more), IN_RACK).traffic()[axis].bytes_by_tier
        for more in ({}, change)
    )
    assert after == pytest.approx(before * share)


def test_what_is_hidden_behind_a_chunk() -> None:
    """A gather longer than a chunk's forward is seen in each of five micro-batches.

    Forward 1 ms, gather 3 + reduction 3 behind a backward of 2 ms: 4 x 4 + 4 x 2 in
    between, and 0.12 of the 1 and 2 that are hidden; one bucket before the first
    forward; after the last backward all 6 of its gather and reduction, for a single
    bucket hides nothing.
    """
    rate = 0.75 * 2 * HELD / 3e-3
    tiers = tuple(replace(t, bandwidth=rate, latency=0.0) for t in racks(4).tiers)
    found = job(
        DP,
        data_parallel=DataParallel("zero3", bucket_parameters=10**9),
        micro_batches=5,
        compute=Compute(micro_batch_time=3e-3),
    )
    model = StepModel(replace(racks(4), tiers=tiers), found)
    seen = model.step(np.arange(4)).exposed_s()["dp"]
    assert seen == pytest.approx(4 * 4.24e-3 + 4 * 2.12e-3 + 3e-3 + 6e-3)


ALL = 4 * (512 * (2 * 512 + 2 * 256) + 3 * 512 * 1024 + 2 * 512) + 2 * 1000 * 512


@pytest.mark.parametrize(
    ("sharding", "reductions", "gathers", "frozen"),
    [("ddp", 2, 0, 0), ("zero1", 1, 1, 0), ("zero2", 4, 1, 0), ("zero3", 4, 8, 8)],
)
def test_bytes_of_adapters(
    sharding: str, reductions: int, gathers: int, frozen: int
) -> None:
    """Gradients are those of adapters; only ZeRO-3 gathers weights that are frozen.

    Rank 8 on a width of 512 with 4 of 8 key-value heads. Four micro-batches, of two
    bytes each; every rank of four sends three quarters of its half, eight ranks in all.
    """
    few = 8 * 4 * (2 * 1024 + 2 * (512 + 256) + 3 * (512 + 1024))
    found = replace(
        JOB,
        parallelism=Parallelism(tp=2, dp=4),
        adapters=Adapters(rank=8),
        data_parallel=DataParallel(sharding),
    )
    result = score(two_racks(), found, Placement(np.arange(8)))
    expected = (reductions + gathers) * few + frozen * ALL
    sent = sum(result["traffic_bytes"]["dp"].values())
    assert sent == pytest.approx(expected * 2 * 3 / 4 / 2 * 8)
