"""torchtitan: TOML files, and since 2026 Python functions that return a configuration.

Sources: pytorch/torchtitan 238fa995, ``torchtitan/config/job_config.py``, and b5bcd76c,
``torchtitan/config/configs.py``; ``torchtitan/distributed/parallel_dims.py`` (the mesh)
and ``pipeline_parallel.py`` (stages and schedules).
"""

from __future__ import annotations

import re
from math import ceil
from pathlib import PurePath

from placer.formats.jobs import adapters, mcore_rules
from placer.formats.jobs.findings import (
    DP_MULTIPLE,
    GLOBAL_BATCH,
    Asked,
    Findings,
    Place,
    Scalar,
)
from placer.formats.jobs.fsdp import by_layer, shard
from placer.formats.jobs.hf import ask_for_model
from placer.formats.jobs.python import Library, python_values
from placer.formats.jobs.reading import toml_values
from placer.formats.jobs.settings import Settings, reader

# The shapes that it ships; the same numbers stand there in b5bcd76c.
_SOURCE = "238fa995, models/*/__init__.py"

_Shape = dict[str, Scalar]
_DENSE = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
_LATENT: _Shape = {
    "kv_lora_rank": 512,
    "qk_head_dim": 128,
    "rope_head_dim": 64,
    "v_head_dim": 128,
}


def _dense(*sizes: int) -> _Shape:
    """Layers, widths of the model and its feed-forward, heads, vocabulary."""
    return dict(zip(_DENSE, sizes, strict=True))


def _qwen3(*sizes: int, tied: bool = False) -> _Shape:
    """A head is 128 wide, which may be no equal share of the model's width."""
    shape = _dense(*sizes, 8, 151936) | {"tied_embeddings": tied}
    return shape if 128 * sizes[3] == sizes[1] else shape | {"head_dim": 128}


def _qwen3_moe(*sizes: int) -> _Shape:
    """All layers have 128 experts, of which a token visits 8."""
    experts = {"experts": 128, "top_k": 8, "expert_ffn": sizes[2]}
    return _qwen3(*sizes) | experts | {"kv_heads": 4, "moe_layers": sizes[0]}


def _deepseek(dense: int, experts: tuple[int, int, int, int], *sizes: int) -> _Shape:
    """Dense layers; experts, those that a token and that all visit, their width."""
    names = "experts", "top_k", "shared_experts", "expert_ffn"
    shape = _dense(*sizes[:5], sizes[6]) | dict(zip(names, experts, strict=True))
    moe = {"moe_layers": sizes[0] - dense, "q_lora_rank": sizes[5]}
    return shape | moe | _LATENT


# The feed-forward of Llama 3 is ``floor(m floor(8h/3))``, up to a multiple.
_SHAPES: dict[str, dict[str, _Shape]] = {
    "llama3": {
        "debugmodel": _dense(6, 256, 768, 16, 16, 2048),
        "8B": _dense(32, 4096, 14336, 32, 8, 128256),
        "70B": _dense(80, 8192, 28672, 64, 8, 128256),
        "405B": _dense(126, 16384, 53248, 128, 8, 128256),
    },
    "qwen3": {
        "debugmodel": _qwen3(8, 256, 3072, 16, tied=True) | {"vocab": 2048},
        "0.6B": _qwen3(28, 1024, 3072, 16, tied=True),
        "1.7B": _qwen3(28, 2048, 6144, 16, tied=True),
        "4B": _qwen3(36, 2560, 9728, 32, tied=True),
        "8B": _qwen3(36, 4096, 12288, 32),
        "14B": _qwen3(40, 5120, 17408, 40),
        "32B": _qwen3(64, 5120, 25600, 64),
        "30B-A3B": _qwen3_moe(48, 2048, 768, 32),
        "235B-A22B": _qwen3_moe(94, 4096, 1536, 64),
    },
    "deepseek_v3": {
        "16B": _deepseek(1, (64, 6, 2, 1408), 27, 2048, 10944, 16, 16, 0, 102400),
        "236B": _deepseek(
            1, (160, 6, 2, 1536), 60, 5120, 12288, 128, 128, 1536, 102400
        ),
        "671B": _deepseek(
            3, (256, 8, 1, 2048), 61, 7168, 18432, 128, 128, 1536, 129280
        ),
    },
}


_AXES = {"tp": "tensor", "cp": "context", "pp": "pipeline", "ep": "expert"}
_ONE_CHUNK = ("1F1B", "GPipe")
_LOOPED = ("Interleaved1F1B", "InterleavedZeroBubble", "LoopedBFS")
_V_SHAPED = ("ZBVZeroBubble", "DualPipeV")
# Before 2025 degrees stood under [training] and [experimental].
_TABLES = ("parallelism", "training", "experimental")
_RECOMPUTE = {
    **dict.fromkeys(("full", "FullAC"), "full"),
    **dict.fromkeys(("", "selective", "SelectiveAC"), "op"),
    "none": "none",
}
# What makes another model of one.
_OTHERS = ("vl", "next", "omni", "moe", "coder")
_IS_PYTHON = re.compile(r"^(?:def|from|import) +\w", re.MULTILINE)
_KERNEL = re.compile(r"_(flex|varlen|sdpa)(_attn)?$")
_LIBRARY = Library("torchtitan", shapes=("model_registry",))
_BACKENDS = {"deepep": "deduplicated", "hybridep": "deduplicated"}


def _opened(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    """A TOML file, or one function of a config registry."""
    if _IS_PYTHON.search(text):
        return Settings(found, python_values(text, source, asked, _LIBRARY), asked)
    return Settings(found, toml_values(text, source), asked)


@reader(_opened)
def read(settings: Settings) -> None:
    """Take what a TOML file says, or what a function returns."""
    _read_model(settings)
    _read_axes(settings)
    _read_batch(settings)
    _read_precision(settings)
    _read_rest(settings)


def _keys(name: str) -> list[str]:
    """A key in each of the tables that it may stand in."""
    return [f"{table}.{name}" for table in _TABLES]


def _read_model(settings: Settings) -> None:
    """The shape of a flavor that torchtitan ships."""
    found, place = settings.found, settings.place("model.flavor")
    name, flavor = _model_name(settings), ""
    if not settings.unknown("model.flavor"):
        flavor = settings.text("model.flavor")
    shape = _SHAPES.get(name, {}).get(_KERNEL.sub("", flavor))
    rule = f"{name} {flavor} of torchtitan ({_SOURCE})"
    for key, value in (shape or {}).items():
        found.derive(f"model.{key}", value, rule, place)
    found.derive("model.vocab_multiple", 1, "torchtitan does not pad", place)
    ask_for_model(settings, "model.flavor")


def _model_name(settings: Settings) -> str:
    """The model: of the registry that is imported, of the folder, or that is named.

    A folder is of the model that it is called and of no other; a function, a file and
    a model of a TOML may have more words behind the name of the model.
    """
    path = PurePath(settings.found.source)
    registry = ""
    if not settings.unknown("model.registry"):
        registry = settings.text("model.registry").strip(".").rpartition(".")[2]
    folder, said = path.parent.name, settings.text("model.name")
    if registry or folder in _SHAPES:
        return registry or folder
    if any(folder.startswith(known) for known in _SHAPES):
        return folder
    names = [known for known in _SHAPES if _is_of(said, known)]
    if not names and (not said or "model.registry" in settings.values):
        names = [known for known in _SHAPES if _is_of(path.stem, known)]
    return names[0] if names else said


def _is_of(words: str, model: str) -> bool:
    """Whether a name is a model's, as ``llama3_8b`` and not ``qwen3_5_4b`` or a VL."""
    rest = words.removeprefix(model)
    first = rest.lstrip("_").partition("_")[0]
    same = words.startswith(model) and (not rest or rest.startswith("_"))
    return same and not first.isdigit() and first not in _OTHERS


def _read_axes(settings: Settings) -> None:
    found = settings.found
    for axis, name in _AXES.items():
        keys, usual = _keys(f"{name}_parallel_degree"), (1, "default of torchtitan")
        settings.copy(f"parallelism.{axis}", *keys, maximum=10**6, usual=usual)
    if found.integer("parallelism.ep", 2) > 1:
        key = "parallelism.expert_tensor_parallel_degree"
        usual = 1, "torchtitan: experts are not cut by tp"
        settings.copy("parallelism.etp", key, usual=usual)
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "mesh of torchtitan")
    _read_sharding(settings)
    if found.integer("parallelism.pp", 2) > 1:
        _read_schedule(settings)


def _read_sharding(settings: Settings) -> None:
    """Replicas and shards; -1 shards take the GPUs that are left."""
    found = settings.found
    names = _keys("data_parallel_replicate_degree")
    replicate = settings.integer(*names, maximum=10**6) or 1
    keys = _keys("data_parallel_shard_degree")
    shards = settings.integer(*keys, minimum=-1, maximum=10**6)
    place = settings.place(*keys)
    if shards == 0:
        settings.wrong(keys[0], "-1, or 1 or more")
        return
    if replicate > 1:
        found.derive(DP_MULTIPLE, replicate, f"replicate {replicate}", place)
    if shards is not None and shards > 0:
        rule = f"replicate {replicate} x shard {shards}"
        found.derive("parallelism.dp", replicate * shards, rule, place)
    in_pipeline = found.integer("parallelism.pp", 2) > 1
    keeps = settings.choice(
        {"default": in_pipeline, "always": False, "never": True},
        "parallelism.fsdp_reshard_after_forward",
    )
    keeps = in_pipeline if keeps is None else bool(keeps)
    found.later(shard, replicate, keeps, place)
    by_layer(found)


def _read_schedule(settings: Settings) -> None:
    """Chunks of a pipeline rank, and what the ends hold less."""
    found, prefix = settings.found, "parallelism.pipeline_parallel_"
    old = "experimental.pipeline_parallel_schedule"
    schedule = settings.text(f"{prefix}schedule", old) or "1F1B"
    place = settings.place(f"{prefix}schedule", old)
    less = [
        settings.integer(f"{prefix}{end}_stage_less_layers", minimum=0)
        for end in ("first", "last")
    ]
    first, last = (1 if count is None else count for count in less)
    for key, count in (("embedding", first), ("loss", last)):
        found.derive(f"stages.{key}", count, "pipeline_parallel_*_stage_less_layers")
    each = settings.integer(f"{prefix}layers_per_stage")
    if schedule in _V_SHAPED:
        settings.not_modelled(f"{prefix}schedule", f"{schedule} has V-shaped stages")
    elif schedule not in (*_ONE_CHUNK, *_LOOPED):
        known = ", ".join((*_ONE_CHUNK, *_LOOPED, *_V_SHAPED))
        settings.wrong(f"{prefix}schedule", f"one of {known}")
    if each:
        found.later(_chunks, each, first + last, schedule, place)
    else:
        chunks = 1 if schedule in _ONE_CHUNK else 2
        found.derive("parallelism.vp", chunks, f"{schedule} of torchtitan", place)


def _chunks(found: Findings, each: int, ends: int, schedule: str, place: Place) -> None:
    """Chunks of so many layers each."""
    layers, pp = found.integer("model.layers"), found.integer("parallelism.pp", 1)
    stages = ceil((layers + ends) / each)
    if not layers:
        return
    if stages % pp or (schedule in _ONE_CHUNK and stages != pp):
        message = f"({layers} + {ends}) layers, {each} a stage, are {stages} stages"
        found.problem("parallelism.pp", f"{message}, which {schedule} cannot run")
        return
    rule = f"ceil(({layers} layers + {ends}) / {each}) / pp {pp}"
    found.derive("parallelism.vp", stages // pp, rule, place)


def _read_batch(settings: Settings) -> None:
    """Sequences of a micro-batch and of a step.

    Newer files count tokens.
    """
    found = settings.found
    sequence = settings.copy(
        "sequence", "training.seq_len", "training.max_context_length"
    )
    tokens = "training.num_tokens_per_microbatch_per_dp_rank"
    of_rank = settings.integer(tokens, maximum=10**12, fact="micro_batch")
    step = "training.num_tokens_per_train_step"
    in_step = settings.integer(step, minimum=-1)
    pp = found.integer("parallelism.pp", 2)
    if settings.get(tokens) and not (of_rank and sequence):
        return
    if of_rank and sequence:
        if of_rank % sequence:
            settings.refuse(tokens, f"{of_rank:,} tokens are no whole sequences")
            return
        rule = f"{of_rank:,} tokens / {sequence:,} of a sequence"
        settings.derive("micro_batch", of_rank // sequence, rule, tokens)
        key = "parallelism.num_pp_microbatches"
        count = (settings.integer(key) or 1) if pp > 1 else 1
        if in_step and in_step > 0:
            sequences, rule = in_step // sequence, "tokens of a step"
            settings.derive(GLOBAL_BATCH, sequences, rule, step)
        else:
            rule = "no gradient accumulation"
            settings.derive("micro_batches", count, rule, tokens)
        return
    keys = "training.local_batch_size", "training.batch_size"
    local = settings.integer(*keys, fact="micro_batch") or 8
    whole = settings.integer("training.global_batch_size", minimum=-1)
    one = "parallelism.pipeline_parallel_microbatch_size"
    piece = (settings.integer(one) or 1) if pp > 1 else local
    if pp > 1:
        found.derive("micro_batch", piece, "pipeline_parallel_microbatch_size")
    elif settings.get(*keys):
        found.read("micro_batch", local, settings.place(*keys))
    else:
        found.derive("micro_batch", local, "default of torchtitan")
    if whole and whole > 0:
        found.read(GLOBAL_BATCH, whole, settings.place("training.global_batch_size"))
    elif local % piece:
        settings.refuse(one, f"{piece} does not divide local_batch_size ({local})")
    else:
        rule = f"local_batch_size {local} / {piece}" if pp > 1 else "one batch a step"
        settings.derive("micro_batches", local // piece, rule, *keys)


def _read_precision(settings: Settings) -> None:
    """Gradients in fp32; parameters in bf16, or in fp8 where its converter runs."""
    found = settings.found
    reduce = settings.choice(
        {"float32": 4, "bfloat16": 2}, "training.mixed_precision_reduce"
    )
    rule = f"mixed_precision_reduce {'float32' if reduce in (None, 4) else 'bfloat16'}"
    found.derive("bytes.gradient", reduce or 4, rule)
    converters = settings.texts("model.converters")
    switch = "enable_fsdp_float8_all_gather"
    tables = (
        "quantize.linear.float8",
        "quantize.dense.float8",
        "float8",
        "model.converters.Float8LinearConverter",
    )
    converted = any("float8" in name.lower() for name in converters)
    switches = [f"{table}.{switch}" for table in tables]
    settings.known.update(switches)
    width = 1 if converted and settings.flag(*switches) else 2
    why = "float8 all-gather" if width == 1 else "parameters are gathered in bf16"
    found.derive("bytes.parameter_gather", width, why)
    if converted:
        settings.not_modelled("model.converters", "products in fp8")


def _read_rest(settings: Settings) -> None:
    adapters.read_torchtitan(settings)
    found = settings.found
    tp, cp = found.integer("parallelism.tp", 2), found.integer("parallelism.cp", 2)
    if tp > 1:
        key, usual = "parallelism.enable_sequence_parallel", "torchtitan's plan for tp"
        settings.copy("tensor_parallel.sequence", key, usual=(True, usual))
        _read_async(settings)
    method = settings.choice(
        {"allgather": "all_gather", "alltoall": "p2p"},
        *_keys("context_parallel_rotate_method"),
    )
    if cp > 1:
        rule = "context_parallel_rotate_method"
        found.derive("context_parallel.communication", method or "all_gather", rule)
    backend = settings.text(
        "parallelism.expert_parallel_comm_backend", "model.moe_comm_backend"
    )
    if found.integer("parallelism.ep", 2) > 1 and backend in _BACKENDS:
        way, rule = _BACKENDS[backend], f"{backend} dispatch"
        found.derive("expert_parallel.dispatch", way, rule)
        place = settings.place("parallelism.expert_parallel_comm_backend")
        mcore_rules.equal_parts(found, backend, place)
    _read_recompute(settings)


def _read_recompute(settings: Settings) -> None:
    """Every second product again where nothing is said; ``none`` is a word here."""
    keys = "activation_checkpoint.mode", "activation_checkpoint"
    mode, key = settings.text(*keys), keys[0]
    rule = f"activation_checkpoint {mode}" if mode else "default of torchtitan"
    if not mode and any(key in settings.values for key in keys):
        mode, rule = "none", "activation_checkpoint none"
    recompute = _RECOMPUTE.get(mode)
    if recompute is None:
        settings.not_modelled(key, f"activation checkpointing by {mode}")
        return
    settings.found.derive("memory.recompute", recompute, rule)
    if recompute == "full":
        settings.not_modelled(key, "a further forward pass")


def _read_async(settings: Settings) -> None:
    """Tensor parallel traffic beside products, which takes compiled models."""
    wanted = settings.flag(*_keys("enable_async_tensor_parallel"))
    parts = settings.texts("compile.components") or ["model", "loss"]
    compiled = settings.flag("compile.enable", "training.compile")
    if wanted and compiled and "model" in parts:
        rule = "enable_async_tensor_parallel, compiled"
        settings.found.derive("overlap.tp", True, rule)
