"""What the arguments of Megatron say of a job in so many words."""

from __future__ import annotations

from placer.errors import Problem
from placer.sources.findings import GLOBAL_BATCH, Findings, Place, Remark
from placer.sources.megatron.arguments import Arguments
from placer.sources.megatron.vocabulary import read_vocabulary

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
_STRATEGIES = {
    "no_shard": "ddp",
    "optim": "zero1",
    "optim_grads": "zero2",
    "optim_grads_params": "zero3",
}
_EMERGING = ("muon", "dist_muon", "adaptive_muon", "soap", "lion")


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
    _sharding(found, arguments)
    _bytes(found, arguments)
    _overlaps(found, arguments)
    _recompute(found, arguments)
    _not_modelled(found, arguments)


def refuse(
    found: Findings, arguments: Arguments, name: str, message: str, hint: str = ""
) -> None:
    """Record that Megatron refuses an argument, and why."""
    place = arguments.place(name) or Place(found.source)
    told = f"Megatron refuses this: {message}"
    found.problems.append(Problem(told, *place, hint=hint))


def read_flag(found: Findings, arguments: Arguments, key: str, name: str) -> bool:
    """Read a flag; where it is not given, what that means is derived."""
    place = arguments.place(name)
    is_on = arguments.flag(name)
    if place is not None:
        found.read(key, is_on, place)
    else:
        found.derive(key, False, f"no --{name.replace('_', '-')}")
    return is_on


def _axes(found: Findings, arguments: Arguments) -> None:
    for key, name in _AXES.items():
        if arguments.fact(key, name) is None:
            found.derive(key, 1, _DEFAULT)
    if arguments.get("ds_sequence_parallel_size") is not None:
        if (arguments.fact("parallelism.cp", "ds_sequence_parallel_size") or 1) > 1:
            found.derive("context_parallel.communication", "a2a", "DeepSpeed-Ulysses")
    arguments.fact("parallelism.etp", "expert_tensor_parallel_size")
    place = arguments.place("use_tp_pp_dp_mapping")
    if place is not None and arguments.flag("use_tp_pp_dp_mapping"):
        found.read("parallelism.order", "tp-cp-ep-pp-dp", place)
    else:
        found.derive("parallelism.order", "tp-cp-ep-dp-pp", _DEFAULT)
    shards = arguments.integer("tensor_parallel_num_weight_shards", "parallelism.tp")
    if shards is not None and shards > found.integer("parallelism.tp", 1):
        place = arguments.place("tensor_parallel_num_weight_shards")
        message = "weights sharded beyond tensor parallelism have no job key"
        found.problems.append(Problem(message, *(place or Place(found.source))))
    for name in ("model_parallel_size", "batch_size"):
        if arguments.get(name) is not None:
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
    if arguments.get("rampup_batch_size") is not None:
        found.notes.append("the batch size after --rampup-batch-size counts")
    for name in ("seq_length", "encoder_seq_length", "max_length"):
        if not found.has("sequence"):
            arguments.fact("sequence", name)
    most = arguments.integer("max_position_embeddings", "sequence")
    if most is not None and most < found.integer("sequence"):
        message = f"max_position_embeddings {most} is less than seq_length"
        refuse(found, arguments, "max_position_embeddings", message)


def _shape(found: Findings, arguments: Arguments) -> None:
    given = [arguments.fact(key, name) for key, name in _SHAPE.items()]
    for name in ("hybrid_layer_pattern", "hybrid_override_pattern"):
        _hybrid(found, arguments, name)
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


def _hybrid(found: Findings, arguments: Arguments, name: str) -> None:
    """Refuse models of which some layers are no transformer layers."""
    pattern = arguments.text(name)
    if pattern:
        names = {"M": "Mamba", "G": "gated delta net", "-": "MLP", "*": "attention"}
        counts = ", ".join(
            f"{pattern.count(sign)} {words}"
            for sign, words in names.items()
            if sign in pattern
        )
        message = f"a model of mixed layers ({counts}) is not read"
        place = arguments.place(name) or Place(found.source)
        found.problems.append(Problem(message, *place))


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
    arguments.flag("squared_relu")
    if is_whole:
        found.derive("model.gated", False, "no --swiglu or --quick-geglu")


def _experts(found: Findings, arguments: Arguments) -> None:
    experts = arguments.get("num_experts")
    listed = arguments.texts("num_experts")
    if experts is None or listed in (["0"], ["1"]) and "[" in experts.values[0].text:
        for name in ("moe_router_topk", "moe_ffn_hidden_size", "topk"):
            arguments.get(name)
        return
    if len(listed) > 1 or "[" in experts.values[0].text:
        if len(set(listed)) > 1:
            message = "layers with different numbers of experts are not read"
            found.problems.append(Problem(message, *experts.value_place))
        elif listed and listed[0].isdecimal():
            found.read("model.experts", int(listed[0][:9]), experts.value_place)
    elif arguments.fact("model.experts", "num_experts", minimum=0) == 0:
        del found.facts["model.experts"]
        return
    top_k = arguments.fact("model.top_k", "moe_router_topk")
    if top_k is None and arguments.fact("model.top_k", "topk") is None:
        found.derive("model.top_k", 2, _DEFAULT)
    arguments.fact("model.expert_ffn", "moe_ffn_hidden_size")
    dispatcher = arguments.text("moe_token_dispatcher_type")
    place = arguments.place("moe_token_dispatcher_type")
    if dispatcher in ("alltoall", "alltoall_seq", "flex") and place is not None:
        kind = "deduplicated" if dispatcher == "flex" else "flat"
        found.read("expert_parallel.dispatch", kind, place)
    elif found.integer("parallelism.ep", 1) > 1:
        where = place or experts.place
        reason = (
            "modelled as alltoall"
            if dispatcher
            else "the default, modelled as alltoall"
        )
        found.not_modelled.append(Remark("token dispatcher allgather", where, reason))


def _sharding(found: Findings, arguments: Arguments) -> None:
    key = "data_parallel.sharding"
    stage = arguments.integer("zero_stage", key, minimum=0)
    deepspeed = arguments.flag("deepspeed")
    distributed = arguments.flag("use_distributed_optimizer")
    strategy = arguments.text("data_parallel_sharding_strategy") or "optim_grads_params"
    fsdp = next(
        (n for n in ("use_megatron_fsdp", "use_custom_fsdp") if arguments.flag(n)), ""
    )
    if deepspeed or (stage and not distributed):
        place = arguments.place("zero_stage")
        sharding = {0: "ddp", 1: "zero1", 2: "zero2"}.get(stage or 0, "zero3")
        if place is not None:
            found.read(key, sharding, place)
        else:
            found.derive(key, "ddp", "DeepSpeed's default, stage 0")
    elif arguments.flag("use_torch_fsdp2"):
        _read_at(found, arguments, key, "zero3", "use_torch_fsdp2")
        if arguments.flag("torch_fsdp2_no_reshard_after_forward"):
            found.derive(
                "data_parallel.keep_parameters", True, "no reshard after forward"
            )
        _refuse_fsdp2(found, arguments)
    elif fsdp:
        sharding = _STRATEGIES.get(strategy, "zero3")
        name = "data_parallel_sharding_strategy"
        _read_at(found, arguments, key, sharding, name if arguments.get(name) else fsdp)
    elif distributed:
        _read_at(found, arguments, key, "zero1", "use_distributed_optimizer")
    else:
        found.derive(key, "ddp", "no --use-distributed-optimizer")
    if arguments.text("optimizer") in _EMERGING:
        place = arguments.place("optimizer") or found.facts[key].place
        found.not_modelled.append(
            Remark(f"optimizer {arguments.text('optimizer')}", place)
        )


def _read_at(
    found: Findings, arguments: Arguments, key: str, value: str | int | bool, name: str
) -> None:
    place = arguments.place(name)
    if place is not None:
        found.read(key, value, place)


def _refuse_fsdp2(found: Findings, arguments: Arguments) -> None:
    for name, is_so, words in (
        (
            "pipeline_model_parallel_size",
            found.integer("parallelism.pp") > 1,
            "pipeline parallelism",
        ),
        (
            "expert_model_parallel_size",
            found.integer("parallelism.ep") > 1,
            "expert parallelism",
        ),
        (
            "use_distributed_optimizer",
            arguments.flag("use_distributed_optimizer"),
            "the distributed optimizer",
        ),
        ("fp16", arguments.flag("fp16"), "fp16"),
    ):
        if is_so:
            refuse(found, arguments, name, f"--use-torch-fsdp2 with {words}")
    if not arguments.flag("untie_embeddings_and_output_weights"):
        message = "--use-torch-fsdp2 needs --untie-embeddings-and-output-weights"
        refuse(found, arguments, "use_torch_fsdp2", message)


def _bytes(found: Findings, arguments: Arguments) -> None:
    """Bytes of an element: Megatron reduces bf16 gradients in fp32."""
    bf16, fp16 = arguments.flag("bf16"), arguments.flag("fp16")
    in_fp32 = arguments.flag("accumulate_allreduce_grads_in_fp32")
    if bf16 and fp16:
        refuse(found, arguments, "fp16", "--fp16 and --bf16 together")
    key = "bytes.gradient"
    types = {"fp32": 4, "float32": 4, "bf16": 2, "fp16": 2, "bfloat16": 2, "float16": 2}
    wire = arguments.text("megatron_fsdp_grad_comm_dtype").removeprefix("torch.")
    main = arguments.text("main_grads_dtype").removeprefix("torch.")
    if wire in types:
        _read_at(found, arguments, key, types[wire], "megatron_fsdp_grad_comm_dtype")
    elif bf16 and arguments.flag("grad_reduce_in_bf16"):
        _read_at(found, arguments, key, 2, "grad_reduce_in_bf16")
    elif bf16 and types.get(main) == 2 and not in_fp32:
        _read_at(found, arguments, key, 2, "main_grads_dtype")
    elif bf16 and not arguments.flag("deepspeed"):
        found.derive(key, 4, "bf16 gradients are reduced in fp32")
    elif in_fp32:
        _read_at(found, arguments, key, 4, "accumulate_allreduce_grads_in_fp32")
    elif bf16 or fp16:
        found.derive(key, 2, "gradients are reduced in their own type")
    else:
        found.derive(key, 4, "neither --bf16 nor --fp16")
    size = 2 if bf16 or fp16 else 4
    rule = f"{'bf16' if bf16 else 'fp16' if fp16 else 'fp32'} parameters"
    found.derive("bytes.activation", size, rule)
    if arguments.flag("fp8_param_gather"):
        if found.text("data_parallel.sharding") == "ddp":
            message = "--fp8-param-gather without the distributed optimizer or FSDP"
            refuse(found, arguments, "fp8_param_gather", message)
        _read_at(found, arguments, "bytes.parameter_gather", 1, "fp8_param_gather")
    else:
        found.derive("bytes.parameter_gather", size, rule)


def _overlaps(found: Findings, arguments: Arguments) -> None:
    reduce = read_flag(
        found, arguments, "data_parallel.overlap_reduce", "overlap_grad_reduce"
    )
    gather = read_flag(
        found, arguments, "data_parallel.overlap_gather", "overlap_param_gather"
    )
    sharded = found.text("data_parallel.sharding") != "ddp"
    if gather and not sharded:
        message = "--overlap-param-gather without the distributed optimizer or FSDP"
        refuse(found, arguments, "overlap_param_gather", message)
    if gather and not reduce:
        message = "--overlap-param-gather without --overlap-grad-reduce"
        refuse(found, arguments, "overlap_param_gather", message)
    if arguments.flag("use_torch_fsdp2"):
        for key in ("data_parallel.overlap_reduce", "data_parallel.overlap_gather"):
            del found.facts[key]
            found.derive(key, True, "PyTorch's FSDP2 prefetches")
    arguments.fact("data_parallel.bucket_parameters", "ddp_bucket_size")
    sequence = arguments.flag("sequence_parallel")
    if sequence and found.integer("parallelism.tp", 1) > 1:
        _read_at(
            found, arguments, "tensor_parallel.sequence", True, "sequence_parallel"
        )
    else:
        rule = "dropped at tp 1" if sequence else "no --sequence-parallel"
        found.derive("tensor_parallel.sequence", False, rule)
    if read_flag(found, arguments, "overlap.tp", "tp_comm_overlap"):
        if not found.integer("tensor_parallel.sequence"):
            message = "--tp-comm-overlap without sequence parallelism"
            refuse(found, arguments, "tp_comm_overlap", message)
    read_flag(found, arguments, "overlap.ep", "overlap_moe_expert_parallel_comm")
    _context(found, arguments)


def _context(found: Findings, arguments: Arguments) -> None:
    """How cp sees the sequence; only the ring runs beside attention."""
    kinds = {
        "p2p": "p2p",
        "a2a": "a2a",
        "allgather": "all_gather",
        "all_gather": "all_gather",
    }
    given = arguments.texts("cp_comm_type")
    place = arguments.place("cp_comm_type")
    if found.integer("parallelism.cp", 1) == 1 or not given or place is None:
        return
    first = kinds.get(given[0], "p2p")
    found.read("context_parallel.communication", first, place)
    if first != "p2p":
        found.derive("overlap.cp", False, f"{given[0]} does not run beside attention")
    if len(set(given)) > 1 or given[0] not in kinds:
        found.not_modelled.append(
            Remark(f"cp_comm_type {' '.join(given[:4])}", place, f"modelled as {first}")
        )


def _recompute(found: Findings, arguments: Arguments) -> None:
    granularity = arguments.text("recompute_granularity")
    name = "recompute_granularity"
    for old in (
        "checkpoint_activations",
        "activations_checkpoint_method",
        "activations_checkpoint_granularity",
    ):
        if not granularity and arguments.flag(old):
            granularity, name = "full", old
            given = arguments.text(old)
            granularity = given if given in ("full", "selective") else "full"
    if not granularity and arguments.flag("recompute_activations"):
        granularity, name = "selective", "recompute_activations"
    place = arguments.place(name)
    if granularity not in ("full", "selective") or place is None:
        return
    found.read("memory.recompute", granularity, place)
    method = arguments.text("recompute_method") or arguments.text(
        "activations_checkpoint_method"
    )
    if granularity == "selective":
        arguments.texts("recompute_modules")
        return
    reason = "one more forward; a measured time holds it"
    found.not_modelled.append(Remark("recompute full", place, reason))
    if method in ("uniform", "block"):
        found.facts["memory.recompute_method"] = found.facts["memory.recompute"]
        found.read("memory.recompute_method", method, place)
        arguments.fact("memory.recompute_layers", "recompute_num_layers")


def _not_modelled(found: Findings, arguments: Arguments) -> None:
    mtp = arguments.integer("mtp_num_layers", "model.mtp_layers", minimum=0)
    place = arguments.place("mtp_num_layers")
    if mtp and place is not None:
        found.read("model.mtp_layers", mtp, place)
        found.not_modelled.append(Remark(f"MTP {mtp}", place, "work on the last stage"))
    for name in ("fp8_format", "fp8", "fp4_format", "fp4"):
        place = arguments.place(name)
        if place is not None and arguments.flag(name):
            found.not_modelled.append(
                Remark(name[:3], place, "faster products; give a time or rate")
            )
    window = arguments.place("window_size")
    if window is not None:
        found.not_modelled.append(Remark("sliding windows", window, "less attention"))
