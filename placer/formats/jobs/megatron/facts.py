"""What the arguments of Megatron say of a job in so many words.

Models of mixed layers are refused, as no job can say them. Source: ``megatron/core/``:
``ssm/mamba_hybrid_layer_allocation.py`` and
``models/gpt/experimental_attention_variant_module_specs.py``.
"""

from __future__ import annotations

import re

from placer.formats.jobs import mcore
from placer.formats.jobs.findings import GLOBAL_BATCH, Findings, Remark
from placer.formats.jobs.megatron.arguments import Arguments
from placer.formats.jobs.megatron.traffic import read_traffic

_LATENT = {  # with what arguments.py gives where nothing is said
    "model.q_lora_rank": ("q_lora_rank", 0),
    "model.kv_lora_rank": ("kv_lora_rank", 32),
    "model.qk_head_dim": ("qk_head_dim", 128),
    "model.rope_head_dim": ("qk_pos_emb_head_dim", 64),
    "model.v_head_dim": ("v_head_dim", 128),
}
_DEFAULT = "Megatron's default"
_SEQUENCE = ("decoder_seq_length", "seq_length", "encoder_seq_length", "max_length")
# Tokenizers with one vocabulary only.
_TOKENIZERS = {
    "GPT2BPETokenizer": 50257,
    "Llama2Tokenizer": 32000,
    "Llama3Tokenizer": 128256,
}
# Models by a part of the tokenizer's name, with the size of theirs.
_OF_MODELS = {
    "llama-2": 32000,
    "llama2": 32000,
    "llama-3": 128256,
    "llama3": 128256,
    "mixtral-8x7b": 32000,
    "gpt2": 50257,
    "qwen2.5": 151665,
    "qwen3": 151669,
    "deepseek-v3": 128815,
    "deepseek-r1": 128815,
}
_PADDED_TO = 128
_LAYER_SIGNS = {
    "M": "Mamba",
    "G": "gated delta net",
    "-": "MLP",
    "*": "attention",
    "E": "experts",
}
_MIXED_PROGRAM = re.compile(r"(?:^|/)[\w-]*(?:mamba|hybrid)[\w-]*\.py$")
_RATIOS = {"attention": "hybrid_attention_ratio", "MLP": "hybrid_mlp_ratio"}
_VARIANTS = ("experimental_attention_variant", "linear_attention_type")


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
    read_traffic(found, arguments)


def _axes(found: Findings, arguments: Arguments) -> None:
    mcore.read_sizes(arguments)
    if (arguments.copy("parallelism.cp", "ds_sequence_parallel_size") or 1) > 1:
        found.derive("context_parallel.communication", "a2a", "DeepSpeed-Ulysses")
    mcore.ones(found, _DEFAULT)
    name, key = "tensor_parallel_num_weight_shards", "parallelism.tp"
    if (arguments.integer(name, fact=key) or 0) > found.integer(key, 1):
        message = "weights sharded beyond tensor parallelism have no job key"
        arguments.refuse(name, message)
    for name in ("model_parallel_size", "batch_size"):
        if arguments.get(name):
            flag = f"--{name.replace('_', '-')}"
            arguments.forbid(name, f"{flag} is no longer valid")


def _batch(found: Findings, arguments: Arguments) -> None:
    arguments.copy("micro_batch", "micro_batch_size")
    given = arguments.copy(GLOBAL_BATCH, "global_batch_size") is not None
    name = "step_batch_size_schedule"
    if schedule := arguments.texts(name):
        if given:
            message = "--step-batch-size-schedule and --global-batch-size together"
            hint = "remove one of them; older versions took both"
            arguments.forbid(name, message, hint)
        last = schedule[-1].rpartition(":")[2]
        if last.isdecimal() and len(last) < 10:
            arguments.say(GLOBAL_BATCH, int(last), name)
            found.notes.append(f"the last batch size of the schedule counts: {last}")
    if arguments.get("rampup_batch_size"):
        found.notes.append("the batch size after --rampup-batch-size counts")
    # Models of images have --seq-length for these, and another for their decoder.
    arguments.copy("sequence", *_SEQUENCE)
    name = "max_position_embeddings"
    most = None if arguments.unknown(name) else arguments.integer(name, fact="sequence")
    if most is not None and most < found.integer("sequence"):
        message = f"max_position_embeddings {most} is less than seq_length"
        arguments.forbid(name, message)


def _shape(found: Findings, arguments: Arguments) -> None:
    given = [arguments.copy(key, name) for key, name in mcore.WIDTHS.items()]
    refuse_mixed(found, arguments)
    _gated(found, arguments, is_whole=any(given))
    untie = "untie_embeddings_and_output_weights"
    arguments.say("model.tied_embeddings", not arguments.flag(untie), untie)
    if any(given):  # or another source has the shape, and this too
        rule = "no --untie-embeddings-and-output-weights"
        found.derive("model.tied_embeddings", True, rule)
    if arguments.flag("multi_latent_attention"):
        if arguments.flag("group_query_attention"):
            message = "--group-query-attention with --multi-latent-attention"
            arguments.forbid("multi_latent_attention", message)
        for key, (name, size) in _LATENT.items():
            arguments.copy(key, name, minimum=0, usual=(size, _DEFAULT))
        return
    arguments.copy("model.head_dim", "kv_channels")
    if arguments.flag("group_query_attention"):
        arguments.copy("model.kv_heads", "num_query_groups", usual=(1, _DEFAULT))
    else:
        arguments.copy("model.kv_heads", "num_key_value_heads")


def _gated(found: Findings, arguments: Arguments, *, is_whole: bool) -> None:
    for name in ("swiglu", "quick_geglu", "geglu"):
        if arguments.flag(name):
            arguments.say("model.gated", True, name)
            return
    if function := arguments.text("activation_func"):
        is_gated = function in ("swiglu", "geglu")
        arguments.say("model.gated", is_gated, "activation_func")
    arguments.get("squared_relu")
    if is_whole:
        found.derive("model.gated", False, "no --swiglu or --quick-geglu")


def _experts(found: Findings, arguments: Arguments) -> None:
    deepspeed = arguments.flag("deepspeed")
    if deepspeed:
        arguments.copy("parallelism.ep", "moe_expert_parallel_size")
        if not arguments.flag("enable_expert_tensor_parallelism"):
            found.derive("parallelism.etp", 1, "no --enable-expert-tensor-parallelism")
    arguments.known |= {"moe_router_topk", "moe_ffn_hidden_size", "topk"}
    if not _count_experts(found, arguments):
        return
    name, top_k = ("topk", 1) if deepspeed else ("moe_router_topk", 2)
    arguments.copy("model.top_k", name, usual=(top_k, _DEFAULT))
    arguments.copy("model.expert_ffn", "moe_ffn_hidden_size")
    mcore.read_dispatch(arguments)
    kind, deepep = "moe_token_dispatcher_type", "moe_enable_deepep"
    said = deepspeed or arguments.get(kind) or arguments.flag(deepep)
    if not said and found.integer("parallelism.ep", 1) > 1:
        place, reason = found.facts["model.experts"].place, "modelled as alltoall"
        remark = Remark("token dispatcher allgather", place, f"the default, {reason}")
        found.not_modelled.append(remark)


def _count_experts(found: Findings, arguments: Arguments) -> bool:
    """Read the number of experts; whether there are several."""
    listed = arguments.texts("num_experts")  # Megatron-DeepSpeed has a list
    if listed in ([], ["0"], ["1"]):  # one for all tokens is no expert
        return False
    if len(set(listed)) > 1:
        message = "layers with different numbers of experts are not read"
        arguments.refuse("num_experts", message)
    elif "[" in arguments.text("num_experts") and listed[0].isdecimal():
        arguments.say("model.experts", int(listed[0][:9]), "num_experts")
    else:
        arguments.copy("model.experts", "num_experts", minimum=0)
    return found.has("model.experts")


def read_vocabulary(found: Findings, arguments: Arguments) -> None:
    """Read or assume the vocabulary, and read how it is padded."""
    arguments.known |= {"tokenizer_type", "tokenizer_model", "vocab_file", "merge_file"}
    for name in ("padded_vocab_size", "pad_vocab_size_to"):
        if arguments.get(name):
            arguments.copy("model.vocab", name)
            arguments.get("vocab_size")
            found.derive("model.vocab_multiple", 1, "the vocabulary is padded")
            return
    if arguments.copy("model.vocab", "vocab_size") is None:
        _of_tokenizer(found, arguments)
    key, name = "model.vocab_multiple", "make_vocab_size_divisible_by"
    arguments.copy(key, name, usual=(_PADDED_TO, _DEFAULT))


def _of_tokenizer(found: Findings, arguments: Arguments) -> None:
    """Assume what the tokenizer has; nothing where it is not known which one it is."""
    key = "model.vocab"
    if arguments.unknown("vocab_size"):
        return
    kind = arguments.text("tokenizer_type")
    if kind in _TOKENIZERS:
        found.assume(key, _TOKENIZERS[kind], kind, arguments.place("tokenizer_type"))
        return
    name = "tokenizer_model"
    if arguments.unknown(name):
        return  # asked for, if no other source tells the size
    model = arguments.text(name)
    sizes = (size for part, size in _OF_MODELS.items() if part in model.lower())
    if size := next(sizes, 0):
        found.assume(key, size, f"tokenizer {model}", arguments.place(name))
    elif arguments.get("merge_file"):
        place = arguments.place("merge_file")
        found.assume(key, 50257, "GPT-2's, as it has a merge file", place)


def refuse_mixed(found: Findings, arguments: Arguments) -> None:
    """Refuse a model of mixed layers, with how many it has of each."""
    layers = found.integer("model.layers")
    for name in ("hybrid_layer_pattern", "hybrid_override_pattern"):
        if pattern := arguments.text(name):
            counts = {what: pattern.count(sign) for sign, what in _LAYER_SIGNS.items()}
            _refuse(arguments, name, counts)
            return
    for name in _VARIANTS:
        kind = arguments.text(name)
        if "delta" in kind or "mamba" in kind:
            linear = _linear(arguments, layers)
            words = kind.replace("_", " ")
            _refuse(arguments, name, {"attention": layers - linear, words: linear})
            return
    _refuse_ratios(arguments, layers)


def _refuse_ratios(arguments: Arguments, layers: int) -> None:
    """Mamba layers, of which shares are attention and MLP instead."""
    spec = "spec" if any("mamba" in word for word in arguments.texts("spec")) else ""
    said = filter(arguments.flag, (*_RATIOS.values(), "is_hybrid_model"))
    hybrid = next(said, spec)
    if not (hybrid or _MIXED_PROGRAM.search(arguments.program)):
        return
    shares = {kind: _ratio(arguments, name) for kind, name in _RATIOS.items()}
    counts = {kind: round(layers * share) for kind, share in shares.items()}
    counts["Mamba"] = layers - sum(counts.values())
    _refuse(arguments, hybrid if arguments.get(hybrid) else "num_layers", counts)


def _ratio(arguments: Arguments, name: str) -> float:
    text = arguments.text(name)
    return float(text) if re.fullmatch(r"0?\.[0-9]{1,9}|[01](?:\.0*)?", text) else 0.0


def _linear(arguments: Arguments, layers: int) -> int:
    """Layers without attention proper: all but every n-th, or the ones of a list."""
    given = arguments.texts("linear_attention_freq")
    if len(given) == 1 and given[0].isdecimal() and int(given[0][:6]):
        return layers - layers // int(given[0][:6])
    return layers if not given else given.count("1")


def _refuse(arguments: Arguments, name: str, counts: dict[str, int]) -> None:
    told = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
    arguments.refuse(name, f"a model of mixed layers ({told}) is not read")
