"""The flags with which a framework trains a job as it is: degrees, batch, memory.

The model, the data and the rates are the user's own. What a flag means is what the
readers of ``-j`` take it for (`placer.formats.jobs`): reading the flags gives the job
back.

Sources: Megatron-LM d98e8a64, ``megatron/training/arguments.py``; torchtitan b5bcd76c,
``torchtitan/config/configs.py`` and ``distributed/activation_checkpoint.py``;
Megatron-DeepSpeed 4efb479d,
``megatron/arguments.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from placer.base.errors import EmitError
from placer.emit import megatron, torchtitan
from placer.job.model import Job

if TYPE_CHECKING:
    Flags = dict[str, int | str]

_FSDP = {"zero2": "optim_grads", "zero3": "optim_grads_params"}
_ZERO = ("ddp", "zero1", "zero2", "zero3")
# A word without dashes that tyro, torchtitan's command line, wants after all flags.
_SUBCOMMAND = "subcommand"
_OF_TORCHTITAN = {"none": "none", "op": "selective", "full": "full"}


def job_flags(job: Job, framework: str) -> tuple[str, ...]:
    """The flags as words, such as ``--tensor-model-parallel-size``, ``4``.

    ``framework``: ``megatron``, ``torchtitan``, ``deepspeed`` (Megatron-DeepSpeed).
    """
    if framework not in _FLAGS:
        raise EmitError(f"no flags of {framework} are known")
    flags = _FLAGS[framework](job)
    return tuple(
        word for name, value in flags.items() for word in _words(name, str(value))
    )


def _words(name: str, value: str) -> tuple[str, ...]:
    return (name,) if value == _SUBCOMMAND else (f"--{name}", *value.split())


def _batch(job: Job) -> Flags:
    return {
        "micro-batch-size": job.micro_batch,
        "global-batch-size": job.parallelism.dp * job.micro_batch * job.micro_batches,
    }


def _of_megatron(job: Job) -> Flags:
    axes, mode = job.parallelism, job.data_parallel
    flags = megatron.flags_of_axes(axes)
    if axes.tp > 1 and job.tensor_parallel.sequence:
        flags["sequence-parallel"] = ""
    for end in ("embedding", "loss"):
        if getattr(job.stages, end):
            flags[f"account-for-{end}-in-pipeline-split"] = ""
    flags |= _batch(job)
    if mode.sharding == "zero1":
        flags["use-distributed-optimizer"] = ""
    elif mode.sharding != "ddp":
        flags["use-megatron-fsdp"] = ""
        kind = _FSDP.get(mode.sharding, _FSDP["zero3"])
        flags["data-parallel-sharding-strategy"] = kind
        flags["ckpt-format"] = "fsdp_dtensor"  # it takes no other
    if mode.sharding == "hsdp":
        groups = axes.dp * axes.cp // mode.shard_size
        flags["num-distributed-optimizer-instances"] = groups
    return flags | _recompute_of_megatron(job)


def _recompute_of_megatron(job: Job) -> Flags:
    memory = job.memory
    if memory.recompute == "none":
        return {}
    if memory.recompute == "full":
        return {
            "recompute-granularity": "full",
            "recompute-method": memory.recompute_method,
            "recompute-num-layers": memory.recompute_layers,
        }
    if memory.recompute != "selective":
        raise EmitError(f"Megatron-LM has no recomputation by {memory.recompute}")
    modules = " ".join(memory.recompute_modules)
    return {"recompute-granularity": "selective", "recompute-modules": modules}


def _of_torchtitan(job: Job) -> Flags:
    axes = job.parallelism
    mode = _OF_TORCHTITAN.get(job.memory.recompute)
    if mode is None:
        raise EmitError("torchtitan does not recompute single modules")
    flags = torchtitan.flags_of_axes(axes, asdict(job.data_parallel))
    if axes.pp > 1:
        prefix = "parallelism.pipeline_parallel"
        flags.setdefault(f"{prefix}_schedule", "1F1B")
        ends = {"first": job.stages.embedding, "last": job.stages.loss}
        for end, layers in ends.items():
            flags[f"{prefix}_{end}_stage_less_layers"] = int(layers)
        flags["parallelism.num_pp_microbatches"] = job.micro_batches
        flags["training.disable_cuda_graphs"] = ""  # refused beside stages
    samples = job.parallelism.dp * job.micro_batch * job.micro_batches
    flags["training.max_context_length"] = job.sequence
    tokens = "training.num_tokens_per"
    flags[f"{tokens}_microbatch_per_dp_rank"] = job.micro_batch * job.sequence
    flags[f"{tokens}_train_step"] = samples * job.sequence
    return flags | {f"activation-checkpoint:{mode}": _SUBCOMMAND}


def _of_deepspeed(job: Job) -> Flags:
    """Ulysses is its context parallelism; experts are cut by tp as dense layers are."""
    axes, mode = job.parallelism, job.data_parallel
    if job.model is not None and job.model.experts and mode.sharding == "zero3":
        raise EmitError("Megatron-DeepSpeed has no experts in ZeRO-3")
    flags: Flags = {
        "deepspeed": "",
        "zero-stage": _ZERO.index(mode.sharding),
        "tensor-model-parallel-size": axes.tp,
        "pipeline-model-parallel-size": axes.pp,
        "ds-sequence-parallel-size": axes.cp,
    }
    if axes.pp == 1:
        flags["no-pipeline-parallel"] = ""
    if axes.ep > 1:
        flags["moe-expert-parallel-size"] = axes.ep
    flags |= _batch(job)
    if job.memory.recompute == "full":
        flags |= {
            "checkpoint-activations": "",
            "deepspeed-activation-checkpointing": "",
        }
    elif job.memory.recompute != "none":
        raise EmitError("Megatron-DeepSpeed recomputes whole layers or nothing")
    return flags


_FLAGS: dict[str, Callable[[Job], Flags]] = {
    "megatron": _of_megatron,
    "torchtitan": _of_torchtitan,
    "deepspeed": _of_deepspeed,
}
