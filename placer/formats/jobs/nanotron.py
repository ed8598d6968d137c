"""nanotron's YAML: sizes, batch and a model in Hugging Face's keys.

Sources: huggingface/nanotron 2411b022, ``src/nanotron/config/`` (defaults),
``parallel/context.py`` (order of the axes), ``optim/zero.py``.
"""

from __future__ import annotations

from placer.documents import parse_document
from placer.formats.jobs.findings import Asked, Findings
from placer.formats.jobs.hf import read_shape
from placer.formats.jobs.hf_types import Kind
from placer.formats.jobs.settings import Settings, settings_of

_MODEL = "model.model_config."
_AXES = {"tp": ("tp",), "pp": ("pp",), "dp": ("dp",), "cp": ("context_parallel_size",)}
_LLAMA = Kind("nanotron's LlamaConfig")
_STARCODER = Kind("nanotron's Starcoder2Config", gated=False)


def read(text: str, source: str, asked: Asked) -> Findings:
    """Findings of a nanotron configuration."""
    found = Findings(source)
    settings = settings_of(parse_document(text, source, aliases=True), found, asked)
    llama = settings.flag(f"{_MODEL}is_llama_config", f"{_MODEL}is_qwen2_config")
    activation = settings.text(f"{_MODEL}hidden_act") or "silu"
    gated = llama is True or activation == "silu"
    read_shape(settings, _LLAMA if gated else _STARCODER, _MODEL)
    _read_vocabulary(settings)
    _read_axes(settings)
    _read_tokens(settings)
    _read_sync(settings)
    settings.leave()
    return found


def _read_vocabulary(settings: Settings) -> None:
    fact, key = "model.vocab_multiple", "model.make_vocab_size_divisible_by"
    if settings.copy(fact, key) is None:
        settings.found.derive(fact, 1, "default of nanotron")


def _read_axes(settings: Settings) -> None:
    found = settings.found
    for axis, keys in _AXES.items():
        named = tuple(f"parallelism.{key}" for key in keys)
        if settings.copy(f"parallelism.{axis}", *named) is None and axis != "dp":
            found.derive(f"parallelism.{axis}", 1, "default of nanotron")
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
        place = settings.place("parallelism.tp_mode")
        found.derive("tensor_parallel.sequence", bool(mode), rule, place)
        key = "parallelism.tp_linear_async_communication"
        settings.mention("a gather beside its product", key)
    if settings.flag("parallelism.recompute_layer"):
        settings.recomputed("parallelism.recompute_layer")


def _read_tokens(settings: Settings) -> None:
    settings.copy("sequence", "tokens.sequence_length")
    settings.copy("micro_batch", "tokens.micro_batch_size")
    key = "tokens.batch_accumulation_per_replica"
    if settings.copy("micro_batches", key) is None:
        settings.found.derive("micro_batches", 1, "default of nanotron")


def _read_sync(settings: Settings) -> None:
    found = settings.found
    stage = settings.integer("optimizer.zero_stage", minimum=0, maximum=1)
    place = settings.place("optimizer.zero_stage")
    sharding = "zero1" if stage else "ddp"
    found.derive("data_parallel.sharding", sharding, f"zero_stage {stage or 0}", place)
    half = settings.text("model.dtype") in ("bfloat16", "float16", "")
    fp32 = settings.flag("optimizer.accumulate_grad_in_fp32") or not half
    words = "accumulate_grad_in_fp32" if fp32 else "gradients as the parameters"
    place = settings.place("optimizer.accumulate_grad_in_fp32")
    found.derive("bytes.gradient", 4 if fp32 else 2, words, place)
    for key in ("activation", "parameter_gather"):
        found.derive(f"bytes.{key}", 2 if half else 4, "model.dtype")
    megabytes = settings.number("model.ddp_bucket_cap_mb")
    if megabytes:
        size = int(megabytes * 2**20) // (4 if fp32 else 2)
        rule = f"ddp_bucket_cap_mb {megabytes:g}"
        found.derive("data_parallel.bucket_parameters", max(size, 1), rule)
