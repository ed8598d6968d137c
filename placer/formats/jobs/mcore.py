"""Megatron-Core: its keys, and what it derives and refuses, whoever configures it.

Rules are called with the joined findings. Source: NVIDIA/Megatron-LM d98e8a64,
``megatron/core/``: ``transformer/transformer_config.py`` (heads, stages, experts),
``distributed/distributed_data_parallel.py`` (buckets), ``parallel_state.py`` (orders,
instances of the optimizer), ``transformer/moe/moe_layer.py``.
"""

from __future__ import annotations

from placer.formats.jobs.findings import EVEN_PARTS, Findings, Place
from placer.formats.jobs.fsdp import model_of
from placer.formats.jobs.settings import Settings
from placer.job.axes import MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER
from placer.job.memory import METHODS, MODULES
from placer.job.models import total_parameters

_AXES = {
    "parallelism.tp": "tensor_model_parallel_size",
    "parallelism.pp": "pipeline_model_parallel_size",
    "parallelism.cp": "context_parallel_size",
    "parallelism.ep": "expert_model_parallel_size",
    "parallelism.etp": "expert_tensor_parallel_size",
    "parallelism.vp": "virtual_pipeline_model_parallel_size",
}
_TRAFFIC = {
    "tensor_parallel.sequence": "sequence_parallel",
    "overlap.tp": "tp_comm_overlap",
    "overlap.ep": "overlap_moe_expert_parallel_comm",
}
OVERLAPS = {
    "data_parallel.overlap_reduce": "overlap_grad_reduce",
    "data_parallel.overlap_gather": "overlap_param_gather",
}
_SHAPE = {
    "model.layers": "num_layers",
    "model.hidden": "hidden_size",
    "model.ffn": "ffn_hidden_size",
    "model.heads": "num_attention_heads",
    "model.kv_heads": "num_query_groups",
    "model.head_dim": "kv_channels",
    "model.vocab": "vocab_size",
    "model.experts": "num_moe_experts",
    "model.top_k": "moe_router_topk",
    "model.expert_ffn": "moe_ffn_hidden_size",
}


def read_sizes(settings: Settings, prefix: str) -> None:
    """Take the sizes of the axes that are said."""
    settings.take(_AXES, prefix)
    order(settings, prefix + "use_tp_pp_dp_mapping")


def ones(found: Findings, rule: str) -> None:
    """Set axes of which no size is said to 1."""
    for axis in ("tp", "pp", "cp", "ep"):
        found.derive(f"parallelism.{axis}", 1, rule)


def read_shape(settings: Settings, prefix: str) -> None:
    """Take the shape of a model as far as it is said."""
    settings.take(_SHAPE, prefix)
    key = prefix + "gated_linear_unit"
    if (gated := settings.flag(key, prefix + "swiglu")) is not None:
        settings.found.read("model.gated", gated, settings.place(key))
    key = prefix + "share_embeddings_and_output_weights"
    settings.copy("model.tied_embeddings", key)


def read_rest(settings: Settings, prefix: str) -> None:
    """Take how axes communicate, and leave the rest to the rules of Megatron-Core."""
    found = settings.found
    settings.take(_TRAFFIC, prefix)
    for end in ("embedding", "loss"):
        key = f"{prefix}account_for_{end}_in_pipeline_split"
        if settings.flag(key):
            settings.derive(f"stages.{end}", 1, key, key)
    if way := settings.choice(CONTEXT_WAYS, prefix + "cp_comm_type"):
        found.derive("context_parallel.communication", way, f"cp_comm_type {way}")
        if way != "p2p":
            rule = f"cp_comm_type {way} does not run beside attention"
            found.derive("overlap.cp", False, rule)
    _read_dispatch(settings, prefix)
    ends = (f"{prefix}num_layers_in_{end}_pipeline_stage" for end in ("first", "last"))
    uneven = list(filter(settings.integer, ends))
    for key in uneven:
        settings.not_modelled(key, "layers are spread evenly")
    _read_recompute(settings, prefix)
    if settings.copy("model.mtp_layers", prefix + "mtp_num_layers", minimum=0):
        settings.not_modelled(prefix + "mtp_num_layers", "work on the last stage")
    overlap = settings.flag(prefix + "overlap_p2p_comm") is not False
    even = not uneven and not settings.get(prefix + "pipeline_model_parallel_layout")
    found.later(_apply_rules, overlap, even)


def _read_recompute(settings: Settings, prefix: str) -> None:
    """What is computed again; attention proper where no module is said."""
    found = settings.found
    # Keys begin so, in NeMo 1 the other way.
    key, older = f"{prefix}recompute", f"{prefix}activations_checkpoint"
    recompute = settings.text(f"{key}_granularity", f"{older}_granularity")
    rule = f"recompute_granularity {recompute}"
    if recompute == "full":
        settings.recomputed(f"{key}_granularity", rule)
        method = f"{key}_method", f"{older}_method"
        if (way := settings.text(*method)) in METHODS:
            layers = f"{key}_num_layers", f"{older}_num_layers"
            settings.copy("memory.recompute_layers", *layers)
            found.read("memory.recompute_method", way, settings.place(*method))
    if recompute == "selective":
        found.derive("memory.recompute", recompute, rule)
        key = prefix + "recompute_modules"
        if recomputed_modules(settings, key):
            settings.not_modelled(key, "modules that are not known")


def recomputed_modules(settings: Settings, key: str) -> list[str]:
    """Take the modules that are computed again; the rest, that no model knows."""
    given = [name for name in settings.texts(key) if name]
    known = [name for name in given if name in MODULES]
    if known:
        settings.found.read("memory.recompute_modules", known, settings.place(key))
    elif given:
        settings.found.facts.pop("memory.recompute", None)  # the rest alone is
    return [name for name in given if name not in MODULES]


def _read_dispatch(settings: Settings, prefix: str) -> None:
    key = prefix + "moe_token_dispatcher_type"
    kind = settings.text(key)
    if settings.flag(prefix + "moe_enable_deepep"):
        kind = "flex"
    if kind in DISPATCHES:
        way, rule = DISPATCHES[kind], f"moe_token_dispatcher_type {kind}"
        settings.derive("expert_parallel.dispatch", way, rule, key)
        if way == "deduplicated":
            key = prefix + "moe_flex_dispatcher_backend"
            backend, place = settings.text(key), settings.place(key)
            equal_parts(settings.found, backend, place)
    elif kind:
        settings.not_modelled(key, f"experts by {kind}")


def read_ddp(settings: Settings, prefix: str, optimizer: str) -> None:
    """Take how gradients are reduced, of the section of data parallelism."""
    found = settings.found
    keys = f"{prefix}use_distributed_optimizer", f"{optimizer}use_distributed_optimizer"
    sharded = settings.flag(*keys)
    place = settings.place(*keys)
    fsdp = settings.flag(prefix + "use_custom_fsdp", prefix + "use_megatron_fsdp")
    strategy = settings.text(prefix + "data_parallel_sharding_strategy")
    if fsdp:
        kind = STRATEGIES.get(strategy, "zero3")
        found.derive("data_parallel.sharding", kind, f"FSDP, {strategy}", place)
    elif sharded is not None:
        kind = "zero1" if sharded else "ddp"
        found.derive("data_parallel.sharding", kind, "use_distributed_optimizer", place)
    else:
        found.assume("data_parallel.sharding", "zero1", "as all its recipes do")
    key = prefix + "num_distributed_optimizer_instances"
    instances, place = settings.integer(key) or 1, settings.place(key)
    found.later(optimizer_instances, instances, place)
    settings.take(OVERLAPS, prefix)
    settings.copy(_BUCKET, prefix + "bucket_size", maximum=10**13)
    read_states(settings, optimizer)
    key = prefix + "grad_reduce_in_fp32"
    if (fp32 := settings.flag(key)) is not None:
        settings.derive("bytes.gradient", 4 if fp32 else 2, "grad_reduce_in_fp32", key)


def read_states(settings: Settings, prefix: str = "") -> None:
    """Take the bytes of master weights and both moments of a precision-aware optimizer.

    They are in FP32 where nothing is said.
    """
    aware = f"{prefix}use_precision_aware_optimizer"
    if settings.flag(aware):
        types = [settings.text(prefix + name) for name in _STATES]
        size = sum(_TYPES.get(name.removeprefix("torch."), 4.0) for name in types)
        rule = "precision-aware optimizer"
        settings.derive("memory.optimizer_bytes", size, rule, aware)


def _apply_rules(found: Findings, overlap: bool, even: bool) -> None:
    """Derive what follows from the sizes of all sources."""
    messages(found, overlap=overlap)
    sequence_parallel(found)
    if even:
        stages(found)
    cuts(found)
    experts(found)
    buckets(found)


REFUSES = "Megatron refuses this: "
STRATEGIES = {
    "no_shard": "ddp",
    "optim": "zero1",
    "optim_grads": "zero2",
    "optim_grads_params": "zero3",
}
DISPATCHES = {"alltoall": "flat", "alltoall_seq": "flat", "flex": "deduplicated"}
CONTEXT_WAYS = {
    "p2p": "p2p",
    "a2a": "a2a",
    "allgather": "all_gather",
    "all_gather": "all_gather",
}
_STATES = ("main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype")
_TYPES = {"fp16": 2.0, "bf16": 2.0, "float16": 2.0, "bfloat16": 2.0, "fp8": 1.0}
_BUCKET = "data_parallel.bucket_parameters"
_USUAL_BUCKET = 40_000_000


def refuse_fact(found: Findings, key: str, message: str, hint: str = "") -> None:
    """Record that Megatron refuses the fact of a key, at its place.

    Nothing while a value is asked for, on which it may depend.
    """
    if not found.unsure:
        found.problem(key, REFUSES + message, hint)


def order(settings: Settings, key: str) -> None:
    """Set the order of the axes: the default, or the one that a flag turns on."""
    found, fact = settings.found, "parallelism.order"
    if settings.flag(key):
        found.read(fact, "-".join(REPLICA_MAJOR_ORDER), settings.place(key))
    else:
        found.derive(fact, "-".join(MEGATRON_DEFAULT_ORDER), "Megatron's default")


def sequence_parallel(found: Findings) -> None:
    """Drop sequence parallelism at tp 1."""
    key = "tensor_parallel.sequence"
    if found.integer("parallelism.tp", 1) == 1:
        place = found.facts[key].place if found.has(key) else None
        _forget(found, key)
        found.derive(key, False, "dropped at tp 1", place)


def precision(
    found: Findings, kind: str, recipe: str, place: Place, ends: int = 0
) -> None:
    """Matrix products in ``fp8`` or ``fp4``, in which their inputs are kept.

    ``ends`` layers at the start and the end stay in bf16.
    """
    gemm = {"fp4": "nvfp4"}.get(kind, "mxfp8" if recipe.startswith("mx") else kind)
    rule = f"{kind} {recipe}".rstrip()
    found.derive("memory.gemm", gemm, rule, place)
    if ends:
        found.later(_other_layers, ends, place)


def _other_layers(joined: Findings, ends: int, place: Place) -> None:
    layers = joined.integer("model.layers") - ends
    if layers > 0:
        joined.derive("memory.gemm_layers", layers, f"{ends} layers in bf16", place)


def messages(found: Findings, *, overlap: bool) -> None:
    """Overlap messages between stages where these are virtual."""
    if found.integer("parallelism.vp", 1) == 1:
        found.derive("overlap.pp", False, "no p2p overlap without virtual stages")
    else:
        found.derive("overlap.pp", overlap, "p2p overlap of virtual stages")


def stages(found: Findings) -> None:
    """Refuse layers that even stages do not divide."""
    pp, vp = (found.integer(f"parallelism.{axis}", 1) for axis in ("pp", "vp"))
    layers = found.integer("model.layers")
    ends = found.integer("stages.embedding") + found.integer("stages.loss")
    what = "layers, embedding and loss" if ends else "layers"
    total = layers + ends
    if layers and total % (pp * vp):
        virtual = vp > 1 and not total % pp
        by = f"pp x vp = {pp} x {vp}" if virtual else f"pp {pp}"
        refuse_fact(found, "model.layers", f"{total} {what} are not divisible by {by}")


def cuts(found: Findings, *, by_heads: bool = False) -> None:
    """Refuse heads and sequences that tp and cp cannot cut.

    ``by_heads``: cp shares out heads (Ulysses), not the two ends of a sequence.
    """
    heads = found.integer("model.heads")
    if not heads:
        return
    tp, cp = found.integer("parallelism.tp", 1), found.integer("parallelism.cp", 1)
    if heads % tp:
        refuse_fact(found, "model.heads", f"{heads} heads are not divisible by tp {tp}")
    groups = found.integer("model.kv_heads", heads)
    if groups % tp and tp % groups:
        words = f"{groups} query groups and tp {tp} do not divide each other"
        refuse_fact(found, "model.kv_heads", words)
    sequence = found.integer("sequence")
    if cp > 1 and sequence % (2 * cp) and not by_heads:
        words = f"sequence {sequence} is not divisible by 2 x cp {cp}"
        refuse_fact(found, "sequence", words)


def experts(found: Findings, *, sequence: bool = True) -> None:
    """Set what experts have where nothing says it, and refuse what they cannot.

    ``sequence``: tensor ranks must share sequences out too.
    """
    count, ep = found.integer("model.experts"), found.integer("parallelism.ep", 1)
    if not count:
        if not found.integer("model.layers"):  # no shape yet: it is asked for
            return
        found.facts.pop("parallelism.etp", None)
        if ep > 1:
            refuse_fact(found, "parallelism.ep", "expert parallelism without experts")
        return
    if count % ep:
        words = f"{count} experts are no multiple of ep {ep}"
        refuse_fact(found, "parallelism.ep", words)
    tp = found.integer("parallelism.tp", 1)
    found.derive("parallelism.etp", tp, f"tp {tp}")
    found.derive("model.top_k", 2, "Megatron's default")
    if ffn := found.integer("model.ffn"):
        found.derive("model.expert_ffn", ffn, f"ffn {ffn}")
    if sequence and tp > 1 and not found.integer("tensor_parallel.sequence"):
        words = "experts with tensor and without sequence parallelism"
        refuse_fact(found, "model.experts", words)


def equal_parts(found: Findings, backend: str, place: Place) -> None:
    """What a back end for experts asks of their groups: HybridEP asserts it.

    NVIDIA/Megatron-LM, ``megatron/core/transformer/moe/fused_a2a.py``.
    """
    if backend.lower() == "hybridep":
        found.read(EVEN_PARTS, "HybridEP", place)


def optimizer_instances(found: Findings, instances: int, place: Place) -> None:
    """Share the optimizer out inside each of several groups of replicas.

    FSDP shares out all it has inside a group: hybrid sharding.
    """
    if instances < 2:
        return
    key = "data_parallel.sharding"
    sharding = found.text(key)
    members = found.integer("parallelism.dp") * found.integer("parallelism.cp", 1)
    if sharding == "ddp":
        words = f"{instances} optimizer instances without the distributed optimizer"
        refuse_fact(found, key, words)
    elif members % instances:
        words = f"{instances} optimizer instances do not divide dp x cp = {members}"
        refuse_fact(found, key, words)
    elif sharding == "zero3":
        rule = f"dp x cp {members} / {instances} instances"
        _forget(found, key)
        found.derive(key, "hsdp", rule, place)
        found.derive("data_parallel.shard_size", members // instances, rule, place)
    else:
        found.read("data_parallel.optimizer_instances", instances, place)


def buckets(found: Findings, count: int = 0, place: Place | None = None) -> None:
    """Set the parameters of a gradient bucket.

    All of a rank without overlap, or their share of ``count`` buckets, else the larger
    of 40 M and 1 M for each member of the gradients' group.
    """
    if found.text("data_parallel.sharding") not in ("ddp", "zero1", "zero2"):
        return
    members = found.integer("parallelism.dp") * found.integer("parallelism.cp", 1)
    whole = _parameters_of_rank(found)
    if not found.integer("data_parallel.overlap_reduce"):
        if whole:
            _forget(found, _BUCKET)
            found.derive(_BUCKET, whole, "one bucket without overlap")
    elif count and whole:
        rule = f"{whole:,} parameters of a rank / {count} buckets"
        found.derive(_BUCKET, max(1, whole // count), rule, place)
    elif members:
        size = max(_USUAL_BUCKET, 1_000_000 * members)
        found.derive(_BUCKET, size, f"the larger of 40 M and 1 M x dp x cp {members}")


def _forget(found: Findings, key: str) -> None:
    """Drop a fact that a rule replaces, unless an option gives it."""
    if found.has(key) and found.facts[key].kind != "given":
        del found.facts[key]


def _parameters_of_rank(found: Findings) -> int:
    """Parameters of a rank on average; 0 where the shape is not known."""
    model, needed = model_of(found), ("layers", "hidden", "ffn", "heads", "vocab")
    if model is None or not all(found.integer(f"model.{key}") for key in needed):
        return 0
    ranks = found.integer("parallelism.tp", 1) * found.integer("parallelism.pp", 1)
    return max(1, total_parameters(model) // ranks)
