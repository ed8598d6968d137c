"""What the arguments say of traffic: sharding, element sizes, overlaps, recompute."""

from __future__ import annotations

from placer.formats.jobs import mcore, mcore_rules
from placer.formats.jobs.findings import Findings, Place
from placer.formats.jobs.megatron.arguments import Arguments

# NVIDIA/Megatron-LM, ``megatron/experimental/gtp``; ranks in the order
# ``tp-gtp_remat-cp-ep-dp-pp``, those of experts ``tp-cp-ep-gtp_remat-dp-pp``.
_GTP = (
    "generalized_tensor_parallel_remat_size",
    "expert_generalized_tensor_parallel_remat_size",
)
# Flags, most of older versions, that stand for a granularity.
_RECOMPUTED = {
    "checkpoint_activations": "full",
    "activations_checkpoint_method": "full",
    "recompute_activations": "selective",
}
_EMERGING = ("muon", "dist_muon", "adaptive_muon", "soap", "lion")


def read_traffic(found: Findings, arguments: Arguments) -> None:
    """Read all of it; the sizes of the axes are known."""
    _sharding(found, arguments)
    _bytes(found, arguments)
    _overlaps(found, arguments)
    mcore.read_context(arguments)
    mcore.read_recompute(arguments, implied=_RECOMPUTED)
    mcore.read_mtp(arguments)
    _not_modelled(found, arguments)


def _sharding(found: Findings, arguments: Arguments) -> None:
    key = "data_parallel.sharding"
    stage = arguments.integer("zero_stage", minimum=0, fact=key)
    deepspeed = arguments.flag("deepspeed")
    distributed = arguments.flag("use_distributed_optimizer")
    if deepspeed or (stage and not distributed):
        sharding = {0: "ddp", 1: "zero1", 2: "zero2"}.get(stage or 0, "zero3")
        arguments.say(key, sharding, "zero_stage")
        found.derive(key, "ddp", "DeepSpeed's default, stage 0")
    elif arguments.flag("use_torch_fsdp2"):
        arguments.say(key, "zero3", "use_torch_fsdp2")
        if arguments.flag("torch_fsdp2_no_reshard_after_forward"):
            rule = "no reshard after forward"
            found.derive("data_parallel.keep_parameters", True, rule)
        _refuse_fsdp2(found, arguments)
    else:
        mcore.read_sharding(arguments)
        found.derive(key, "ddp", "no --use-distributed-optimizer")
    for word in arguments.words("optimizer")[:1]:
        if word.text in _EMERGING:
            arguments.not_modelled("optimizer", what=f"optimizer {word.text}")


def _refuse_fsdp2(found: Findings, arguments: Arguments) -> None:
    pp, ep = (found.integer(f"parallelism.{axis}") > 1 for axis in ("pp", "ep"))
    distributed = "use_distributed_optimizer"
    for name, is_so, words in (
        ("pipeline_model_parallel_size", pp, "pipeline parallelism"),
        ("expert_model_parallel_size", ep, "expert parallelism"),
        (distributed, arguments.flag(distributed), "the distributed optimizer"),
        ("fp16", arguments.flag("fp16"), "fp16"),
    ):
        if is_so:
            arguments.forbid(name, f"--use-torch-fsdp2 with {words}")
    if not arguments.flag("untie_embeddings_and_output_weights"):
        message = "--use-torch-fsdp2 needs --untie-embeddings-and-output-weights"
        arguments.forbid("use_torch_fsdp2", message)


def _bytes(found: Findings, arguments: Arguments) -> None:
    """Bytes of an element: Megatron reduces bf16 gradients in fp32."""
    bf16, fp16 = arguments.flag("bf16"), arguments.flag("fp16")
    in_fp32 = arguments.flag("accumulate_allreduce_grads_in_fp32")
    if bf16 and fp16:
        arguments.forbid("fp16", "--fp16 and --bf16 together")
    key = "bytes.gradient"
    types = {"fp32": 4, "float32": 4, "bf16": 2, "fp16": 2, "bfloat16": 2, "float16": 2}
    wire = arguments.text("megatron_fsdp_grad_comm_dtype").removeprefix("torch.")
    main = arguments.text("main_grads_dtype").removeprefix("torch.")
    if wire in types:
        arguments.say(key, types[wire], "megatron_fsdp_grad_comm_dtype")
    elif bf16 and arguments.flag("grad_reduce_in_bf16"):
        arguments.say(key, 2, "grad_reduce_in_bf16")
    elif bf16 and types.get(main) == 2 and not in_fp32:
        arguments.say(key, 2, "main_grads_dtype")
    elif bf16 and not arguments.flag("deepspeed"):
        found.derive(key, 4, "bf16 gradients are reduced in fp32")
    elif in_fp32:
        arguments.say(key, 4, "accumulate_allreduce_grads_in_fp32")
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
            arguments.forbid("fp8_param_gather", message)
        arguments.say("bytes.parameter_gather", 1, "fp8_param_gather")
    else:
        found.derive("bytes.parameter_gather", size, rule)


def _overlaps(found: Findings, arguments: Arguments) -> None:
    mcore.read_reduction(arguments)
    for key, name in (mcore.OVERLAPS | mcore.TRAFFIC).items():
        arguments.copy(key, name, usual=(False, f"no --{name.replace('_', '-')}"))
    mcore_rules.sequence_parallel(found)
    reduce, gather = (found.integer(key) for key in mcore.OVERLAPS)
    if gather and found.text("data_parallel.sharding") == "ddp":
        message = "--overlap-param-gather without the distributed optimizer or FSDP"
        arguments.forbid("overlap_param_gather", message)
    if gather and not reduce:
        message = "--overlap-param-gather without --overlap-grad-reduce"
        arguments.forbid("overlap_param_gather", message)
    if arguments.flag("use_torch_fsdp2"):
        for key in mcore.OVERLAPS:
            found.facts.pop(key, None)
            found.derive(key, True, "PyTorch's FSDP2 prefetches")
    if found.integer("overlap.tp") and not found.integer("tensor_parallel.sequence"):
        message = "--tp-comm-overlap without sequence parallelism"
        arguments.forbid("tp_comm_overlap", message)


def _not_modelled(found: Findings, arguments: Arguments) -> None:
    for name in _GTP:
        size = arguments.integer(name, fact="parallelism.tp") or 1
        if size == 1:
            continue
        # Without cp its groups are consecutive replicas, as dp numbers them anyway.
        if name == _GTP[0] and found.integer("parallelism.cp", 1) > 1:
            message = f"GTP {size} numbers ranks between tp and cp, which is not read"
            hint = "without context parallelism its groups are consecutive replicas"
            arguments.refuse(name, message, hint)
        reason = "its groups are consecutive replicas, and gather weights"
        arguments.not_modelled(name, reason, f"GTP {size}")
    for name in ("fp8_format", "fp8", "fp4_format", "fp4"):
        if arguments.flag(name):
            reason = "faster products; give a time or rate"
            arguments.not_modelled(name, reason, name[:3])
            _precision(found, arguments, name[:3], arguments.place(name))
    if vision := arguments.get("vision_model_type", "img_h"):
        arguments.not_modelled(vision[0], "work beside layers", "vision encoder")
    if arguments.get("window_size"):
        arguments.not_modelled("window_size", "less attention", "sliding windows")


def _precision(found: Findings, arguments: Arguments, kind: str, place: Place) -> None:
    """What products keep their inputs in; a layer at each end may stay in bf16."""
    recipe, ends = arguments.text(f"{kind}_recipe"), 0
    if recipe == "custom":
        return
    if arguments.flag("first_last_layers_bf16"):
        given = (
            arguments.integer(
                f"num_layers_at_{end}_in_bf16", minimum=0, fact="memory.gemm_layers"
            )
            for end in ("start", "end")
        )
        ends = sum(1 if count is None else count for count in given)
    mcore_rules.precision(found, kind, recipe, place, ends)
