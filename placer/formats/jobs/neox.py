"""gpt-neox: YAML or JSON with comments, Megatron's model over DeepSpeed.

Sources: EleutherAI/gpt-neox ea7aefd8, ``megatron/neox_arguments/neox_args.py`` and
``deepspeed_args.py`` (defaults), ``megatron/tokenizer/tokenizer.py`` (padding),
``megatron/model/transformer.py`` (width of a feed-forward with a gate).
"""

from __future__ import annotations

from placer.base.naming import named
from placer.formats.jobs.deepspeed import read_deepspeed
from placer.formats.jobs.findings import GPUS
from placer.formats.jobs.reading import of_yaml
from placer.formats.jobs.settings import Setting, Settings, reader

# What turns a type on in DeepSpeed, by the value of ``precision``.
_ENABLED = {"fp16": "fp16.enabled", "bfloat16": "bf16.enabled"}
_GATED = ("swiglu", "geglu", "reglu", "bilinear", "glu")
_TOKENIZERS = {"GPT2BPETokenizer": 50257, "CharLevelTokenizer": 512}
_MULTIPLE = 128
_WHOLE = ("flash", "global")
_SHAPE = {
    "model.layers": "num_layers",
    "model.hidden": "hidden_size",
    "model.heads": "num_attention_heads",
    "sequence": "seq_length",
}
_AXES = {
    "pp": "pipe_parallel_size",
    "tp": "model_parallel_size",
    "cp": "context_parallel_size",
}


@reader(of_yaml)
def read(settings: Settings) -> None:
    """Take what a gpt-neox configuration says."""
    # Keys may be written either way.
    settings.values = {k.replace("-", "_"): v for k, v in settings.values.items()}
    _read_axes(settings)
    if key := _ENABLED.get(settings.text("precision").lower()):
        settings.values[key] = Setting(True, settings.place("precision"))
    read_deepspeed(settings)
    _read_model(settings)
    settings.copy(GPUS, "global_num_gpus")
    if settings.flag("checkpoint_activations"):
        settings.recomputed("checkpoint_activations")


def _read_axes(settings: Settings) -> None:
    found = settings.found
    for axis, key in _AXES.items():
        size = settings.integer(key, minimum=0)
        if size:
            found.read(f"parallelism.{axis}", size, settings.place(key))
        else:
            found.derive(f"parallelism.{axis}", 1, "default of gpt-neox")
    if found.integer("parallelism.tp", 2) > 1:
        usual, key = (False, "default of gpt-neox"), "sequence_parallel"
        settings.copy("tensor_parallel.sequence", key, usual=usual)


def _read_model(settings: Settings) -> None:
    found = settings.found
    settings.take(_SHAPE)
    hidden, heads = found.integer("model.hidden"), found.integer("model.heads")
    if settings.copy("model.kv_heads", "num_kv_heads") is None and heads:
        found.derive("model.kv_heads", heads, "as many as heads")
    activation = settings.text("activation")
    gated = activation.lower() in _GATED
    found.derive("model.gated", gated, f"activation {activation or 'gelu'}")
    _read_width(settings, hidden, gated)
    key = "no_weight_tying"
    settings.derive("model.tied_embeddings", not settings.flag(key), key, key)
    if (settings.integer("moe_num_experts", "num_experts") or 1) > 1:
        settings.refuse("moe_num_experts", "experts of gpt-neox are not read")
    kinds = settings.texts("attention_config")
    other = [kind for kind in kinds if not any(word in kind for word in _WHOLE)]
    if other:
        message = f"{other[0]}: layers are not all whole attention"
        settings.refuse("attention_config", message, "they are not modelled")
    _read_vocabulary(settings)


def _read_width(settings: Settings, hidden: int, gated: bool) -> None:
    """The width between the two products of a feed-forward.

    One with a gate has two thirds of what is said, half of it for the gate.
    """
    key = "intermediate_size"
    said, times = settings.integer(key), settings.number("expansion_factor")
    multiple = settings.integer("mlp_multiple_of") or 1
    wide = said or (int(times * hidden) if times else 4 * hidden)
    if not wide:
        return
    rule = key if said else f"{times:g}h" if times else "default of gpt-neox: 4h"
    if gated:
        wide, rule = int(wide * 2 / 3) // 2, f"{rule} {wide} x 2/3 / 2, gated"
    if wide % multiple:
        wide, rule = -(-wide // multiple) * multiple, f"{rule}, up to {multiple}"
    if said == wide:
        settings.copy("model.ffn", key)
    else:
        settings.derive("model.ffn", wide, rule, key, "expansion_factor")


def _read_vocabulary(settings: Settings) -> None:
    """The tokenizer's words; how they are padded is the framework's."""
    found = settings.found
    key = "make_vocab_size_divisible_by"
    usual = _MULTIPLE, f"default of gpt-neox: {key}"
    settings.copy("model.vocab_multiple", key, usual=usual)
    if settings.copy("model.vocab", "padded_vocab_size"):
        return
    tokenizer = settings.text("tokenizer_type") or "GPT2BPETokenizer"
    place = settings.place("tokenizer_type")
    words = _TOKENIZERS.get(tokenizer)
    if words:
        found.assume("model.vocab", words, f"words of {tokenizer}", place)
        return
    message = f"the words of the {tokenizer} are in a file of their own"
    option, file = {"job.model.vocab": "N"}, named("job", "hf:config.json")
    hint = f"{named('settings', option)}, or join {file}"
    found.ask_later("model.vocab", message, hint, place)
