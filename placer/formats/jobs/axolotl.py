"""axolotl and LLaMA-Factory: fine-tuning in the trainer of transformers.

Sources: axolotl-ai-cloud/axolotl 067b021c, ``src/axolotl/utils/distributed.py`` and
``integrations/expert_parallel``; hiyouga/LLaMA-Factory ff6d4d12, ``hparams``.
"""

from __future__ import annotations

from math import prod

from placer.formats.jobs import adapters
from placer.formats.jobs.accelerate import named_deepspeed, read_fsdp
from placer.formats.jobs.findings import join
from placer.formats.jobs.fsdp import shard
from placer.formats.jobs.hf import ask_for_model
from placer.formats.jobs.reading import of_yaml
from placer.formats.jobs.settings import Settings, reader

_SIZES = {
    "shard": ("dp_shard_size",),
    "replicate": ("dp_replicate_size",),
    "tp": ("tensor_parallel_size",),
    "cp": ("context_parallel_size", "sequence_parallel_degree"),
    "ep": ("expert_parallel_size",),
}
_BATCH: dict[str, str | tuple[str, ...]] = {
    "sequence": ("sequence_len", "cutoff_len"),
    "micro_batch": ("micro_batch_size", "per_device_train_batch_size"),
    "micro_batches": "gradient_accumulation_steps",
}


@reader(of_yaml)
def read(settings: Settings) -> None:
    """Take what a training file of axolotl or LLaMA-Factory says."""
    found = settings.found
    _read_mesh(settings)
    _read_batch(settings)
    half = [
        key for key in ("bf16", "fp16") if settings.flag(key) or settings.is_auto(key)
    ]
    width, why = (2, half[0]) if half else (4, "neither bf16 nor fp16")
    for key in ("activation", "gradient", "parameter_gather"):
        settings.derive(f"bytes.{key}", width, why, *half[:1])
    name = settings.text("deepspeed")
    if settings.has("fsdp"):
        _read_fsdp(settings)
    elif name:
        settings.found = join([found, named_deepspeed(found, name, settings.asked)])
    else:
        why = "neither fsdp_config nor deepspeed"
        found.derive("data_parallel.sharding", "ddp", why)
    ask_for_model(settings, "base_model", "model_name_or_path")
    if settings.text("gradient_checkpointing") not in ("", "false"):
        settings.recomputed("gradient_checkpointing")
    adapters.read_axolotl(settings)


def _read_mesh(settings: Settings) -> None:
    """Expert ranks multiply: dense layers are replicated or sharded over them too."""
    found = settings.found
    sizes = {name: settings.integer(*keys) for name, keys in _SIZES.items()}
    for axis in ("tp", "cp", "ep"):
        usual = 1, "default of axolotl"
        settings.copy(f"parallelism.{axis}", *_SIZES[axis], usual=usual)
    found.derive("parallelism.pp", 1, "axolotl has no pipeline")
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "mesh of accelerate")
    if (sizes["ep"] or 1) > 1:
        found.derive("parallelism.etp", 1, "experts are not cut by tp")
    if sizes["shard"] or sizes["replicate"]:
        parts = [sizes[name] or 1 for name in ("replicate", "shard", "ep")]
        rule = "dp_replicate {} x dp_shard {} x expert_parallel {}".format(*parts)
        keys = *_SIZES["shard"], *_SIZES["replicate"]
        settings.derive("parallelism.dp", prod(parts), rule, *keys)
    if found.integer("parallelism.tp", 2) > 1:
        found.derive("tensor_parallel.sequence", False, "tp plans of transformers")


def _read_batch(settings: Settings) -> None:
    settings.take(_BATCH)
    key = "gradient_accumulation_steps"
    if settings.integer(key) is None and not settings.is_auto(key):
        settings.found.derive("micro_batches", 1, "default: no accumulation")
    packing = "sample_packing", "packing"
    if settings.unknown(*packing):
        settings.found.notes.append("sequences may not be packed: most are shorter")
    elif settings.flag(*packing) is not True:
        settings.found.notes.append("sequences are not packed: most are shorter")


def _read_fsdp(settings: Settings) -> None:
    replicate = settings.integer(*_SIZES["replicate"]) or 1
    place = settings.place("fsdp_config.reshard_after_forward", "fsdp_version")
    keeps = settings.flag("fsdp_config.reshard_after_forward") is False
    if (settings.integer("fsdp_version", "fsdp_config.fsdp_version") or 1) > 1:
        settings.found.later(shard, replicate, keeps, place)
    read_fsdp(settings)
