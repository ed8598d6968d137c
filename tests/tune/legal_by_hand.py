"""Every choice that a framework accepts, by plain loops over all sizes.

The rules are written down again here: nothing of `placer.tune` but the record of a
choice is used.

Sources: Megatron-LM d98e8a64, ``core/transformer/transformer_config.py``,
``core/parallel_state.py``, ``core/pipeline_parallel/schedules.py``; torchtitan
b5bcd76c, ``distributed/parallel_dims.py``, ``distributed/pipeline_parallel.py``;
PyTorch 2.6, ``distributed/pipelining/schedules.py``; DeepSpeed edaa7221.
"""

from itertools import product

from placer.tune.choice import Choice

MOST_SAMPLES = 16
FEW_CHUNKS = 2


def sizes(number):
    """Divisors."""
    return [n for n in range(1, number + 1) if number % n == 0]


def legal(framework, work, gpus, batch):
    """Every legal choice for exactly so many GPUs."""
    for tp, cp, pp in product(sizes(gpus), repeat=3):
        dp, rest = divmod(gpus, tp * cp * pp)
        if not rest and dp and batch % dp == 0:
            yield from of_replicas(framework, work, (tp, cp, pp, dp), batch // dp)


def of_replicas(framework, work, degrees, samples):
    """Every legal choice with these tp, cp, pp and dp, and samples of a replica."""
    assert work.model
    tp, cp, _, dp = degrees
    if cuts_evenly(framework, work, work.model, tp, cp):
        pairs = expert_sizes(framework, work, tp, cp, dp)
        for pair, size in product(pairs, sizes(samples)):
            if size <= MOST_SAMPLES:
                shape = (*degrees, *pair, size, samples // size)
                yield from OF[framework](work.model, *shape)


def cuts_evenly(framework, work, model, tp, cp):
    """Heads and tokens are cut into whole and equal parts."""
    if model.heads % tp or (model.kv_heads % tp and tp % model.kv_heads):
        return False
    exchanges = framework == "deepspeed" or (
        work.context_parallel.communication == "a2a" and cp > 1
    )
    if exchanges and (model.heads // tp) % cp:
        return False
    slices = tp if work.tensor_parallel.sequence else 1
    halves = 2 * cp if cp > 1 else 1
    if framework == "megatron":
        return work.sequence % halves == 0 and work.sequence // cp % slices == 0
    return work.sequence % (slices * halves) == 0


def expert_sizes(framework, work, tp, cp, dp):
    """Pairs of ep and etp."""
    model = work.model
    assert model
    if not model.experts:
        return [(1, tp)]
    if framework == "megatron" and tp > 1 and not work.tensor_parallel.sequence:
        return []
    return [
        (ep, etp)
        for ep in sizes(model.experts)
        for etp in ({1} if framework == "torchtitan" else {1, tp})
        if tp * cp * dp % (ep * etp) == 0
        and model.expert_ffn % etp == 0
        and (framework != "deepspeed" or dp % ep == 0)
    ]


def of_megatron(model, *shape):
    """Chunks of equal layers, micro-batches in whole groups; FSDP has no pipeline."""
    tp, cp, pp, dp, ep, etp, size, count = shape
    states = [("ddp", 0), ("zero1", 0)]
    if pp == 1:
        edp = tp * cp * dp // (ep * etp)
        groups = shard_groups(dp * cp)
        whole = [group for group in groups if edp % (dp * cp // group[1]) == 0]
        states += [("zero3", 0), *whole]
    again = ("none", cheap(model), "full")
    for vp, end in product(range(1, model.layers + 3), (0.0, 1.0)):
        layers, chunks = model.layers + 2 * end, pp * vp
        if layers % chunks or end * chunks > layers or (pp == 1 and vp + end > 1):
            continue
        if vp == 1 or count % pp == 0:
            degrees = tp, cp, ep, etp, pp, vp, dp, size, count
            for (sharding, shard), mode in product(states, again):
                yield Choice(*degrees, mode, sharding, shard, end, end)


def cheap(model):
    """Modules that take memory and next to no time."""
    names = ["layernorm"]
    names += ["moe_act"] if model.experts else []
    names += ["mla_up_proj"] if model.kv_lora_rank else []
    return "+".join(names)


def shard_groups(members):
    """HSDP in groups of every size."""
    return [("hsdp", n) for n in sizes(members) if 1 < n < members]


def of_torchtitan(model, *shape):
    """FSDP over dp_shard x cp; layers that differ by one; micro-batches in rounds."""
    tp, cp, pp, dp, ep, etp, size, count = shape
    ends = [0.0, 1.0] if pp > 1 else [0.0]
    for vp, end in product(range(1, FEW_CHUNKS + 1), ends):
        if pp * vp > model.layers or (pp == 1 and vp > 1):
            continue
        if vp > 1 and count % max(1, count // pp):
            continue
        for sharding, shard in titan_shards(tp, cp, dp, ep):
            for again in ("none", "op", "full"):
                degrees = tp, cp, ep, etp, pp, vp, dp, size, count
                yield Choice(*degrees, again, sharding, shard, end, end)


def titan_shards(tp, cp, dp, ep):
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


def of_deepspeed(model, *shape):
    """ZeRO-2 and 3 have no pipeline, and no pipeline is interleaved.

    ``_validate_zero3_moe_compatibility``: experts in ZeRO-3 without tp and Ulysses.
    """
    tp, cp, pp, dp, ep, etp, size, count = shape
    if model.layers % pp:
        return
    stages = ["ddp", "zero1", *(["zero2", "zero3"] if pp == 1 else [])]
    if model.experts and tp * cp > 1 and "zero3" in stages:
        stages.remove("zero3")
    for sharding, again in product(stages, ("none", "full")):
        yield Choice(tp, cp, ep, etp, pp, 1, dp, size, count, again, sharding)


def of_jax(model, *shape):
    """Whole layers a chunk; the ends of the model lie outside the pipeline."""
    tp, cp, pp, dp, ep, etp, size, count = shape
    most = model.layers // pp if pp > 1 else 1
    for vp in range(1, most + 1):
        if model.layers % (pp * vp):
            continue
        degrees = tp, cp, ep, etp, pp, vp, dp, size, count
        shards = [("ddp", 0), ("zero3", 0), *shard_groups(dp * cp)]
        for (sharding, shard), again in product(shards, ("none", "full")):
            yield Choice(*degrees, again, sharding, shard)


OF = {
    "megatron": of_megatron,
    "torchtitan": of_torchtitan,
    "deepspeed": of_deepspeed,
    "jax": of_jax,
}
