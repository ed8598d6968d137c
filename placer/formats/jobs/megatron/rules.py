"""What Megatron derives, and refuses, once layers, heads and sizes are all known."""

from __future__ import annotations

import re

from placer.formats.jobs import mcore, mcore_rules
from placer.formats.jobs.findings import GLOBAL_BATCH, Findings
from placer.formats.jobs.mcore_rules import refuse_fact
from placer.formats.jobs.megatron.arguments import Arguments
from placer.formats.jobs.megatron.deepspeed import pipeline_ends
from placer.formats.jobs.python import constant

_LAYERS_PER_STAGE = "num_layers_per_virtual_pipeline_stage"
_GROUP = "microbatch_group_size_per_virtual_pipeline_stage"
_MOST_LAYERS = 10_000


def add_rules(found: Findings, arguments: Arguments) -> None:
    """Add what follows from sizes that another source may give."""
    found.rules.append(arguments.join)
    found.later(_stages, arguments, *mcore.read_stages(arguments))
    for rule in (_shape, _moe, _buckets):
        found.later(rule, arguments)
    found.later(_batch)


def _stages(found: Findings, arguments: Arguments, overlap: bool, even: bool) -> None:
    """Virtual stages, and what DeepSpeed's partition of a pipeline counts."""
    pp, layers = found.integer("parallelism.pp", 1), found.integer("model.layers")
    deepspeed = arguments.get("deepspeed") is not None
    ends = found.integer("stages.embedding") + found.integer("stages.loss")
    if deepspeed and pp > 1:
        pipeline_ends(found, arguments)
    vp = _virtual(found, arguments, layers + ends, pp)
    if even and not deepspeed:
        mcore_rules.stages(found)
    mcore_rules.messages(found, overlap=overlap)
    if vp == 1:
        return
    if pp < 2 + (not overlap):
        refuse_fact(found, "parallelism.vp", f"virtual stages with pp {pp}")
    count = found.integer("micro_batches")
    group = arguments.integer(_GROUP, fact="memory.micro_batch_group") or pp
    if group != pp:
        arguments.derive("memory.micro_batch_group", group, "a group", _GROUP)
    if count and (count < group or group < pp or 0 < count % group < pp):
        words = f"{count} micro-batches with virtual stages, pp {pp}, groups of {group}"
        hint = f"their number must be a multiple of {group}"
        refuse_fact(found, "micro_batches", words, hint)


def _virtual(found: Findings, arguments: Arguments, layers: int, pp: int) -> int:
    """Virtual stages of a pipeline rank."""
    key = "parallelism.vp"
    each = arguments.integer(_LAYERS_PER_STAGE, fact=key)
    place = arguments.place(_LAYERS_PER_STAGE)
    if layout := arguments.text(mcore.LAYOUT):
        stages = len(_expanded(layout).split("|"))
        place = arguments.place(mcore.LAYOUT)
        if stages % pp:
            refuse_fact(found, key, f"a layout of {stages} stages on pp {pp}")
        found.derive(key, max(1, stages // pp), f"{stages} stages / pp {pp}", place)
    elif each and not found.has(key):
        if layers % (pp * each):
            words = f"{layers} layers are not divisible by pp {pp} x {each} a stage"
            refuse_fact(found, key, words)
        rule = f"{layers} layers / pp {pp} / {each} a virtual stage"
        found.derive(key, max(1, layers // (pp * each)), rule, place)
    found.derive(key, 1, "Megatron's default")
    return found.integer(key, 1)


def _expanded(layout: str) -> str:
    """A layout with its repetitions written out: ``(t|)*3`` is ``t|t|t|``."""
    text = layout.replace(" ", "").replace(",", "")[:4000]
    pattern = re.compile(r"(?:\(([^()]*)\)|([A-Za-z|]))\*([0-9]{1,4})")
    while match := pattern.search(text):
        inside = (match[1] if match[1] is not None else match[2]) * int(match[3])
        text = text[: match.start()] + inside + text[match.end() :]
        if len(text) > 2 * _MOST_LAYERS:
            break
    return text


def _shape(found: Findings, arguments: Arguments) -> None:
    """Feed-forward width and heads, where nothing says them."""
    hidden, heads = found.integer("model.hidden"), found.integer("model.heads")
    if not (hidden and heads):
        return
    ffn, rule = 4 * hidden, f"4 x hidden {hidden}"
    if arguments.flag("swiglu") or arguments.text("activation_func") == "swiglu":
        ffn, rule = int(8 * hidden / 3 / 64) * 64, f"8/3 x hidden {hidden}, by 64"
    found.derive("model.ffn", ffn, rule)
    latent = found.has("model.kv_lora_rank")
    if not latent:
        found.derive("model.kv_heads", heads, "no --group-query-attention")
    if found.integer("model.head_dim") * heads == hidden:
        del found.facts["model.head_dim"]
    elif hidden % heads and not (latent or found.has("model.head_dim")):
        words = f"hidden {hidden} is not divisible by {heads} heads"
        refuse_fact(found, "model.heads", words)
    by_heads = arguments.get("ds_sequence_parallel_size")
    mcore_rules.cuts(found, by_heads=by_heads is not None)


def _moe(found: Findings, arguments: Arguments) -> None:
    mcore_rules.experts(found, sequence=arguments.get("deepspeed") is None)
    if found.integer("model.experts"):
        _shared(found, arguments)
        if layers := found.integer("model.layers"):
            _moe_layers(found, arguments, layers)


def _shared(found: Findings, arguments: Arguments) -> None:
    name, key = "moe_shared_expert_intermediate_size", "model.shared_experts"
    width = arguments.integer(name, minimum=0, fact=key)
    one = found.integer("model.expert_ffn")
    if not width or not one:
        return
    shared, rest = divmod(width, one)
    count = max(1, shared + (2 * rest >= one))
    arguments.derive(key, count, f"shared width {width} / expert_ffn {one}", name)
    if rest:
        found.notes.append(f"shared experts {width} wide are no multiple of {one}")


def _moe_layers(found: Findings, arguments: Arguments, layers: int) -> None:
    """Which layers have experts: every n-th, or those of a list."""
    key = "model.moe_layers"
    place = arguments.place("moe_layer_freq")
    pattern = arguments.text("moe_layer_freq")
    interval = arguments.integer("expert_interval", fact=key)
    if not pattern and arguments.get("deepspeed") is not None:
        every = interval or 2
        found.derive(key, layers // every, f"experts in every {every}th layer", place)
        return
    if not pattern:
        found.derive(key, layers, "experts in every layer")
        return
    if pattern.isdecimal() and int(pattern[:6]) > 0:
        every = int(pattern[:6])
        found.derive(key, -(-layers // every), f"every {every}th of {layers}", place)
        if every > 1:
            found.derive("model.dense_first", False, "spread out", place)
        return
    listed = list_of(pattern)
    if listed is None or len(listed) != layers:
        got = "is not understood" if listed is None else f"has {len(listed)} layers"
        words = f"--moe-layer-freq {got}, the model {layers}"
        refuse_fact(found, "model.layers", words)
        return
    found.derive(key, sum(map(bool, listed)), f"the ones of {pattern}", place)
    if listed != sorted(listed):
        found.derive("model.dense_first", False, "spread out", place)


def list_of(pattern: str) -> list[int] | None:
    """The numbers of a list that an expression such as ``([0]*3+[1]*58)`` makes.

    Megatron evaluates it. None where it is no such list, or is not followed.
    """
    found = constant(pattern)
    if isinstance(found, list) and all(isinstance(item, int) for item in found):
        return found
    return None


def _buckets(found: Findings, arguments: Arguments) -> None:
    if not arguments.flag("deepspeed"):
        name = "ddp_num_buckets"
        count = arguments.integer(name, fact="data_parallel.bucket_parameters")
        mcore_rules.buckets(found, count or 0, arguments.place(name))


def _batch(found: Findings) -> None:
    """Without a global batch each replica does one micro-batch."""
    if not found.has(GLOBAL_BATCH) and found.has("micro_batch"):
        found.derive("micro_batches", 1, "no --global-batch-size: micro_batch x dp")
