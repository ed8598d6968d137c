"""Megatron-Core: what its settings say, as keys of frameworks and flags of Megatron.

Flags are keys too, with ``_`` for ``-``; a ``prefix`` is the section that keys stand
in. Source: NVIDIA/Megatron-LM d98e8a64, ``megatron/core/``.
"""

from __future__ import annotations

from collections.abc import Mapping

from placer.formats.jobs import mcore_rules
from placer.formats.jobs.findings import Findings
from placer.formats.jobs.settings import Settings
from placer.job.axes import MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER
from placer.job.memory import METHODS, MODULES

_AXES: dict[str, str | tuple[str, ...]] = {
    "parallelism.tp": "tensor_model_parallel_size",
    "parallelism.pp": "pipeline_model_parallel_size",
    "parallelism.cp": "context_parallel_size",
    "parallelism.ep": "expert_model_parallel_size",
    "parallelism.etp": "expert_tensor_parallel_size",
    "parallelism.vp": (
        "num_virtual_stages_per_pipeline_rank",
        "virtual_pipeline_model_parallel_size",
    ),
}
TRAFFIC = {
    "tensor_parallel.sequence": "sequence_parallel",
    "overlap.tp": "tp_comm_overlap",
    "overlap.ep": "overlap_moe_expert_parallel_comm",
}
OVERLAPS = {
    "data_parallel.overlap_reduce": "overlap_grad_reduce",
    "data_parallel.overlap_gather": "overlap_param_gather",
}
WIDTHS = {
    "model.layers": "num_layers",
    "model.hidden": "hidden_size",
    "model.heads": "num_attention_heads",
    "model.ffn": "ffn_hidden_size",
}
_SHAPE = WIDTHS | {
    "model.kv_heads": "num_query_groups",
    "model.head_dim": "kv_channels",
    "model.vocab": "vocab_size",
    "model.experts": "num_moe_experts",
    "model.top_k": "moe_router_topk",
    "model.expert_ffn": "moe_ffn_hidden_size",
}
_STRATEGIES = {
    "no_shard": "ddp",
    "optim": "zero1",
    "optim_grads": "zero2",
    "optim_grads_params": "zero3",
}
_DISPATCHES = {"alltoall": "flat", "alltoall_seq": "flat", "flex": "deduplicated"}
_CONTEXT_WAYS = {
    "p2p": "p2p",
    "a2a": "a2a",
    "allgather": "all_gather",
    "all_gather": "all_gather",
    "a2a+p2p": "p2p",
}
LAYOUT = "pipeline_model_parallel_layout"
_UNEVEN = (
    *("num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"),
    *("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"),
)
_STATES = ("main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype")
_TYPES = {"fp16": 2.0, "bf16": 2.0, "float16": 2.0, "bfloat16": 2.0, "fp8": 1.0}


def read_sizes(settings: Settings, prefix: str = "") -> None:
    """Take the sizes of the axes that are said."""
    settings.take(_AXES, prefix)
    order(settings, prefix + "use_tp_pp_dp_mapping")


def order(settings: Settings, key: str) -> None:
    """Set the order of the axes: the default, or the one that a flag turns on."""
    found, fact = settings.found, "parallelism.order"
    if settings.flag(key):
        found.read(fact, "-".join(REPLICA_MAJOR_ORDER), settings.place(key))
    else:
        found.derive(fact, "-".join(MEGATRON_DEFAULT_ORDER), "Megatron's default")


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


def read_rest(settings: Settings, prefix: str, *, recompute: bool = True) -> None:
    """Take how axes communicate, and leave the rest to the rules of Megatron-Core.

    ``recompute`` is false where another key turns that off.
    """
    settings.take(TRAFFIC, prefix)
    read_context(settings, prefix)
    read_dispatch(settings, prefix)
    if recompute:
        read_recompute(settings, prefix)
    read_mtp(settings, prefix)
    settings.found.later(mcore_rules.apply_rules, *read_stages(settings, prefix))


def read_stages(settings: Settings, prefix: str = "") -> tuple[bool, bool]:
    """What stages hold besides layers; whether messages overlap, and all are even."""
    for end in ("embedding", "loss"):
        key = f"{prefix}account_for_{end}_in_pipeline_split"
        if settings.flag(key):
            settings.say(f"stages.{end}", 1, key)
    uneven = list(filter(settings.get, (prefix + name for name in _UNEVEN)))
    for key in uneven:
        settings.not_modelled(key, "layers are spread evenly")
    overlap = settings.flag(prefix + "overlap_p2p_comm")
    if overlap is None:
        overlap = not settings.flag(prefix + "no_overlap_p2p_communication")
    return overlap, not (uneven or settings.get(prefix + LAYOUT))


def read_mtp(settings: Settings, prefix: str = "") -> None:
    """Take the layers that predict further tokens."""
    key = prefix + "mtp_num_layers"
    if layers := settings.copy("model.mtp_layers", key, minimum=0):
        settings.not_modelled(key, "work on the last stage", f"MTP {layers}")


def read_context(settings: Settings, prefix: str = "") -> None:
    """How cp sees the sequence; only the ring runs beside attention."""
    found, key = settings.found, prefix + "cp_comm_type"
    given = [word.lower() for word in settings.texts(key)]
    if not all(word in _CONTEXT_WAYS for word in given):
        settings.wrong(key, f"one of {', '.join(_CONTEXT_WAYS)}")
    elif given and found.integer("parallelism.cp", 2) > 1:
        first = _CONTEXT_WAYS[given[0]]
        settings.say("context_parallel.communication", first, key)
        if first != "p2p":
            rule = f"{given[0]} does not run beside attention"
            found.derive("overlap.cp", False, rule)
        if len(set(given)) > 1 or "+" in given[0]:
            words = f"cp_comm_type {' '.join(given[:4])}"
            settings.not_modelled(key, f"modelled as {first}", words)


def read_recompute(
    settings: Settings, prefix: str = "", implied: Mapping[str, str] | None = None
) -> None:
    """What is computed again; attention proper where no module is said.

    ``implied``: what further keys stand for where they are on.
    """
    # Keys begin so, before Megatron-Core the other way.
    key, older = f"{prefix}recompute", f"{prefix}activations_checkpoint"
    keys = f"{key}_granularity", f"{older}_granularity"
    kind, name = settings.text(*keys), (settings.get(*keys) or keys)[0]
    for other, stands_for in (implied or {}).items():
        if not kind and settings.flag(other):
            kind, name = stands_for, other
    if kind not in ("full", "selective"):
        return
    if kind == "selective":
        settings.say("memory.recompute", kind, name)
        key += "_modules"
        for module in _recomputed_modules(settings, key):
            settings.not_modelled(key, what=f"recompute {module}")
        return
    settings.recomputed(name)
    method = f"{key}_method", f"{older}_method"
    if (way := settings.text(*method)) in METHODS:
        settings.found.read("memory.recompute_method", way, settings.place(*method))
        layers = f"{key}_num_layers", f"{older}_num_layers"
        settings.copy("memory.recompute_layers", *layers)


def _recomputed_modules(settings: Settings, key: str) -> list[str]:
    """Take the modules that are computed again; the rest, that no model knows."""
    given = settings.texts(key)
    known = [name for name in given if name in MODULES]
    if known:
        settings.found.read("memory.recompute_modules", known, settings.place(key))
    elif given:
        settings.found.facts.pop("memory.recompute", None)  # the rest alone is
    return [name for name in given if name not in MODULES]


def read_dispatch(settings: Settings, prefix: str = "") -> None:
    """How tokens get to their experts."""
    found, key = settings.found, prefix + "moe_token_dispatcher_type"
    kind, deepep = settings.text(key), prefix + "moe_enable_deepep"
    if settings.flag(deepep):
        kind, key = "flex", key if settings.get(key) else deepep
    if kind in _DISPATCHES:
        way = _DISPATCHES[kind]
        settings.say("expert_parallel.dispatch", way, key)
        if way == "deduplicated":
            key = prefix + "moe_flex_dispatcher_backend"
            mcore_rules.equal_parts(found, settings.text(key), settings.place(key))
    elif kind and found.integer("parallelism.ep", 2) > 1:
        what = f"token dispatcher {kind}"
        settings.not_modelled(key, "modelled as alltoall", what)


def read_ddp(settings: Settings, prefix: str, optimizer: str) -> None:
    """Take how gradients are reduced, of the section of data parallelism."""
    read_sharding(settings, prefix, optimizer)
    settings.found.assume("data_parallel.sharding", "zero1", "as all its recipes do")
    settings.take(OVERLAPS, prefix)
    read_reduction(settings, prefix, optimizer)
    key = prefix + "grad_reduce_in_fp32"
    if (fp32 := settings.flag(key)) is not None:
        settings.say("bytes.gradient", 4 if fp32 else 2, key)


def read_sharding(settings: Settings, prefix: str = "", optimizer: str = "") -> None:
    """Take what replicas share out, as far as it is said."""
    fact = "data_parallel.sharding"
    keys = f"{prefix}use_distributed_optimizer", f"{optimizer}use_distributed_optimizer"
    sharded = settings.flag(*keys)
    names = (prefix + name for name in ("use_megatron_fsdp", "use_custom_fsdp"))
    key = prefix + "data_parallel_sharding_strategy"
    settings.known.add(key)  # without FSDP it is no slip
    if fsdp := next(filter(settings.flag, names), ""):
        kind = _STRATEGIES.get(settings.text(key), "zero3")
        settings.say(fact, kind, key if settings.get(key) else fsdp)
    elif sharded is not None:
        settings.say(fact, "zero1" if sharded else "ddp", *keys)


def read_reduction(settings: Settings, prefix: str = "", optimizer: str = "") -> None:
    """Take buckets and states, and groups of replicas that share these."""
    key = prefix + "num_distributed_optimizer_instances"
    instances = settings.integer(key, fact="data_parallel.optimizer_instances")
    settings.found.later(
        mcore_rules.optimizer_instances, instances or 1, settings.place(key)
    )
    buckets = prefix + "bucket_size", prefix + "ddp_bucket_size"
    settings.copy(mcore_rules.BUCKET, *buckets, maximum=10**13)
    aware = f"{optimizer}use_precision_aware_optimizer"
    # Master weights and both moments are in FP32 where nothing is said.
    if settings.flag(aware):
        types = [settings.text(optimizer + name) for name in _STATES]
        size = sum(_TYPES.get(name.removeprefix("torch."), 4.0) for name in types)
        rule = "precision-aware optimizer"
        settings.derive("memory.optimizer_bytes", size, rule, aware)
