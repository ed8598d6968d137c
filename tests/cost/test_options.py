"""What a job's options do to a step, worked out by hand on small machines."""

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import Step, StepModel
from placer.explain.score import score
from placer.job.axes import Parallelism
from placer.job.model import Collectives, Compute, ExpertParallel, Job
from placer.job.models import Model
from placer.job.parallel import (
    ContextParallel,
    DataParallel,
    EndStages,
    Overlap,
    TensorParallel,
)
from placer.placement.placement import Placement
from tests.cost.machines import racks

NVLINK, NIC = 900e9, 100e9
IN, OUT = 0.5e-6, 3e-6
CALL = 0.13e-3  # around a dispatch, as a framework sees it
MODEL = Model("toy", layers=4, hidden=512, ffn=1024, heads=8, kv_heads=4, vocab=1000)
LAYER = 2 * 512**2 + 2 * 512 * 4 * 64 + 3 * 512 * 1024 + 2 * 512
VOCABULARY = 1000 * 512
RINGS = Collectives("ring")
# Of a micro-batch's work, with attention at its rate and norms in no product.
HEAD = VOCABULARY / (4 * (LAYER - 2 * 512 + 2 * 512 * 2048 / 0.83) + VOCABULARY)


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
        collectives=RINGS,
    )
    return replace(usual, **changes)


def step(found: Job, order: list[int] | None = None) -> Step:
    """The job with rank r on GPU r, or on the GPU given, of racks of four."""
    gpus = np.arange(found.world_size) if order is None else np.array(order)
    return StepModel(racks(4), found).step(gpus)


def ring(n: int, size: float, rate: float, latency: float) -> float:
    return (n - 1) / n * size / rate + (n - 1) * latency


SLAB = 2048 * 512 * 2.0


def test_tensor_parallel_without_sequence_parallelism() -> None:
    """Two all-reduces each way and layer in place of four passes."""
    found = job(Parallelism(tp=4), tensor_parallel=TensorParallel(sequence=False))
    once = ring(4, SLAB, NVLINK, IN)
    assert step(found).exposed_s()["tp"] == pytest.approx(4 * (2 + 2) * 2 * once)
    usual = step(job(Parallelism(tp=4)))
    assert usual.exposed_s()["tp"] == pytest.approx(4 * 8 * once)
    # The gathers that backward repeats with sequence parallelism are not sent.
    sent = step(found).traffic()["tp"].bytes_by_tier.sum()
    assert sent == pytest.approx(usual.traffic()["tp"].bytes_by_tier.sum() * 8 / 10)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0, 2.0])
def test_traffic_fits_in_what_a_layer_waits(share: float) -> None:
    """Launches that outlast the work by a share of the traffic hide as much of it.

    Of 4 layers with 4 passes forward and as many backward; launches are 1 to 2, as the
    work is. The output layer is beside them.
    """
    once = ring(4, SLAB, NVLINK, IN)
    host = (1.0 - HEAD) / 4 + share * 12 * once
    usual = step(job(Parallelism(tp=4)))
    found = step(job(Parallelism(tp=4), host_time=host))
    each = [
        third * HEAD + max(third * (1 - HEAD) + 16 * once, 4 * third * host)
        for third in (1 / 3, 2 / 3)
    ]
    longer = (sum(each) - 1 - 32 * once) * usual.model.job.micro_batches
    assert found.step_time_s == pytest.approx(usual.step_time_s + longer)
    sent = found.traffic()["tp"].bytes_by_tier
    assert (sent == usual.traffic()["tp"].bytes_by_tier).all()


def test_a_switch_that_reduces_without_sequence_parallelism() -> None:
    """In-network all-reduces send the slab at 74 % where rings send 6/4 of it.

    Of so small a slab 16 channels of 4 chunks of 16 KiB, half of it, go in and out
    before the rest can follow.
    """
    found = job(
        Parallelism(tp=4),
        tensor_parallel=TensorParallel(sequence=False),
        collectives=Collectives("nvls"),
    )
    in_flight = 16 * 4 * 2**14
    once = (SLAB + 2 * in_flight) / (0.74 * NVLINK) + 25 / 3.4 * IN
    assert step(found).exposed_s()["tp"] == pytest.approx(4 * 4 * once)


KEYS = 2 * 512 * 2 * 512 * (4 / 8)  # of the quarter sequence of one of four ranks
QUERIES = 512 * 2 * 512


@pytest.mark.parametrize(
    ("kind", "layer"),
    [
        ("p2p", 3 * 3 * (KEYS / NVLINK + IN)),
        ("all_gather", 3 * ring(4, 4 * KEYS, NVLINK, IN)),
        (
            "a2a",
            2 * (ring(4, QUERIES + KEYS, NVLINK, IN) + ring(4, QUERIES, NVLINK, IN)),
        ),
    ],
)
def test_context_parallel(kind: str, layer: float) -> None:
    """Ring, gather and exchange of heads, forward and backward, in one rack."""
    found = job(Parallelism(cp=4), context_parallel=ContextParallel(kind))
    assert step(found).exposed_s()["cp"] == pytest.approx(4 * layer)


@pytest.mark.parametrize(("kind", "hides"), [("p2p", True), ("all_gather", False)])
def test_only_the_ring_hides(kind: str, hides: bool) -> None:
    """A gather comes before attention and cannot run beside it."""
    found = job(
        Parallelism(cp=4),
        context_parallel=ContextParallel(kind),
        overlap=Overlap(cp=True),
    )
    assert (step(found).exposed_s()["cp"] == 0.0) == hides


EXPERTS = replace(MODEL, experts=8, top_k=4, expert_ffn=256, moe_layers=4)


def test_expert_imbalance() -> None:
    """The busiest rank's tokens set the time; bytes are those of all ranks."""
    even = job(Parallelism(dp=4, ep=4), model=EXPERTS)
    skew = replace(even, expert_parallel=ExpertParallel(imbalance=1.5))
    latency = 4 * 4 * (3 * IN + CALL)
    time = step(even).exposed_s()["ep"] - latency
    assert step(skew).exposed_s()["ep"] == pytest.approx(1.5 * time + latency)
    sent, as_sent = (step(j).traffic()["ep"].bytes_by_tier for j in (even, skew))
    assert as_sent == pytest.approx(sent)


def test_deduplicated_dispatch() -> None:
    """Two racks of two EP ranks each: 15/32 of what was to cross does."""
    found = job(
        Parallelism(dp=4, ep=4),
        model=EXPERTS,
        expert_parallel=ExpertParallel(dispatch="deduplicated"),
    )
    buffer = 4 * SLAB
    once = buffer / 2 * 15 / 32 / NIC + IN + OUT + CALL
    seconds = step(found, [0, 1, 4, 5]).exposed_s()["ep"]
    assert seconds == pytest.approx(4 * 4 * once)


def test_hidden_exchanges_take_multiprocessors() -> None:
    """Exchanges that the work hides cost it their share; without, they cost nothing."""
    hidden = job(Parallelism(dp=4, ep=4), model=EXPERTS, overlap=Overlap(ep=True))
    waits = step(replace(hidden, overlap=Overlap())).exposed_s()["ep"]
    assert step(hidden).exposed_s()["ep"] == pytest.approx(0.12 * waits)
    for share in (0.0, 0.3):
        mode = ExpertParallel(sm_share=share)
        found = step(replace(hidden, expert_parallel=mode)).exposed_s()["ep"]
        assert found == pytest.approx(share * waits)


def test_end_stages() -> None:
    """4 layers over 2 stages, whatever both ends count for: TP is seen in 2 of each.

    Compute is that of a full stage: ends take as long as the layers they stand for.
    Where they count for none the first stage is shorter, for it has no output layer.
    """
    axes = Parallelism(tp=2, pp=2)
    even = step(job(axes, micro_batches=2))
    assert even.pipeline_s(()) < 3.0
    for ends in (EndStages(1, 1), EndStages(2, 2)):
        uneven = step(job(axes, micro_batches=2, stages=ends))
        assert uneven.pipeline_s(()) == pytest.approx(3.0)
        assert uneven.exposed_s()["tp"] == pytest.approx(even.exposed_s()["tp"])


def sync_of(sharding: str, **changes: object) -> DataParallel:
    usual = DataParallel(sharding, overlap_reduce=False, overlap_gather=False)
    return replace(usual, **changes)


HELD = 4 * LAYER + 2 * VOCABULARY  # parameters of the whole model
PASS = ring(4, 2 * HELD, NVLINK, IN)


@pytest.mark.parametrize(
    ("sync", "passes"),
    [
        (sync_of("ddp"), 2),
        (sync_of("zero1"), 2),
        (sync_of("zero1", sync_every=4), 0.5),
        (sync_of("zero2"), 5 + 1),
        (sync_of("zero2", reduce_once=True), 2),
        (sync_of("zero3"), 3 * 5),
        (sync_of("zero3", keep_parameters=True), 2),
    ],
)
def test_sharding_without_overlap(sync: DataParallel, passes: float) -> None:
    """Ring passes over all parameters in a step of five micro-batches."""
    found = job(Parallelism(dp=4), data_parallel=sync, micro_batches=5)
    assert step(found).exposed_s()["dp"] == pytest.approx(passes * PASS)


def test_hybrid_sharding_without_overlap() -> None:
    """Three passes a micro-batch in a rack, an all-reduce of a quarter across racks."""
    sync = sync_of("hsdp", shard_size=4)
    found = job(Parallelism(dp=16), data_parallel=sync, micro_batches=5)
    across = 2 * ring(4, 2 * HELD / 4, NIC, OUT)
    assert step(found).exposed_s()["dp"] == pytest.approx(15 * PASS + across)
    kept = replace(found, data_parallel=replace(sync, keep_parameters=True))
    assert step(kept).exposed_s()["dp"] == pytest.approx(2 * PASS + across)


def test_reductions_of_every_micro_batch_hide_behind_one_chunk() -> None:
    """ZeRO-2: a reduction of 3 ms behind a backward of 2 ms, in each of five.

    4 x 1 ms in between, and 0.12 of the 2 ms that are hidden; all 3 after the last
    backward, for a single bucket hides nothing, and one gather of 3 ms before the first
    forward.
    """
    rate = 0.75 * 2 * HELD / 3e-3
    tiers = tuple(replace(t, bandwidth=rate, latency=0.0) for t in racks(4).tiers)
    found = job(
        Parallelism(dp=4),
        data_parallel=DataParallel("zero2", bucket_parameters=10**9),
        micro_batches=5,
        compute=Compute(micro_batch_time=3e-3),
    )
    result = StepModel(replace(racks(4), tiers=tiers), found).step(np.arange(4))
    assert result.exposed_s()["dp"] == pytest.approx(4 * 1.24e-3 + 3e-3 + 3e-3)
    sent = float(result.traffic()["dp"].bytes_by_tier.sum())
    assert sent == pytest.approx(6 * 3 * 2 * HELD)


def test_gathers_of_every_micro_batch_hide_behind_one_chunk() -> None:
    """A gather longer than a chunk's forward is seen in each of five micro-batches.

    Forward 1 ms, gather 3 + reduction 3 behind a backward of 2 ms: 4 x 4 + 4 x 2 in
    between, and 0.12 of the 1 and 2 that are hidden; one bucket before the first
    forward; after the last backward all 6 of its gather and reduction, for a single
    bucket hides nothing.
    """
    rate = 0.75 * 2 * HELD / 3e-3
    tiers = tuple(replace(t, bandwidth=rate, latency=0.0) for t in racks(4).tiers)
    topology = replace(racks(4), tiers=tiers)
    sync = DataParallel("zero3", bucket_parameters=10**9)
    found = job(
        Parallelism(dp=4),
        data_parallel=sync,
        micro_batches=5,
        compute=Compute(micro_batch_time=3e-3),
    )
    seen = StepModel(topology, found).step(np.arange(4)).exposed_s()["dp"]
    assert seen == pytest.approx(4 * 4.24e-3 + 4 * 2.12e-3 + 3e-3 + 6e-3)


def test_tied_embeddings() -> None:
    """First and last stage reduce V h gradients after backward, every step."""
    tied = job(
        Parallelism(pp=2),
        model=replace(MODEL, tied_embeddings=True),
        data_parallel=sync_of("ddp", sync_every=10),
    )
    seconds = 2 * ring(2, 2 * VOCABULARY, NVLINK, IN)
    assert step(tied).exposed_s()["dp"] == pytest.approx(seconds)
    apart = 2 * ring(2, 2 * VOCABULARY, NIC, OUT)
    assert step(tied, [0, 4]).exposed_s()["dp"] == pytest.approx(apart)
    path = score(racks(4), tied, Placement(np.array([0, 4])))["critical_path"]
    found = {entry["operation"]: entry["seconds"] for entry in path}
    assert found["tied embeddings (dp)"] == pytest.approx(apart)


def test_tp_runs_beside_products_within_a_rack_alone() -> None:
    """A group over two racks is waited for in full, one inside is not."""
    beside = Overlap(tp=True, cp=False, pp=False, ep=False)
    inside, across = ([0, 1, 2, 3], [0, 1, 4, 5])
    for order, hides in ((inside, True), (across, False)):
        waited = step(job(Parallelism(tp=4)), order).exposed_s()["tp"]
        found = step(job(Parallelism(tp=4), overlap=beside), order).exposed_s()["tp"]
        assert found == pytest.approx(waited / 4 if hides else waited)
