"""Megatron-Bridge, and NeMo before it: recipes in Python, and overrides of one.

Sources: NVIDIA-NeMo/Megatron-Bridge 067f987d, ``src/megatron/bridge/training/``:
``mixed_precision.py`` (types of reductions) and ``comm_overlap.py`` (buckets);
``src/megatron/bridge/recipes/common.py`` (what recipes start from); NVIDIA/NeMo,
``examples/nlp/language_modeling/conf/megatron_gpt_config.yaml``.
"""

from __future__ import annotations

import re

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.formats.jobs import adapters, mcore, mcore_rules
from placer.formats.jobs.findings import (
    GLOBAL_BATCH,
    GPUS,
    Asked,
    Findings,
    Place,
    Scalar,
)
from placer.formats.jobs.hf import ask_for_model
from placer.formats.jobs.python import Library, python_values
from placer.formats.jobs.reading import of_yaml, resolved
from placer.formats.jobs.settings import Setting, Settings, reader

_HF_NAME, _NAME = "model.hf_path", "recipe"
_LAYOUT = ("pipeline_model_parallel_layout",)
_TUNING: dict[str, Scalar] = {
    "train.global_batch_size": 128,
    "train.micro_batch_size": 1,
    "dataset.seq_length": 2048,
    "ddp.grad_reduce_in_fp32": True,
    "mixed_precision": "bf16_mixed",
}
_VISION: dict[str, Scalar] = {
    "train.global_batch_size": 32,
    "train.micro_batch_size": 2,
    "dataset.seq_length": 4096,
    "ddp.grad_reduce_in_fp32": True,
    "ddp.overlap_grad_reduce": False,
    "ddp.overlap_param_gather": False,
    "ddp.use_distributed_optimizer": True,
    "mixed_precision": "bf16_mixed",
}
_PRETRAINING = _VISION | {
    "ddp.overlap_grad_reduce": True,
    "ddp.overlap_param_gather": True,
    "ddp.data_parallel_sharding_strategy": "optim_grads_params",
}
_LORA: dict[str, Scalar] = {"peft.dim": 32}
_ADAM: tuple[dict[str, Scalar], ...] = ({"use_distributed_optimizer": True}, {})
_LIBRARY = Library(
    "megatron",
    returns={
        "_pretrain_common": _PRETRAINING,
        "_sft_common": _TUNING,
        "_peft_common": _TUNING | _LORA,
        "_sft_common_vlm": _VISION,
        "_peft_common_vlm": _VISION | _LORA,
        "distributed_fused_adam_with_cosine_annealing": _ADAM,
        "distributed_fused_adam_with_cosine_annealing_samples": _ADAM,
        "distributed_muon_with_cosine_annealing": ({}, {}),
    },
    named=("_mixed", "get_mixed_precision_config", "default_peft_config"),
    changes={
        # On GPUs that its backend does not know it leaves all as it is.
        "apply_flex_dispatcher_backend": ("moe_token_dispatcher_type",),
        "set_cuda_graph_modules": (),
        "clear_cuda_graph_modules": (),
        "set_deepseek_v3_pipeline_model_parallel_layout": _LAYOUT,
        "set_deepseek_v4_pipeline_model_parallel_layout": _LAYOUT,
        "apply_determinism_overrides": (),
    },
)
_IS_PYTHON = re.compile(r"^(?:from|import) (?:megatron\.bridge|nemo)\b", re.MULTILINE)
_FROM_HF = re.compile(r"from_(?:hf_)?pretrained\(\s*['\"]([^'\"]+)['\"]")
_GPUS = re.compile(r"_([0-9]{1,6})gpus?_")
_MODEL, _DDP = "model.", "ddp."
# Keys of FlagScale, whose sections look like NeMo's.
_FLAGSCALE = (
    *("system.tensor_model_parallel_size", "system.pipeline_model_parallel_size"),
    *("system.precision.", "system.checkpoint."),
    *("experiment.task.", "experiment.runner."),
)
_HALF = ("bf16", "fp16", "16")
_SHARDED = ("distributed_fused_adam", "mcore_distributed_optim")
# Keys that only NeMo 1 has.
_OLDER = (
    *("trainer.devices", "trainer.num_nodes", "trainer.precision"),
    *("model.mcore_gpt", "model.optim.name", "model.encoder_seq_length"),
    *("model.activation", "model.megatron_amp_O2"),
)
_OLDER_OVERLAPS = {
    "data_parallel.overlap_reduce": "overlap_grad_sync",
    "data_parallel.overlap_gather": "overlap_param_sync",
}
_BUCKET = 128 * 1024**2


class _Recipe(Settings):
    """The values of a whole configuration, as a recipe returns them."""


def _opened(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    """A recipe, or a YAML; one of FlagScale is refused.

    The name of a recipe's function stands under `_NAME`, that of its model on Hugging
    Face under `_HF_NAME`.
    """
    if _IS_PYTHON.search(text):
        values = python_values(text, source, asked, _LIBRARY)
        values[_NAME] = values.pop("model.name")
        model = values.get("model")
        if model and (name := _FROM_HF.search(str(model.value))):
            values[_HF_NAME] = Setting(name[1], model.place)
        return _Recipe(found, values, asked)
    settings = of_yaml(text, source, found, asked)
    settings.values = resolved(settings.values, asked)
    keys = [key for key in settings.values if key.startswith(_FLAGSCALE)]
    if keys and not (settings.has("trainer.") or "trainer" in settings.values):
        message = "a file of FlagScale, whose keys are flags of Megatron-LM"
        hint = "it is not read: say what it starts, megatron:SCRIPT.sh"
        place = settings.values[keys[0]].place
        raise InputError([Problem(message, *place, keys[0].partition(".")[0], hint)])
    return settings


@reader(_opened)
def read(settings: Settings) -> None:
    """Take what a recipe of Megatron-Bridge says, or a YAML of it or of NeMo."""
    whole = isinstance(settings, _Recipe)
    older = any(settings.get(key) for key in _OLDER) and not whole
    if not (whole or older):
        _ask_for_sizes(settings)
    mcore.read_sizes(settings, _MODEL)
    mcore.read_shape(settings, _MODEL)
    settings.copy("model.vocab_multiple", "model.make_vocab_size_divisible_by")
    if older:
        _read_older(settings)
    _read_precision(settings)
    mcore.read_ddp(settings, _DDP, "optimizer.")
    _read_batch(settings)
    _read_overlap(settings)
    mcore.read_rest(settings, _MODEL)
    # NeMo 1 says devices and nodes.
    keys = "trainer.devices", "trainer.num_nodes"
    each, nodes = map(settings.integer, keys)
    if each and nodes:
        rule = f"{nodes} nodes x {each} devices"
        settings.derive(GPUS, each * nodes, rule, keys[0])
    adapters.read_bridge(settings)
    ask_for_model(settings, _HF_NAME)
    _complete(settings, whole, older)


def _read_older(settings: Settings) -> None:
    """Keys that NeMo 1 has and Megatron-Bridge has not."""
    found = settings.found
    if activation := settings.text("model.activation"):
        settings.say("model.gated", activation.endswith("glu"), "model.activation")
    settings.copy("overlap.tp", "model.ub_tp_comm_overlap")
    if settings.flag("model.fp8"):
        place = settings.place("model.fp8")
        mcore_rules.precision(found, "fp8", "", place)
        settings.not_modelled("model.fp8", "products in fp8")
        if settings.flag("model.fp8_params"):
            found.derive("bytes.parameter_gather", 1, "fp8_params")
    if optimizer := settings.text("model.optim.name"):
        kind = "zero1" if optimizer in _SHARDED else "ddp"
        rule, key = f"optim {optimizer}", "model.optim.name"
        settings.derive("data_parallel.sharding", kind, rule, key)
        key = "model.optim.grad_sync_dtype"
        if wire := settings.text(key):
            settings.say("bytes.gradient", 2 if wire in _HALF else 4, key)
    settings.take(_OLDER_OVERLAPS, "model.optim.")


def _read_batch(settings: Settings) -> None:
    settings.copy(GLOBAL_BATCH, "train.global_batch_size", "model.global_batch_size")
    settings.copy("micro_batch", "train.micro_batch_size", "model.micro_batch_size")
    keys = "dataset.seq_length", "dataset.sequence_length", "model.seq_length"
    sequence = settings.copy("sequence", *keys, "model.encoder_seq_length")
    other = settings.integer("model.seq_length")
    if sequence and other and other != sequence:
        message = f"{other} here, {sequence} in {settings.place(*keys)}"
        settings.refuse("model.seq_length", message, "Megatron-Bridge wants one length")


def _read_precision(settings: Settings) -> None:
    """Gradients in fp32 with bf16, in 16 bit with fp16."""
    found = settings.found
    recipe = settings.text("mixed_precision", "trainer.precision", "model.precision")
    place = settings.place("mixed_precision", "trainer.precision")
    key = "mixed_precision.grad_reduce_in_fp32"
    if (in_fp32 := settings.flag(key)) is not None:
        settings.say("bytes.gradient", 4 if in_fp32 else 2, key)
    elif recipe:
        width = 2 if recipe.startswith(("fp16", "16")) else 4
        found.derive("bytes.gradient", width, f"mixed_precision {recipe}", place)
    else:
        found.assume("bytes.gradient", 4, "bf16_mixed reduces in fp32")
    gathers = settings.flag("mixed_precision.fp8_param_gather", "ddp.fp8_param_gather")
    kind = next((kind for kind in ("fp8", "fp4") if kind in recipe), "")
    if gathers is None and kind == "fp8" and "subchannel" not in recipe:
        found.derive("bytes.parameter_gather", 1, f"mixed_precision {recipe}", place)
    elif gathers:
        found.derive("bytes.parameter_gather", 1, "fp8_param_gather")
    if kind:
        settings.not_modelled("mixed_precision", f"products in {kind}")
        # Recipes with a scale for each tensor leave layers at both ends in bf16.
        ends = (4 if recipe.startswith("n") else 2) if "current" in recipe else 0
        how = "mxfp8" if "mxfp8" in recipe else ""
        mcore_rules.precision(found, kind, how, place, ends)


def _read_overlap(settings: Settings) -> None:
    """What ``comm_overlap`` turns on where there is data parallelism."""
    found = settings.found
    keys = [key for key in settings.values if key.startswith("comm_overlap")]
    if settings.unknown("comm_overlap"):
        settings.flag("comm_overlap")
    if not keys or (len(keys) == 1 and not settings.get(keys[0])):
        return
    settings.copy("overlap.tp", "comm_overlap.tp_comm_overlap")
    place = settings.place(keys[0])
    settings.copy("data_parallel.bucket_parameters", "comm_overlap.bucket_size")
    settings.take(mcore.OVERLAPS, "comm_overlap.")
    found.later(_overlaps, place)


def _overlaps(found: Findings, place: Place) -> None:
    if found.integer("parallelism.dp") > 1:
        rule = "comm_overlap with dp above 1"
        found.derive("data_parallel.bucket_parameters", _BUCKET, rule, place)
        for key in ("overlap_reduce", "overlap_gather"):
            found.derive(f"data_parallel.{key}", True, rule, place)


def _complete(settings: Settings, whole: bool, older: bool) -> None:
    """Sizes that are not said: 1 in a whole recipe, else those of another file.

    NeMo 1 has no recipes, and 1 for all that its file leaves out.
    """
    found = settings.found
    if older or whole:
        mcore.ones(found, f"default of {'NeMo 1' if older else 'Megatron-Core'}")
    name = settings.text(_NAME) if whole else ""
    if not found.has(GPUS) and (gpus := _GPUS.search(name)):
        found.notes.append(f"{name} is named after {gpus[1]} GPUs")


def _ask_for_sizes(settings: Settings) -> None:
    """Ask for sizes that no source says: they are the recipe's, and not 1."""
    place = settings.place("model.tensor_model_parallel_size", "train.micro_batch_size")
    for axis in ("tp", "pp", "cp"):
        key = f"parallelism.{axis}"
        joined = f"join the recipe, {named('job', 'nemo:RECIPE.py')}"
        hint = f"{joined}, or {named('settings', {f'job.{key}': 'N'})}"
        message = "no file says it, the recipe does"
        settings.found.ask_later(key, message, hint, place)
