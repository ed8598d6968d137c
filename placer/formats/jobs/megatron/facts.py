"""What the arguments of Megatron say of a job in so many words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.base.errors import Problem
from placer.formats.jobs import core_rules
from placer.formats.jobs.findings import GLOBAL_BATCH, Findings, Place, Remark
from placer.formats.jobs.megatron.mixed import refuse_mixed
from placer.formats.jobs.megatron.refusals import refuse
from placer.formats.jobs.megatron.traffic import read_traffic
from placer.formats.jobs.megatron.vocabulary import read_vocabulary

if TYPE_CHECKING:
    from placer.formats.jobs.megatron.arguments import Arguments

_AXES = {
    "parallelism.tp": "tensor_model_parallel_size",
    "parallelism.cp": "context_parallel_size",
    "parallelism.pp": "pipeline_model_parallel_size",
    "parallelism.ep": "expert_model_parallel_size",
}
_SHAPE = {
    "model.layers": "num_layers",
    "model.hidden": "hidden_size",
    "model.heads": "num_attention_heads",
    "model.ffn": "ffn_hidden_size",
}
_LATENT = {  # with what arguments.py gives where nothing is said
    "model.q_lora_rank": ("q_lora_rank", 0),
    "model.kv_lora_rank": ("kv_lora_rank", 32),
    "model.qk_head_dim": ("qk_head_dim", 128),
    "model.rope_head_dim": ("qk_pos_emb_head_dim", 64),
    "model.v_head_dim": ("v_head_dim", 128),
}
_DEFAULT = "Megatron's default"


def read_facts(found: Findings, arguments: Arguments, *, shape: bool = True) -> None:
    """Read everything that needs no other source; what is refused is a problem.

    ``shape`` is false for programs that take the model from elsewhere.
    """
    _axes(found, arguments)
    _batch(found, arguments)
    if shape:
        _shape(found, arguments)
        _experts(found, arguments)
        read_vocabulary(found, arguments)
    read_traffic(found, arguments)


def _axes(found: Findings, arguments: Arguments) -> None:
    for key, name in _AXES.items():
        if arguments.fact(key, name) is None:
            found.derive(key, 1, _DEFAULT)
    if (arguments.fact("parallelism.cp", "ds_sequence_parallel_size") or 1) > 1:
        found.derive("context_parallel.communication", "a2a", "DeepSpeed-Ulysses")
    arguments.fact("parallelism.etp", "expert_tensor_parallel_size")
    mapped = arguments.flag("use_tp_pp_dp_mapping")
    core_rules.order(found, arguments.place("use_tp_pp_dp_mapping") if mapped else None)
    shards = arguments.integer("tensor_parallel_num_weight_shards", "parallelism.tp")
    if shards is not None and shards > found.integer("parallelism.tp", 1):
        place = arguments.place("tensor_parallel_num_weight_shards")
        message = "weights sharded beyond tensor parallelism have no job key"
        found.problems.append(Problem(message, *(place or Place(found.source))))
    for name in ("model_parallel_size", "batch_size"):
        if arguments.noted(name) is not None:
            refuse(
                found, arguments, name, f"--{name.replace('_', '-')} is no longer valid"
            )


def _batch(found: Findings, arguments: Arguments) -> None:
    arguments.fact("micro_batch", "micro_batch_size")
    given = arguments.fact(GLOBAL_BATCH, "global_batch_size") is not None
    schedule = arguments.get("step_batch_size_schedule")
    if schedule is not None:
        if given:
            message = "--step-batch-size-schedule and --global-batch-size together"
            hint = "remove one of them; older versions took both"
            refuse(found, arguments, "step_batch_size_schedule", message, hint)
        last = schedule.values[-1].text.rpartition(":")[2] if schedule.values else ""
        if last.isdecimal() and len(last) < 10:
            found.read(GLOBAL_BATCH, int(last), schedule.value_place)
            found.notes.append(f"the last batch size of the schedule counts: {last}")
    if arguments.noted("rampup_batch_size") is not None:
        found.notes.append("the batch size after --rampup-batch-size counts")
    # Models of images have --seq-length for these, and another for their decoder.
    for name in (
        "decoder_seq_length",
        "seq_length",
        "encoder_seq_length",
        "max_length",
    ):
        if not found.has("sequence"):
            arguments.fact("sequence", name)
    name = "max_position_embeddings"
    most = None if arguments.is_open(name) else arguments.integer(name, "sequence")
    if most is not None and most < found.integer("sequence"):
        message = f"max_position_embeddings {most} is less than seq_length"
        refuse(found, arguments, "max_position_embeddings", message)


def _shape(found: Findings, arguments: Arguments) -> None:
    given = [arguments.fact(key, name) for key, name in _SHAPE.items()]
    refuse_mixed(found, arguments)
    _gated(found, arguments, is_whole=any(given))
    place = arguments.place("untie_embeddings_and_output_weights")
    untied = arguments.flag("untie_embeddings_and_output_weights")
    if place is not None:
        found.read("model.tied_embeddings", not untied, place)
    elif any(given):  # or another source has the shape, and this too
        rule = "no --untie-embeddings-and-output-weights"
        found.derive("model.tied_embeddings", True, rule)
    if arguments.flag("multi_latent_attention"):
        if arguments.flag("group_query_attention"):
            message = "--group-query-attention with --multi-latent-attention"
            refuse(found, arguments, "multi_latent_attention", message)
        for key, (name, usual) in _LATENT.items():
            if arguments.fact(key, name, minimum=0) is None:
                found.derive(key, usual, _DEFAULT)
        return
    arguments.fact("model.head_dim", "kv_channels")
    if arguments.flag("group_query_attention"):
        if arguments.fact("model.kv_heads", "num_query_groups") is None:
            found.derive("model.kv_heads", 1, _DEFAULT)
    else:
        arguments.fact("model.kv_heads", "num_key_value_heads")


def _gated(found: Findings, arguments: Arguments, *, is_whole: bool) -> None:
    for name in ("swiglu", "quick_geglu", "geglu"):
        place = arguments.place(name)
        if place is not None and arguments.flag(name):
            found.read("model.gated", True, place)
            return
    function = arguments.text("activation_func")
    place = arguments.place("activation_func")
    if function and place is not None:
        found.read("model.gated", function in ("swiglu", "geglu"), place)
    arguments.noted("squared_relu")
    if is_whole:
        found.derive("model.gated", False, "no --swiglu or --quick-geglu")


def _experts(found: Findings, arguments: Arguments) -> None:
    deepspeed = arguments.flag("deepspeed")
    if deepspeed:
        arguments.fact("parallelism.ep", "moe_expert_parallel_size")
        if not arguments.flag("enable_expert_tensor_parallelism"):
            found.derive("parallelism.etp", 1, "no --enable-expert-tensor-parallelism")
    for name in ("moe_router_topk", "moe_ffn_hidden_size", "topk"):
        arguments.noted(name)
    if not _count_experts(found, arguments):
        return
    top_k = arguments.fact("model.top_k", "topk" if deepspeed else "moe_router_topk")
    if top_k is None:
        found.derive("model.top_k", 1 if deepspeed else 2, _DEFAULT)
    arguments.fact("model.expert_ffn", "moe_ffn_hidden_size")
    dispatcher = arguments.text("moe_token_dispatcher_type")
    place = arguments.place("moe_token_dispatcher_type")
    if dispatcher in core_rules.DISPATCHES and place is not None:
        way = core_rules.DISPATCHES[dispatcher]
        found.read("expert_parallel.dispatch", way, place)
        if core_rules.DISPATCHES[dispatcher] == "deduplicated":
            name = "moe_flex_dispatcher_backend"
            core_rules.equal_parts(found, arguments.text(name), arguments.place(name))
    elif arguments.is_open("moe_token_dispatcher_type"):
        return
    elif found.integer("parallelism.ep", 1) > 1 and not deepspeed:
        where = place or found.facts["model.experts"].place
        default = "" if dispatcher else "the default, "
        reason = f"{default}modelled as alltoall"
        found.not_modelled.append(Remark("token dispatcher allgather", where, reason))


def _count_experts(found: Findings, arguments: Arguments) -> bool:
    """Read the number of experts; whether there are several."""
    experts = arguments.get("num_experts")
    listed = arguments.texts("num_experts")  # Megatron-DeepSpeed has a list
    if experts is None or listed in (["0"], ["1"]):  # one for all tokens is no expert
        return False
    if len(set(listed)) > 1:
        message = "layers with different numbers of experts are not read"
        found.problems.append(Problem(message, *experts.value_place))
    elif listed and "[" in experts.values[0].text and listed[0].isdecimal():
        found.read("model.experts", int(listed[0][:9]), experts.value_place)
    else:
        arguments.fact("model.experts", "num_experts", minimum=0)
    return found.has("model.experts")
