"""What is trained where a source has adapters: LoRA and its like, in any framework.

Sources: huggingface/peft, ``tuners/tuners_utils.py`` (``all-linear``: every linear
layer but the output); NVIDIA-NeMo/Megatron-Bridge 0191fc5e, ``peft/lora.py`` (fused
matrices; the experts of a rank share an adapter unless ``share_expert_adapters`` is
off); NVIDIA/NeMo 1, ``megatron_gpt_peft_tuning_config.yaml``; modelscope/ms-swift,
``MegatronTunerMixin``; hiyouga/LLaMA-Factory ff6d4d12, ``hparams/finetuning_args.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from placer.base.naming import named
from placer.formats.jobs.findings import Findings, Place, Scalar, shown
from placer.formats.jobs.fsdp import model_of
from placer.formats.jobs.megatron.arguments import Arguments
from placer.formats.jobs.settings import Settings
from placer.job.adapters import attention_sides
from placer.job.models import Model

# Names of Megatron-Core, in which query, key and value are one matrix, gate and up
# another; others are of Hugging Face.
_FUSED = ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2")
# Its names of what others call so: of plain attention, of latent attention.
_OF_HEADS = {"q_proj": "linear_q", "k_proj": "linear_k", "v_proj": "linear_v"}
_OF_LATENT = {
    "kv_a_proj_with_mqa": "linear_kv_down_proj",
    "kv_b_proj": "linear_kv_up_proj",
    "q_a_proj": "linear_q_down_proj",
    "q_b_proj": "linear_q_up_proj",
    "q_proj": "linear_q_proj",
}
# Query, key and value as one matrix.
_OF_THREE = ("linear_qkv", "qkv_proj", "query_key_value")
_FEED_FORWARD = (
    *("gate_proj", "up_proj", "down_proj", "w1", "w2", "w3", "fc1", "fc2"),
    *("linear_fc1_gate", "linear_fc1_up", "linear_fc2"),
)
# Looked up, or multiplied with, once: of as many parameters as the vocabulary has rows.
_OF_VOCABULARY = ("embed_tokens", "lm_head", "word_embeddings", "output_layer")
_KEY = "adapters.parameters"
# How PEFT, ms-swift and LLaMA-Factory call every matrix of every layer.
_EVERY = ("all-linear", "all_linear", "all")
# NeMo 1's names.
_OLDER = {
    "attention": _FUSED[:2],
    "mlp": _FUSED[2:],
    "all": _FUSED,
    "attention_qkv": _FUSED[:1],
    "attention_dense": _FUSED[1:2],
    "mlp_fc1": _FUSED[2:3],
    "mlp_fc2": _FUSED[3:],
}
# NF4 with its scales in 8 bits: 4.127 bits (Dettmers et al. 2023, arXiv 2305.14314).
_FOUR_BITS = 0.516
_KINDS = ("lora", "dora", "qlora", "canonical_lora")
_LLAMA_2: dict[str, Scalar] = {
    "name": "llama2-70b",
    "layers": 80,
    "hidden": 8192,
    "ffn": 28672,
    "heads": 64,
    "kv_heads": 8,
    "vocab": 32000,
    "gated": True,
    "tied_embeddings": False,
}


@dataclass(frozen=True)
class _Adapted:
    """What a source says of its adapters."""

    place: Place
    rank: int | None = None  # none where it is not said
    # Modules that have one, by the names of Hugging Face or of Megatron-Core; empty or
    # ``all-linear`` for every matrix of the layers.
    targets: Sequence[str] = ()
    whole: Sequence[str] = ()  # modules that are trained themselves
    # Query, key and value are one matrix, gate and up another (Megatron-Core).
    fused: bool = False
    shared: bool = False  # the experts of a rank share an adapter
    # Why they cannot be counted, if so: their parameters are asked for.
    doubts: Sequence[str] = ()


def _listed(settings: Settings, *keys: str) -> list[str]:
    """Names in a list, or in a text such as ``['q_proj','v_proj']``; none without."""
    value = settings.value(*keys)
    if isinstance(value, list):
        return [shown(item) for item in value]
    text = shown(value).strip("[]() ") if value else ""
    return [part.strip(" '\"") for part in text.split(",") if part.strip(" '\"")]


def _left_out(settings: Settings, section: str) -> str:
    """The doubt where modules are left out."""
    left = _listed(settings, f"{section}exclude_modules")
    return "leave modules out" if left else ""


def _shares(settings: Settings, section: str) -> bool:
    """Whether the experts of a rank share an adapter, Megatron-Bridge's default."""
    return settings.flag(f"{section}share_expert_adapters") is not False


def _doubt_of_kind(kind: str) -> str:
    """Why adapters of a kind cannot be counted; empty where they can."""
    return "" if kind.lower() in _KINDS else f"are of kind {shown(kind)}"


def _count(found: Findings, adapted: _Adapted) -> None:
    """Say that only adapters are trained, once the shape is known.

    Derives the rank, and the parameters where the rank does not tell them.
    """
    if adapted.rank:
        rule = f"adapters of rank {adapted.rank}"
        found.derive("adapters.rank", adapted.rank, rule, adapted.place)
    if found.has(_KEY):
        return
    doubts = [*adapted.doubts, "" if adapted.rank else "have no rank here"]
    every = not adapted.targets or any(name in _EVERY for name in adapted.targets)
    targets = list(dict.fromkeys(adapted.targets))
    model = model_of(found)
    if model is not None:  # otherwise its shape is asked for too
        known = _sides_of_modules(model)
        targets = _every_module(model, fused=adapted.fused) if every else targets
        doubts += [f"are on {shown(name)}" for name in targets if name not in known]
        whole = [name for name in adapted.whole if name not in _OF_VOCABULARY]
        doubts += [f"leave {shown(name)} trained whole" for name in whole]
    if doubt := next(filter(None, doubts), ""):
        message = f"adapters that {doubt} cannot be counted"
        hint = named("settings", {f"job.{_KEY}": "N"})
        found.ask(_KEY, message, hint, adapted.place)
    if model is None or doubt:
        return
    dense, experts = (sum(known[name][part] for name in targets) for part in (0, 1))
    if model.experts:
        key, place = "adapters.experts", adapted.place
        if experts and not adapted.shared:
            found.assume(key, True, "each expert has adapters of its own", place)
        else:
            found.derive(key, False, "no expert has adapters of its own", place)
    rest = model.vocab * model.hidden * len(adapted.whole)
    if every and not (adapted.fused or rest):
        return  # a rank on all matrices is what the job counts
    # Its shared adapter is on every expert rank.
    ranks = found.integer("parallelism.ep", 1) if adapted.shared else model.experts
    number = round((adapted.rank or 0) * (dense + ranks * experts)) + rest
    rule = f"rank {adapted.rank} on {', '.join(targets)}"
    if rest:
        rule += f", and {', '.join(adapted.whole)} whole"
    found.derive(_KEY, number, rule, adapted.place)


def read_verl(settings: Settings) -> None:
    """veRL: ``model.lora_rank`` with FSDP, ``model.lora`` with Megatron."""
    model = "actor_rollout_ref.model."
    flat, own = f"{model}lora_rank", f"{model}lora."
    rank = settings.integer(f"{own}rank", flat, minimum=0)
    if not rank:
        return
    fused = settings.get(f"{own}rank") is not None
    at = own if fused else model
    kind = settings.text(f"{own}type") or "lora"
    adapted = _Adapted(
        settings.place(f"{own}rank", flat),
        rank,
        _listed(settings, f"{at}target_modules"),
        fused=fused,
        shared=fused and _shares(settings, own),
        doubts=(_left_out(settings, at), _doubt_of_kind(kind)),
    )
    settings.known |= {f"{at}lora_alpha", f"{own}alpha", f"{own}dropout"}
    settings.found.later(_count, adapted)
    if not fused:
        # Its actor is loaded in FP32 unless told otherwise (``fsdp_workers.py``).
        kind = settings.text("actor_rollout_ref.actor.fsdp_config.model_dtype")
        width = 2 if kind in ("bf16", "bfloat16", "fp16", "float16") else 4
        rule = f"model_dtype {kind or 'fp32, default of veRL'}"
        settings.found.derive("memory.parameter_bytes", width, rule, adapted.place)


def read_nemo_rl(settings: Settings, section: str, *, megatron: bool) -> None:
    """NeMo-RL: ``megatron_cfg.peft``, or ``dtensor_cfg.lora_cfg``."""
    if settings.flag(f"{section}enabled"):
        every = settings.flag(f"{section}match_all_linear")
        adapted = _Adapted(
            settings.place(f"{section}dim", f"{section}enabled"),
            settings.integer(f"{section}dim"),
            [] if every else _listed(settings, f"{section}target_modules"),
            fused=megatron,
            shared=megatron and _shares(settings, section),
            doubts=(_left_out(settings, section),),
        )
        settings.found.later(_count, adapted)


def read_bridge(settings: Settings) -> None:
    """Megatron-Bridge's ``peft``, and ``model.peft`` of NeMo 1."""
    older = settings.text("model.peft.peft_scheme")
    if older:
        at = "model.peft.lora_tuning."
        targets = _listed(settings, f"{at}target_modules") or ["attention_qkv"]
        doubts = [_doubt_of_kind(older)]
        doubts += [
            f"have {key}"
            for key in ("layer_selection", "weight_tying")
            if settings.get(f"{at}{key}") and settings.flag(f"{at}{key}") is not False
        ]
        place = settings.place("model.peft.peft_scheme")
        rank = settings.integer(f"{at}adapter_dim") or 32
        newer = [name for old in targets for name in _OLDER.get(old, (old,))]
        settings.found.later(
            _count, _Adapted(place, rank, newer, fused=True, doubts=doubts)
        )
        return
    kind = settings.text("peft", "peft._target_").rpartition(".")[2].lower()
    if not kind and settings.integer("peft.dim") is None:
        return
    canonical = kind.startswith("canonical")
    is_known = canonical or kind in ("", "lora", "dora", "default_peft_config")
    another = settings.flag("peft.normalize_moe_lora")
    doubts = ["" if is_known else f"are of kind {shown(kind)}"]
    doubts += [_left_out(settings, "peft.")]
    doubts += ["have another rank on experts" if another else ""]
    adapted = _Adapted(
        settings.place("peft.dim", "peft"),
        settings.integer("peft.dim") or 32,
        _listed(settings, "peft.target_modules"),
        fused=not canonical,
        shared=_shares(settings, "peft."),
        doubts=doubts,
    )
    settings.found.later(_count, adapted)


def read_axolotl(settings: Settings) -> None:
    """Axolotl's ``adapter``, and ``finetuning_type`` of LLaMA-Factory."""
    kind = settings.text("adapter", "finetuning_type")
    if not kind and settings.text("stage"):
        kind = "lora"  # LLaMA-Factory's default
    if kind in ("", "full"):
        return
    found, place = settings.found, settings.place("adapter", "finetuning_type", "stage")
    factory = not settings.get("adapter")
    doubts = [_doubt_of_kind(kind)]
    if factory:
        rank = settings.integer("lora_rank") or 8
        targets = _listed(settings, "lora_target") or ["all"]
    else:
        rank = settings.integer("lora_r") or 0
        every = settings.flag("lora_target_linear")
        targets = ["all"] if every else _listed(settings, "lora_target_modules")
        doubts += [] if targets else ["name no lora_target_modules"]
        if settings.get("peft_layers_to_transform", "lora_layers_to_transform"):
            doubts.append("are on some layers")
    whole = _listed(settings, "lora_modules_to_save", "additional_target")
    found.later(_count, _Adapted(place, rank, targets, whole, doubts=doubts))
    bits = settings.integer("quantization_bit") if factory else None
    if kind == "qlora" or bits == 4 or settings.flag("load_in_4bit"):
        # Weights of 4 bits stay as they are, and are gathered so too.
        rule = "QLoRA: 4.127 bits with double quantization"
        for key in ("memory.parameter_bytes", "bytes.parameter_gather"):
            found.facts.pop(key, None)
            found.derive(key, _FOUR_BITS, rule, place)
    elif bits == 8 or settings.flag("load_in_8bit"):
        found.derive("memory.parameter_bytes", 1, "weights in 8 bits", place)


def read_torchtitan(settings: Settings) -> None:
    """A converter of torchtitan that adds adapters; on what, it does not say."""
    key = "model.converters"
    if any("lora" in name.lower() for name in settings.texts(key)):
        place = settings.place(key)
        settings.found.later(_count, _Adapted(place, doubts=["a converter adds"]))


def read_swift(
    found: Findings, arguments: Arguments, by_default: Place | None = None
) -> None:
    """ms-swift's ``--tuner_type lora``; each expert has adapters of its own.

    ``by_default`` is the place of ``swift sft``, which trains adapters unless told not
    to, on the layers of transformers; ``megatron sft`` does not, on fused ones.
    """
    keys = "tuner_type", "train_type"
    place, kind = arguments.place(*keys), arguments.text(*keys)
    if by_default is not None and not arguments.get(*keys):
        place, kind = by_default, "lora"
    if kind in ("", "full"):
        return
    doubts = [_doubt_of_kind(kind)]
    if arguments.value("target_regex") is not None:
        doubts.append("are on modules of a target_regex")
    adapted = _Adapted(
        place,
        arguments.integer("lora_rank", fact="adapters.rank") or 8,
        arguments.texts("target_modules"),
        arguments.texts("modules_to_save"),
        fused=by_default is None,
        doubts=doubts,
    )
    found.later(_count, adapted)


def read_mlperf(found: Findings, rank: str, place: Place) -> None:
    """MLPerf's Llama 2 70B: adapters of rank 16 on attention.

    Source: mlcommons/training_results_v4.0 62f111b7, NVIDIA's llama2_70b_lora, its
    ``conf/megatron_gpt_peft_tuning_config.yaml``; of v5.0 its ``train.py``.
    """
    known = int(rank) if re.fullmatch("[1-9][0-9]{0,5}", rank) else None
    found.later(_count, _Adapted(place, known, _FUSED[:2]))
    rule = "MLPerf's LoRA is of Llama 2 70B"
    for key, value in _LLAMA_2.items():
        found.derive(f"model.{key}", value, rule, place)
    found.assume("sequence", 8192, "of MLPerf's LoRA")


def _every_module(model: Model, *, fused: bool) -> list[str]:
    """Every matrix of a layer."""
    attention = attention_sides(model)
    if fused:
        latent = [name for own, name in _OF_LATENT.items() if own in attention]
        return [*(latent if model.kv_lora_rank else _FUSED[:1]), *_FUSED[1:]]
    gate = ["gate_proj"] if model.gated else []
    return [*attention, *gate, "up_proj", "down_proj"]


def _sides_of_modules(model: Model) -> dict[str, tuple[float, float]]:
    """Inputs and outputs of a module in all layers, of each it is known by.

    Those outside routed experts, and those of one expert in each layer that has any.
    """
    attention = attention_sides(model)
    if not model.kv_lora_rank:
        three = sum(attention[own] for own in _OF_HEADS) - 2 * model.hidden
        attention |= dict.fromkeys(_OF_THREE, three)
    names = (_OF_LATENT if model.kv_lora_rank else _OF_HEADS) | {"o_proj": _FUSED[1]}
    attention |= {names[own]: attention[own] for own in names if own in attention}
    found = {name: (model.layers * each, 0.0) for name, each in attention.items()}
    found |= dict.fromkeys(_FEED_FORWARD, _feed_forward(model, 1))
    both = _feed_forward(model, 2 if model.gated else 1)
    return found | dict.fromkeys(("linear_fc1", "gate_up_proj"), both)


def _feed_forward(model: Model, out: int) -> tuple[float, float]:
    """One matrix of the feed-forward, whose outer side is ``out`` widths."""
    dense = (model.layers - model.moe_layers) * (model.hidden + out * model.ffn)
    if model.shared_experts:
        wide = out * model.shared_experts * model.expert_ffn
        dense += model.moe_layers * (model.hidden + wide)
    return dense, model.moe_layers * (model.hidden + out * model.expert_ffn)
