"""What Megatron derives, and refuses, once layers, heads and sizes are all known."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from placer.job.model import Model
from placer.job.models import total_parameters
from placer.sources.findings import GLOBAL_BATCH, Findings

if TYPE_CHECKING:
    from placer.sources.megatron.arguments import Arguments
from placer.sources.megatron.refusals import refuse_fact

_LAYERS_PER_STAGE = "num_layers_per_virtual_pipeline_stage"
_GROUP = "microbatch_group_size_per_virtual_pipeline_stage"
_UNEVEN = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")
_PLAIN_LIST = re.compile(r"[0-9,\[\]()+*\s]{1,2000}")
_PART = re.compile(r"\(?\[([0-9,\s]*)\]\)?(?:\*([0-9]{1,5}))?")
_MOST_LAYERS = 10_000
_USUAL_BUCKET = 40_000_000


def add_rules(found: Findings, arguments: Arguments) -> None:
    """Add what follows from sizes that another source may give."""
    found.rules.append(arguments.join)
    for rule in (_stages, _shape, _moe, _sharding, _buckets):
        found.rules.append(partial(rule, arguments=arguments))
    found.rules.append(_batch)


def _stages(found: Findings, arguments: Arguments) -> None:
    """Virtual stages, and the layers that embedding and loss count for."""
    pp, layers = found.integer("parallelism.pp", 1), found.integer("model.layers")
    ends = _ends(found, arguments)
    layout = arguments.text("pipeline_model_parallel_layout")
    vp = _virtual(found, arguments, layout, layers + sum(ends.values()), pp)
    uneven = [name for name in _UNEVEN if arguments.get(name) is not None]
    for name in uneven:
        flag = f"--{name.replace('_', '-')}"
        found.notes.append(f"{flag}: stages are taken as equally long")
    total = layers + sum(ends.values())
    if not (uneven or layout) and total % pp:
        what = "layers, embedding and loss" if any(ends.values()) else "layers"
        refuse_fact(
            found, "model.layers", f"{total} {what} are not divisible by pp {pp}"
        )
    if vp == 1:
        found.derive("overlap.pp", False, "no p2p overlap without virtual stages")
        return
    overlap = not arguments.flag("no_overlap_p2p_communication")
    if arguments.get("overlap_p2p_comm") is not None:
        overlap = arguments.flag("overlap_p2p_comm")
    found.derive("overlap.pp", overlap, "p2p overlap of virtual stages")
    if pp < 2 + (not overlap):
        refuse_fact(found, "parallelism.vp", f"virtual stages with pp {pp}")
    count = found.integer("micro_batches")
    group = arguments.integer(_GROUP, "memory.micro_batch_group") or pp
    if group != pp:
        found.derive(
            "memory.micro_batch_group", group, "a group", arguments.place(_GROUP)
        )
    if count and (count < group or group < pp or 0 < count % group < pp):
        words = f"{count} micro-batches with virtual stages, pp {pp}, groups of {group}"
        hint = f"their number must be a multiple of {group}"
        refuse_fact(found, "micro_batches", words, hint)


def _ends(found: Findings, arguments: Arguments) -> dict[str, int]:
    ends = {}
    for key in ("embedding", "loss"):
        name = f"account_for_{key}_in_pipeline_split"
        place = arguments.place(name)
        ends[key] = int(arguments.flag(name))
        if place is not None and ends[key]:
            found.read(f"stages.{key}", 1, place)
    return ends


def _virtual(
    found: Findings, arguments: Arguments, layout: str, layers: int, pp: int
) -> int:
    """Virtual stages of a pipeline rank."""
    key = "parallelism.vp"
    for name in (
        "num_virtual_stages_per_pipeline_rank",
        "virtual_pipeline_model_parallel_size",
    ):
        if not found.has(key):
            arguments.fact(key, name)
    each = arguments.integer(_LAYERS_PER_STAGE, key)
    place = arguments.place(_LAYERS_PER_STAGE)
    if layout:
        stages = len(_expanded(layout).split("|"))
        place = arguments.place("pipeline_model_parallel_layout")
        if stages % pp:
            refuse_fact(found, key, f"a layout of {stages} stages on pp {pp}")
        found.derive(key, max(1, stages // pp), f"{stages} stages / pp {pp}", place)
    elif each and place is not None and not found.has(key):
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
    _cuts(found, arguments, heads)


def _cuts(found: Findings, arguments: Arguments, heads: int) -> None:
    """Refuse heads and sequences that tp and cp cannot cut."""
    tp, cp = found.integer("parallelism.tp", 1), found.integer("parallelism.cp", 1)
    if heads % tp:
        words = f"{heads} heads are not divisible by tp {tp}"
        refuse_fact(found, "model.heads", words)
    groups = found.integer("model.kv_heads", heads)
    if groups % tp and tp % groups:
        words = f"{groups} query groups and tp {tp} do not divide each other"
        refuse_fact(found, "model.kv_heads", words)
    sequence = found.integer("sequence")
    ulysses = arguments.get("ds_sequence_parallel_size") is not None
    if cp > 1 and sequence % (2 * cp) and not ulysses:
        words = f"sequence {sequence} is not divisible by 2 x cp {cp}"
        refuse_fact(found, "sequence", words)


def _moe(found: Findings, arguments: Arguments) -> None:
    experts = found.integer("model.experts")
    ep, layers = found.integer("parallelism.ep", 1), found.integer("model.layers")
    if not experts:
        if not layers:  # no shape yet: it is asked for
            return
        found.facts.pop("parallelism.etp", None)
        if ep > 1:
            words = "expert parallelism without --num-experts"
            refuse_fact(found, "parallelism.ep", words)
        return
    if experts % ep:
        words = f"{experts} experts are no multiple of ep {ep}"
        refuse_fact(found, "parallelism.ep", words)
    tp = found.integer("parallelism.tp", 1)
    found.derive("parallelism.etp", tp, f"tp {tp}")
    ffn = found.integer("model.ffn")
    if ffn:
        found.derive("model.expert_ffn", ffn, f"ffn {ffn}")
    _shared(found, arguments)
    if layers:
        _moe_layers(found, arguments, layers)
    if tp > 1 and not found.integer("tensor_parallel.sequence"):
        words = "experts with tensor parallelism and without --sequence-parallel"
        if arguments.get("deepspeed") is None:
            refuse_fact(found, "model.experts", words)


def _shared(found: Findings, arguments: Arguments) -> None:
    name = "moe_shared_expert_intermediate_size"
    width = arguments.integer(name, "model.shared_experts", minimum=0)
    one = found.integer("model.expert_ffn")
    if not width or not one:
        return
    shared, rest = divmod(width, one)
    found.derive(
        "model.shared_experts",
        max(1, shared + (2 * rest >= one)),
        f"shared width {width} / expert_ffn {one}",
        arguments.place(name),
    )
    if rest:
        found.notes.append(f"shared experts {width} wide are no multiple of {one}")


def _moe_layers(found: Findings, arguments: Arguments, layers: int) -> None:
    """Which layers have experts: every n-th, or those of a list."""
    key = "model.moe_layers"
    pattern, place = arguments.text("moe_layer_freq"), arguments.place("moe_layer_freq")
    pattern = pattern.strip("'\"")
    interval = arguments.integer("expert_interval", key)
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
    """The list that an expression such as ``([0]*3+[1]*58)`` makes; None if it is none.

    Megatron evaluates it; only brackets, digits, ``*`` and ``+`` are read here.
    """
    if not _PLAIN_LIST.fullmatch(pattern):
        return None
    inside = "".join(pattern.split())
    if inside.startswith("(") and inside.endswith(")"):
        inside = inside[1:-1]
    found: list[int] = []
    for part in inside.split("+"):
        match = _PART.fullmatch(part)
        if match is None:
            return None
        once = [int(number[:9]) for number in match[1].split(",") if number]
        found += once * int(match[2] or 1)
        if len(found) > _MOST_LAYERS:
            return None
    return found


def _sharding(found: Findings, arguments: Arguments) -> None:
    """Several instances of the optimizer: each shards over a part of the replicas."""
    name, key = "num_distributed_optimizer_instances", "data_parallel.sharding"
    instances, place = arguments.integer(name, key), arguments.place(name)
    members = found.integer("parallelism.dp") * found.integer("parallelism.cp", 1)
    if not instances or instances == 1 or place is None or not members:
        return
    if members % instances:
        words = f"{instances} optimizer instances do not divide dp x cp = {members}"
        refuse_fact(found, key, words)
        return
    keeps = found.text(key) != "zero3"
    found.read(key, "hsdp", place)
    rule = f"dp x cp {members} / {instances} instances"
    found.derive("data_parallel.shard_size", members // instances, rule, place)
    if keeps:
        rule = "the optimizer is sharded"
        found.derive("data_parallel.keep_parameters", True, rule, place)


def _buckets(found: Findings, arguments: Arguments) -> None:
    """Parameters of a gradient bucket (``megatron/training/training.py``)."""
    if arguments.flag("deepspeed"):
        return
    key = "data_parallel.bucket_parameters"
    members = found.integer("parallelism.dp") * found.integer("parallelism.cp", 1)
    count, place = (
        arguments.integer("ddp_num_buckets", key),
        arguments.place("ddp_num_buckets"),
    )
    model = _model(found)
    whole = 0
    if model is not None:
        ranks = found.integer("parallelism.tp", 1) * found.integer("parallelism.pp", 1)
        whole = max(1, total_parameters(model) // ranks)
    if not found.integer("data_parallel.overlap_reduce"):
        if whole:
            found.facts.pop(key, None)
            found.derive(key, whole, "one bucket without --overlap-grad-reduce")
    elif count and whole:
        rule = f"{whole:,} parameters of a rank / {count} buckets"
        found.derive(key, max(1, whole // count), rule, place)
    elif members:
        size = max(_USUAL_BUCKET, 1_000_000 * members)
        found.derive(key, size, f"the larger of 40 M and 1 M x dp x cp {members}")


def _model(found: Findings) -> Model | None:
    """The model of the facts, where all that it takes is known."""
    shape = {
        key.removeprefix("model."): fact.value
        for key, fact in found.facts.items()
        if key.startswith("model.")
    }
    needed = ("layers", "hidden", "ffn", "heads", "vocab")
    if any(not shape.get(key) for key in needed):
        return None
    fields = Model.__dataclass_fields__
    shape = {k: v for k, v in shape.items() if k in fields and k != "name"}
    shape.setdefault("kv_heads", shape["heads"])
    return Model(name="", **shape)  # type: ignore[arg-type]


def _batch(found: Findings) -> None:
    """Without a global batch each replica does one micro-batch."""
    if not found.has(GLOBAL_BATCH) and found.has("micro_batch"):
        found.derive("micro_batches", 1, "no --global-batch-size: micro_batch x dp")
