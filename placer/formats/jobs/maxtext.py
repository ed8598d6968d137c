"""MaxText: a configuration over ``base.yml``, and the shape beside it.

Sources: AI-Hypercomputer/maxtext e591f30c, ``src/maxtext/configs/base.yml`` (defaults
and ``mesh_axes``) and ``configs/pyconfig.py``.
"""

from __future__ import annotations

from math import prod

from placer.base.errors import InputError
from placer.base.naming import named
from placer.formats.jobs.findings import DP_MULTIPLE, GPUS, Asked, Findings, Place
from placer.formats.jobs.fsdp import bucket_of_a_layer
from placer.formats.jobs.hf import LATENT
from placer.formats.jobs.reading import of_yaml
from placer.formats.jobs.settings import Settings, reader

# Names of ``mesh_axes``, and the axis of a job that each is part of.
_MESH = {
    "data": "data",
    "pipeline": "pp",
    "fsdp": "fsdp",
    "fsdp_transpose": "fsdp",
    "sequence": "cp",
    "context": "cp",
    "tensor": "tp",
    "tensor_transpose": "tp",
    "tensor_sequence": "tp",
    "expert": "ep",
}
_SHAPE = {
    "model.layers": "base_num_decoder_layers",
    "model.hidden": "base_emb_dim",
    "model.ffn": "base_mlp_dim",
    "model.heads": "base_num_query_heads",
    "model.kv_heads": "base_num_kv_heads",
    "model.vocab": "vocab_size",
}
# Layers in one of ``base_num_decoder_layers``: a local and a global one.
_LAYERS_OF_BLOCK = {"gemma2": 2}
# Blocks that are not layers of attention and a feed-forward, all alike.
_OTHER_BLOCKS = {
    "deepseek4": "compressed attention",
    "gemma4_small": "layers that share keys and values",
    "qwen3_5": "gated delta nets",
    "qwen3_custom_moe": "experts that are narrower than the model",
    "qwen3_next": "gated delta nets",
    "simple": "no attention",
    "simple_mlp": "no attention",
}
_FOLDERS = ("models", "../models", "../../models", ".")
_NO_ORDER = "which no order of a job says"


@reader(of_yaml)
def read(settings: Settings) -> None:
    """Take what a MaxText configuration says, or the shape of one of its models."""
    name = settings.text("model_name")
    if name and not settings.get("base_emb_dim"):
        _include_model(settings, name)
    _read_shape(settings)
    if not settings.get("base_emb_dim") or settings.get("per_device_batch_size"):
        _read_run(settings)


def _include_model(settings: Settings, name: str) -> None:
    """Add the shape that MaxText looks up by ``model_name``."""
    found = settings.found
    for folder in _FOLDERS:
        included = settings.asked.include(found.source, f"{folder}/{name}.yml")
        # A configuration may have the name of its model.
        if included is None or included[1] == found.source:
            continue
        try:
            shape = of_yaml(*included, found, Asked()).values
        except InputError as error:
            found.problems += error.problems
            return
        settings.values = shape | settings.values
        return
    found.notes.append(
        f"models/{name}.yml is not beside it: join {named('job', 'maxtext:FILE')}"
    )


def _read_shape(settings: Settings) -> None:
    found = settings.found
    settings.take(_SHAPE)
    _read_block(settings)
    latent = settings.text("attention_type") == "mla"
    # base.yml has these for models without latent attention too.
    for fact, key in LATENT.items():
        settings.known.add(key)
        if latent:
            settings.copy(fact, key, minimum=0)
    scale = "global_parameter_scale"
    if settings.get(scale) and settings.integer(scale) != 1:
        settings.refuse(scale, "scaled models are not read", "set it to 1")
    hidden, heads = found.integer("model.hidden"), found.integer("model.heads")
    width = settings.integer("head_dim")
    if width and width * heads != hidden and not found.has("model.kv_lora_rank"):
        found.read("model.head_dim", width, settings.place("head_dim"))
    if hidden:
        parts = len(settings.texts("mlp_activations")) or 2
        key = "mlp_activations"
        settings.derive("model.gated", parts > 1, f"{parts} mlp_activations", key)
        usual = False, "default of MaxText: logits_via_embedding false"
        key = "logits_via_embedding"
        settings.copy("model.tied_embeddings", key, usual=usual)
    _read_experts(settings)


def _read_block(settings: Settings) -> None:
    """What a layer of the configuration is, and how many layers it stands for."""
    found, block = settings.found, settings.text("decoder_block")
    if block in _OTHER_BLOCKS:
        message = f"{block} has {_OTHER_BLOCKS[block]}, which is not modelled"
        settings.refuse("decoder_block", message, "a job knows layers that are alike")
    layers = settings.integer("base_num_decoder_layers")
    if layers and block in _LAYERS_OF_BLOCK:
        of_block = _LAYERS_OF_BLOCK[block]
        place = settings.place("base_num_decoder_layers")
        if found.facts["model.layers"].place == place:
            del found.facts["model.layers"]
        rule = f"{layers} blocks of {block}, {of_block} layers each"
        found.derive("model.layers", layers * of_block, rule, place)
    if settings.integer("global_head_dim", minimum=0):
        reason = "heads of global layers are of another width"
        settings.not_modelled("global_head_dim", reason)


def _read_experts(settings: Settings) -> None:
    found = settings.found
    if (settings.integer("num_experts") or 1) < 2:
        return
    settings.copy("model.experts", "num_experts")
    settings.copy("model.top_k", "num_experts_per_tok")
    settings.copy("model.expert_ffn", "base_moe_mlp_dim", "base_mlp_dim")
    settings.copy("model.shared_experts", "shared_experts", minimum=0)
    layers = found.integer("model.layers")
    dense = settings.integer("first_num_dense_layers", minimum=0) or 0
    step = settings.integer("interleave_moe_layer_step") or 1
    count = sum(i >= dense and (i + 1) % step == 0 for i in range(layers))
    rule = f"first_num_dense_layers {dense}, interleave_moe_layer_step {step}"
    found.derive("model.moe_layers", count, rule)
    if step > 1:
        found.derive("model.dense_first", False, rule)


def _read_run(settings: Settings) -> None:
    """Axes and batch, with the defaults of base.yml."""
    found = settings.found
    usual = 2048, "default of MaxText: max_target_length 2048"
    settings.copy("sequence", "max_target_length", usual=usual)
    settings.copy(GPUS, "compile_topology_num_devices")
    sizes = dict.fromkeys((*_MESH.values(), "tensor_sequence"), 1)
    rest = ""
    for name, axis in _MESH.items():
        degrees = [_degree(settings, level, name) for level in ("ici", "dcn")]
        if -1 in degrees:
            # Of the two that base.yml leaves open, that inside a slice takes the GPUs.
            rest = axis if degrees[0] == -1 or not rest else rest
        sizes[axis] *= prod(size for size in degrees if size > 0)
    for axis in ("tp", "cp", "pp", "ep"):
        found.derive(f"parallelism.{axis}", sizes[axis], "ici x dcn parallelism")
    if sizes["tp"] > 1:
        axis = "tensor_sequence"
        cut = prod(_degree(settings, level, axis) for level in ("ici", "dcn"))
        found.derive("tensor_parallel.sequence", cut > 1, f"{axis} axis")
    if sizes["cp"] > 1:
        rule = "context axis of MaxText"
        found.derive("context_parallel.communication", "all_gather", rule)
    _read_replicas(settings, sizes, rest)
    _read_batch(settings, sizes)
    if settings.text("remat_policy") == "full":
        settings.recomputed("remat_policy")


def _degree(settings: Settings, level: str, name: str) -> int:
    value = settings.integer(f"{level}_{name}_parallelism", minimum=-1)
    if value == 0:
        settings.wrong(f"{level}_{name}_parallelism", "-1, or 1 or more")
    usual = -1 if (level, name) in (("ici", "fsdp"), ("dcn", "data")) else 1
    return usual if value is None else value or 1


def _read_replicas(settings: Settings, sizes: dict[str, int], rest: str) -> None:
    """Data-parallel size, sharding and the order of the ranks."""
    found = settings.found
    place = settings.place("ici_data_parallelism", "dcn_data_parallelism")
    data, fsdp, ep = sizes["data"], sizes["fsdp"], sizes["ep"]
    if not rest:
        rule = f"data {data} x fsdp {fsdp} x expert {ep}"
        found.derive("parallelism.dp", data * fsdp * ep, rule, place)
    elif (parts := _parts(sizes, rest)) > 1:
        words = f"data {data}" if rest == "fsdp" else f"fsdp {fsdp} x expert {ep}"
        found.derive(DP_MULTIPLE, parts, words, place)
    both = (data > 1 or rest == "data") and (fsdp > 1 or rest == "fsdp")
    if sizes["pp"] > 1 and both:
        message = f"the pipeline lies between data and fsdp, {_NO_ORDER}"
        settings.refuse("ici_pipeline_parallelism", message)
    if ep > 1 and sizes["tp"] > 1:
        message = f"experts are numbered inside tensor ranks, {_NO_ORDER}"
        settings.refuse("ici_expert_parallelism", message)
    outside = sizes["pp"] > 1 and (data > 1 or rest == "data")
    order = "tp-cp-ep-pp-dp" if outside else "tp-cp-ep-dp-pp"
    found.derive("parallelism.order", order, "mesh_axes of MaxText")
    if ep > 1:
        found.derive("parallelism.etp", 1, "experts are not cut by tp")
    found.later(_shard, sizes, rest, place)
    found.later(bucket_of_a_layer)


def _parts(sizes: dict[str, int], rest: str) -> int:
    """Data ranks where fsdp takes the rest of the GPUs, else those of a shard."""
    return sizes["data"] if rest == "fsdp" else sizes["fsdp"] * sizes["ep"]


def _shard(found: Findings, sizes: dict[str, int], rest: str, place: Place) -> None:
    """Parameters are sharded over fsdp and expert ranks, replicated over data."""
    dp, cp = found.integer("parallelism.dp"), found.integer("parallelism.cp", 1)
    parts = _parts(sizes, rest)
    if not dp:
        return
    if dp % parts:
        found.problem("parallelism.dp", f"data or fsdp {parts} does not divide {dp}")
        return
    replicas = parts if rest == "fsdp" else dp // parts
    rule = f"data {replicas}, fsdp and expert {dp // replicas}"
    sharding = "zero3" if replicas == 1 else "ddp" if replicas == dp else "hsdp"
    found.derive("data_parallel.sharding", sharding, rule, place)
    if sharding == "hsdp":
        size = dp // replicas * cp
        found.derive("data_parallel.shard_size", size, f"{rule}, cp {cp}", place)


def _read_batch(settings: Settings, sizes: dict[str, int]) -> None:
    """``per_device_batch_size`` is of a GPU: a replica has that of all its GPUs."""
    key = "per_device_batch_size"
    each = settings.number(key)
    each = 12.0 if each is None else each
    steps = settings.integer("gradient_accumulation_steps") or 1
    pieces = 1
    if sizes["pp"] > 1:
        asked = settings.integer("num_pipeline_microbatches", minimum=-1)
        pieces = asked if asked and asked > 0 else sizes["pp"]
    gpus = sizes["tp"] * sizes["cp"] * sizes["pp"]
    whole = each * gpus / pieces
    if whole < 1 or whole != int(whole):
        settings.refuse(key, f"{each:g} x {gpus} GPUs of a replica is no whole batch")
        return
    rule = f"{key} {each:g} x {gpus} GPUs of a replica"
    settings.derive("micro_batch", int(whole), rule, key)
    rule = "gradient_accumulation_steps"
    settings.derive("micro_batches", steps * pieces, rule, key)
