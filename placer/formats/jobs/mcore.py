"""The keys of Megatron-Core, for the frameworks that configure it by them."""

from __future__ import annotations

from placer.formats.jobs import core_rules
from placer.formats.jobs.findings import Findings
from placer.formats.jobs.settings import Settings
from placer.job.memory import METHODS, MODULES

_AXES = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "etp": "expert_tensor_parallel_size",
    "vp": "virtual_pipeline_model_parallel_size",
}
# How keys of recomputation begin, in NeMo 1 too.
_RECOMPUTED = ("recompute", "activations_checkpoint")
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
    for axis, key in _AXES.items():
        settings.copy(f"parallelism.{axis}", prefix + key)
    key = prefix + "use_tp_pp_dp_mapping"
    mapped = settings.flag(key)
    core_rules.order(settings.found, settings.place(key) if mapped else None)


def ones(found: Findings, rule: str) -> None:
    """Set axes of which no size is said to 1."""
    for axis in ("tp", "pp", "cp", "ep"):
        found.derive(f"parallelism.{axis}", 1, rule)


def read_shape(settings: Settings, prefix: str) -> None:
    """Take the shape of a model as far as it is said."""
    settings.copy_all(_SHAPE, prefix)
    gated = settings.flag(prefix + "gated_linear_unit", prefix + "swiglu")
    place = settings.place(prefix + "gated_linear_unit")
    if gated is not None:
        settings.found.read("model.gated", gated, place)
    key = "share_embeddings_and_output_weights"
    settings.copy_flag("model.tied_embeddings", prefix + key)


def read_rest(settings: Settings, prefix: str) -> None:
    """Take how axes communicate, and leave the rest to the rules of Megatron-Core."""
    found = settings.found
    settings.copy_flag("tensor_parallel.sequence", prefix + "sequence_parallel")
    settings.copy_flag("overlap.tp", prefix + "tp_comm_overlap")
    settings.copy_flag("overlap.ep", prefix + "overlap_moe_expert_parallel_comm")
    for end in ("embedding", "loss"):
        key = f"{prefix}account_for_{end}_in_pipeline_split"
        if settings.flag(key):
            settings.derive(f"stages.{end}", 1, key, key)
    way = settings.choice(core_rules.CONTEXT_WAYS, prefix + "cp_comm_type")
    if way:
        found.derive("context_parallel.communication", way, f"cp_comm_type {way}")
        if way != "p2p":
            rule = f"cp_comm_type {way} does not run beside attention"
            found.derive("overlap.cp", False, rule)
    _read_dispatch(settings, prefix)
    uneven = [
        f"{prefix}num_layers_in_{end}_pipeline_stage" for end in ("first", "last")
    ]
    uneven = [key for key in uneven if settings.integer(key)]
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
    key = f"{prefix}recompute_granularity"
    recompute = settings.text(key, f"{prefix}activations_checkpoint_granularity")
    rule = f"recompute_granularity {recompute}"
    if recompute == "full":
        settings.recomputed(key, rule)
        method = f"{prefix}recompute_method", f"{prefix}activations_checkpoint_method"
        layers = [f"{prefix}{name}_num_layers" for name in _RECOMPUTED]
        if settings.text(*method) in METHODS:
            settings.copy("memory.recompute_layers", *layers)
            way, place = settings.text(*method), settings.place(*method)
            found.read("memory.recompute_method", way, place)
    if recompute == "selective":
        found.derive("memory.recompute", recompute, rule)
        key = prefix + "recompute_modules"
        given = [name for name in settings.texts(key) if name]
        known = [name for name in given if name in MODULES]
        if known:
            found.read("memory.recompute_modules", known, settings.place(key))
        elif given:
            # Only what the model does not know is computed again.
            found.facts.pop("memory.recompute", None)
        if len(known) < len(given):
            settings.not_modelled(key, "modules that are not known")


def _read_dispatch(settings: Settings, prefix: str) -> None:
    key = prefix + "moe_token_dispatcher_type"
    kind = settings.text(key)
    if settings.flag(prefix + "moe_enable_deepep"):
        kind = "flex"
    if kind in core_rules.DISPATCHES:
        way, rule = core_rules.DISPATCHES[kind], f"moe_token_dispatcher_type {kind}"
        settings.derive("expert_parallel.dispatch", way, rule, key)
        if way == "deduplicated":
            key = prefix + "moe_flex_dispatcher_backend"
            backend, place = settings.text(key), settings.place(key)
            core_rules.equal_parts(settings.found, backend, place)
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
        kind = core_rules.STRATEGIES.get(strategy, "zero3")
        found.derive("data_parallel.sharding", kind, f"FSDP, {strategy}", place)
    elif sharded is not None:
        kind = "zero1" if sharded else "ddp"
        found.derive("data_parallel.sharding", kind, "use_distributed_optimizer", place)
    else:
        found.assume("data_parallel.sharding", "zero1", "as all its recipes do")
    key = prefix + "num_distributed_optimizer_instances"
    instances, place = settings.integer(key) or 1, settings.place(key)
    found.later(core_rules.optimizer_instances, instances, place)
    settings.copy_flag("data_parallel.overlap_reduce", prefix + "overlap_grad_reduce")
    settings.copy_flag("data_parallel.overlap_gather", prefix + "overlap_param_gather")
    size = prefix + "bucket_size"
    settings.copy("data_parallel.bucket_parameters", size, maximum=10**13)
    read_states(settings, optimizer)
    key = prefix + "grad_reduce_in_fp32"
    if (fp32 := settings.flag(key)) is not None:
        settings.derive("bytes.gradient", 4 if fp32 else 2, "grad_reduce_in_fp32", key)


def read_states(settings: Settings, prefix: str = "") -> None:
    """Take the types of what a precision-aware optimizer keeps."""
    aware = f"{prefix}use_precision_aware_optimizer"
    if settings.flag(aware):
        types = [settings.text(prefix + name) for name in core_rules.STATE_TYPES]
        core_rules.optimizer_states(settings.found, types, settings.place(aware))


def _apply_rules(found: Findings, overlap: bool, even: bool) -> None:
    """Derive what follows from the sizes of all sources."""
    core_rules.messages(found, overlap=overlap)
    core_rules.sequence_parallel(found)
    if even:
        core_rules.stages(found)
    core_rules.cuts(found)
    core_rules.experts(found)
    core_rules.buckets(found)
