"""What each framework accepts, written down again as plain loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest

import placer
from placer.degrees.choice import Choice
from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.degrees.space import Legal, Space
from tests.degrees.cases import job, machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.job.model import Job, Model

GPUS = BATCH = 16


def sizes(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def replicas(work: Job, model: Model) -> Iterator[tuple[int, int, int, int]]:
    """tp, cp, pp and dp, by what all frameworks want: whole heads, whole slices."""
    for tp, cp, pp in product(sizes(GPUS), repeat=3):
        dp, rest = divmod(GPUS, tp * cp * pp)
        if rest or not dp or model.heads % tp:
            continue
        if model.kv_heads % tp and tp % model.kv_heads:
            continue
        if work.sequence % (tp * (2 * cp if cp > 1 else 1)) == 0:
            yield tp, cp, pp, dp


def micro_batches(dp: int) -> Iterator[tuple[int, int]]:
    samples = BATCH // dp
    yield from ((size, samples // size) for size in sizes(samples))


def experts(model: Model, ranks: int, etps: set[int]) -> list[tuple[int, int]]:
    """ep and etp that divide the experts, their width, and the ranks."""
    return [
        (ep, etp)
        for ep in sizes(model.experts)
        for etp in etps
        if ranks % (ep * etp) == 0 and model.expert_ffn % etp == 0
    ]


def of_torchtitan(work: Job, model: Model) -> Iterator[Choice]:
    """FSDP over dp_shard x cp; two chunks a rank; layers that differ by one."""
    for tp, cp, pp, dp in replicas(work, model):
        pairs = experts(model, tp * cp * dp, {1}) if model.experts else [(1, tp)]
        chunks = [1, 2] if pp > 1 else [1]
        ends = [0.0, 1.0] if pp > 1 else [0.0]
        for (ep, etp), vp, end in product(pairs, chunks, ends):
            if pp * vp > model.layers:
                continue
            for size, count in micro_batches(dp):
                if count * 2 < pp:
                    continue
                for sharding, shard in titan_shards(tp, cp, dp, ep):
                    for again in ("none", "op", "full"):
                        degrees = tp, cp, ep, etp, pp, vp, dp, size, count
                        yield Choice(*degrees, again, sharding, shard, end, end)


def titan_shards(tp: int, cp: int, dp: int, ep: int) -> Iterator[tuple[str, int]]:
    """The mesh is dp_replicate x dp_shard x cp x tp; experts lie in the last three."""
    for shard in sizes(dp):
        if shard * cp * tp % ep:
            continue
        if shard == dp:
            yield "zero3", 0
        if shard == 1 and cp == 1:
            yield "ddp", 0
        if 1 < shard * cp < dp * cp:
            yield "hsdp", shard * cp


def of_deepspeed(work: Job, model: Model) -> Iterator[Choice]:
    """Ulysses shares out heads; ZeRO-2 and 3 have no pipeline."""
    for tp, cp, pp, dp in replicas(work, model):
        if model.heads % (tp * cp) or model.layers % pp:
            continue
        pairs = experts(model, tp * cp * dp, {1, tp}) if model.experts else [(1, tp)]
        for (ep, etp), (size, count) in product(pairs, micro_batches(dp)):
            if dp % ep:
                continue
            stages = ["ddp", "zero1", *(["zero2", "zero3"] if pp == 1 else [])]
            for sharding, again in product(stages, ("none", "full")):
                yield Choice(tp, cp, ep, etp, pp, 1, dp, size, count, again, sharding)


def of_jax(work: Job, model: Model) -> Iterator[Choice]:
    """Whole layers a chunk; the ends of the model lie outside the pipeline."""
    for tp, cp, pp, dp in replicas(work, model):
        pairs = experts(model, tp * cp * dp, {1, tp}) if model.experts else [(1, tp)]
        most = model.layers // pp if pp > 1 else 1
        for (ep, etp), vp in product(pairs, range(1, most + 1)):
            if model.layers % (pp * vp):
                continue
            for size, count in micro_batches(dp):
                shards = [("ddp", 0), ("zero3", 0)]
                shards += [("hsdp", n) for n in sizes(dp * cp) if 1 < n < dp * cp]
                for (sharding, shard), again in product(shards, ("none", "full")):
                    degrees = tp, cp, ep, etp, pp, vp, dp, size, count
                    yield Choice(*degrees, again, sharding, shard)


EXPECTED = {"torchtitan": of_torchtitan, "deepspeed": of_deepspeed, "jax": of_jax}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_framework_accepts(name: str, seed: int) -> None:
    """No legal choice is left out, none that it refuses is there, each is counted."""
    work = in_framework(job(Random(seed)), name)
    assert work.model is not None
    space = Space((GPUS,), BATCH, framework=name)
    legal = Legal(work, work.model, space)
    shapes = list(legal.shapes())
    found = [choice for shape in shapes for choice in legal.variants(shape)]
    assert sum(map(legal.count, shapes)) == len(found)
    assert set(found) == set(EXPECTED[name](work, work.model))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_best_choice_of_each_framework(name: str) -> None:
    """It is one that the framework accepts; flags are there where they are known."""
    work = replace(job(Random(3)), micro_batches=8)
    few = {"tp": [1, 2], "cp": [1], "pp": [1, 2], "micro_batch": [1]}
    found = placer.tune(machine(), work, gpus=[GPUS], framework=name, top=3, **few)
    assert found.is_proved
    assert {row["sharding"] for row in found.rows} <= set(FRAMEWORKS[name].shardings)
    assert bool(found.rows[0]["flags"]) == (name != "jax")


def test_deepspeed_has_ulysses_alone() -> None:
    """Whatever the job says, its context parallelism exchanges heads for tokens."""
    changed = in_framework(job(Random(0)), "deepspeed")
    assert changed.context_parallel.communication == "a2a"
    assert not changed.overlap.cp
    same = job(Random(0))
    assert in_framework(same, "megatron") == same
