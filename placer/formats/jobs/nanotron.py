"""nanotron's YAML: sizes, batch and a model in Hugging Face's keys.

Sources: huggingface/nanotron 2411b022, ``src/nanotron/config/`` (defaults),
``parallel/context.py`` (order of the axes), ``optim/zero.py``.
"""

from __future__ import annotations

from placer.formats.jobs.hf import Kind, read_shape
from placer.formats.jobs.reading import of_yaml
from placer.formats.jobs.settings import Settings, reader

_MODEL = "model.model_config."
_AXES = {"tp": "tp", "pp": "pp", "dp": "dp", "cp": "context_parallel_size"}
_ONE = 1, "default of nanotron"
_LLAMA = Kind("nanotron's LlamaConfig")
_STARCODER = Kind("nanotron's Starcoder2Config", gated=False)


@reader(of_yaml)
def read(settings: Settings) -> None:
    """Take what a nanotron configuration says."""
    llama = settings.flag(f"{_MODEL}is_llama_config", f"{_MODEL}is_qwen2_config")
    activation = settings.text(f"{_MODEL}hidden_act") or "silu"
    gated = llama is True or activation == "silu"
    read_shape(settings, _LLAMA if gated else _STARCODER, _MODEL)
    fact, key = "model.vocab_multiple", "model.make_vocab_size_divisible_by"
    settings.copy(fact, key, usual=_ONE)
    _read_axes(settings)
    settings.copy("sequence", "tokens.sequence_length")
    settings.copy("micro_batch", "tokens.micro_batch_size")
    key = "tokens.batch_accumulation_per_replica"
    settings.copy("micro_batches", key, usual=_ONE)
    _read_sync(settings)


def _read_axes(settings: Settings) -> None:
    found = settings.found
    for axis, key in _AXES.items():
        usual = None if axis == "dp" else _ONE
        settings.copy(f"parallelism.{axis}", f"parallelism.{key}", usual=usual)
    key = "parallelism.expert_parallel_size"
    if (settings.integer(key) or 1) > 1:
        message = "nanotron numbers expert ranks outermost, "
        message += "which no order of a job says"
        settings.refuse(key, message, "place the job without expert parallelism")
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "mesh of nanotron")
    mode = settings.choice(
        {"REDUCE_SCATTER": True, "ALL_REDUCE": False}, "parallelism.tp_mode"
    )
    if found.integer("parallelism.tp", 2) > 1:
        rule = f"tp_mode {'REDUCE_SCATTER' if mode else 'ALL_REDUCE'}"
        key = "parallelism.tp_mode"
        settings.derive("tensor_parallel.sequence", bool(mode), rule, key)
        key = "parallelism.tp_linear_async_communication"
        settings.mention("a gather beside its product", key)
    if settings.flag("parallelism.recompute_layer"):
        settings.recomputed("parallelism.recompute_layer")


def _read_sync(settings: Settings) -> None:
    found = settings.found
    key = "optimizer.zero_stage"
    stage = settings.integer(key, minimum=0, maximum=1)
    sharding, rule = "zero1" if stage else "ddp", f"zero_stage {stage or 0}"
    settings.derive("data_parallel.sharding", sharding, rule, key)
    half = settings.text("model.dtype") in ("bfloat16", "float16", "")
    key = "optimizer.accumulate_grad_in_fp32"
    fp32 = settings.flag(key) or not half
    words = "accumulate_grad_in_fp32" if fp32 else "gradients as the parameters"
    settings.derive("bytes.gradient", 4 if fp32 else 2, words, key)
    for key in ("activation", "parameter_gather"):
        found.derive(f"bytes.{key}", 2 if half else 4, "model.dtype")
    megabytes = settings.number("model.ddp_bucket_cap_mb")
    if megabytes:
        size = int(megabytes * 2**20) // (4 if fp32 else 2)
        rule = f"ddp_bucket_cap_mb {megabytes:g}"
        found.derive("data_parallel.bucket_parameters", max(size, 1), rule)
