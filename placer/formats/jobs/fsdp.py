"""What PyTorch's FSDP does, whoever configures it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from placer.formats.jobs.findings import Findings, Place
from placer.job.models import Model, expert_parameters, layer_parameters

_RULE = "FSDP over shard x cp"


def shard(found: Findings, replicate: int, keeps: bool, place: Place) -> None:
    """Derive how parameters are sharded over dp and cp, once dp is known.

    Replicas alone are plain data parallelism; shards alone ``zero3``; both ``hsdp``.
    A shard spans all context ranks (torchtitan, ``parallel_dims.py``; accelerate,
    ``parallelism_config.py``: the mesh ``dp_shard_cp``).
    """
    dp, cp = found.integer("parallelism.dp"), found.integer("parallelism.cp", 1)
    if not dp:
        return
    if dp % replicate:
        message = f"replicate {replicate} does not divide the data-parallel size {dp}"
        found.problem("parallelism.dp", message)
        return
    members = dp // replicate * cp
    if members == 1 and replicate > 1:
        found.derive("data_parallel.sharding", "ddp", "replicas without shards", place)
        return
    both = replicate > 1
    sharding = "hsdp" if both else "zero3"
    found.derive("data_parallel.sharding", sharding, _RULE, place)
    if found.text("data_parallel.sharding") not in ("zero3", "hsdp"):
        return
    if both:
        rule = f"dp_shard {dp // replicate} x cp {cp}"
        found.derive("data_parallel.shard_size", members, rule, place)
    if keeps:
        rule = "parameters are not resharded after the forward pass"
        found.derive("data_parallel.keep_parameters", True, rule, place)


def by_layer(found: Findings) -> None:
    """Derive that layers are gathered and reduced one by one, beside computing."""
    for key in ("overlap_reduce", "overlap_gather"):
        found.derive(f"data_parallel.{key}", True, "FSDP overlaps both")
    found.later(bucket_of_a_layer)


def bucket_of_a_layer(found: Findings) -> None:
    """Derive the bucket: FSDP gathers and reduces a layer at a time."""
    model = model_of(found)
    if model is None:
        return
    tp, ep = found.integer("parallelism.tp", 1), found.integer("parallelism.ep", 1)
    moe = model.moe_layers > 0
    routed = model.experts * expert_parameters(model) if moe else 0
    held = (layer_parameters(model, moe=moe) - routed) / tp
    held += routed / (ep * found.integer("parallelism.etp", tp))
    found.derive("data_parallel.bucket_parameters", max(round(held), 1), "a layer")


def model_of(found: Findings) -> Model | None:
    """The model that the facts say, None where they leave out what a layer needs."""
    known: dict[str, Any] = {"name": "", "ffn": 1, "vocab": 1}
    for item in fields(Model):
        fact = found.facts.get(f"model.{item.name}")
        if fact is not None:
            known[item.name] = fact.value
    known.setdefault("kv_heads", known.get("heads"))
    if known.get("experts"):
        known.setdefault("expert_ffn", known["ffn"])
        known.setdefault("moe_layers", known.get("layers"))
    if not {"layers", "hidden", "heads"} <= known.keys():
        return None
    if any(isinstance(v, str) for k, v in known.items() if k != "name"):
        return None
    return Model(**known)
