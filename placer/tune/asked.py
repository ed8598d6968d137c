"""What is wrong with what a search over degrees is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import inf

from placer.base.errors import Problem
from placer.base.naming import named
from placer.documents import known_hint
from placer.job.memory import MODULES
from placer.job.models import Model
from placer.topology.model import Topology
from placer.tune.choice import JOINED, SIZES
from placer.tune.frameworks import FRAMEWORKS
from placer.tune.space import Space

_WHOLE = ("none", "full", "op")
_OF_EXPERTS = ("moe", "moe_act", "shared_experts")


def problems(
    space: Space, machine: Topology, memory: float, model: Model
) -> Iterator[Problem]:
    """Problems of the space for a model and the memory of a GPU, in bytes."""
    for key in SIZES:
        for value in getattr(space, key):
            if value < 1:
                yield Problem(f"expected at least 1, got {value}", key=key)
    if space.global_batch < 1:
        message = f"expected at least 1, got {space.global_batch}"
        yield Problem(message, key="global_batch")
    for count in space.gpus:
        if count < 1:
            yield Problem(f"expected at least 1, got {count}", key="gpus")
        elif count > machine.num_gpus:
            has = f"{machine.name} has {machine.num_gpus:,} that can be used"
            hint = f"ask for fewer, or leave {named('gpus')} out for as many as help"
            message = f"{count:,} GPUs are asked for, and {has}"
            yield Problem(message, key="gpus", hint=hint)
    if not 0 < memory < inf:
        hint = f"say what a GPU has: {named('memory', '80GB')}"
        yield Problem(f"expected bytes, got {memory:g}", key="memory", hint=hint)
    yield from unknown_framework(space.framework)
    yield from _unknown_names(space)
    yield from _not_there(space, model)


def unknown_framework(name: str) -> Iterator[Problem]:
    """A problem where no framework has the name."""
    if name not in FRAMEWORKS:
        yield _unknown("framework", name, FRAMEWORKS)


def _unknown_names(space: Space) -> Iterator[Problem]:
    framework = FRAMEWORKS.get(space.framework)
    for name in space.sharding:
        if framework and name not in framework.shardings:
            yield _unknown("sharding", name, framework.shardings, space.framework)
    for name in space.recompute:
        modules = [] if name in _WHOLE else name.split(JOINED)
        strange = [module for module in modules if module not in MODULES]
        for module in strange:
            yield _unknown("recompute", module, (*_WHOLE, *MODULES))
        # Only Megatron has modules to choose from.
        if framework is None or strange or "cheap" in framework.recomputes:
            continue
        if name not in framework.recomputes:
            yield _unknown("recompute", name, framework.recomputes, space.framework)


def _not_there(space: Space, model: Model) -> Iterator[Problem]:
    """What is asked for of experts and latents that the model lacks."""
    if not model.experts:
        for key in ("ep", "etp"):
            if any(size > 1 for size in getattr(space, key)):
                hint = f"leave {named(key)} out"
                yield Problem("the model has no experts", key=key, hint=hint)
    lacking = dict.fromkeys(_OF_EXPERTS, "experts") if not model.experts else {}
    if not model.kv_lora_rank:
        lacking["mla_up_proj"] = "latent attention"
    for name in space.recompute:
        for module in name.split(JOINED):
            if module in lacking:
                message = f"{module}: the model has no {lacking[module]}"
                hint = f"leave it out of {named('recompute')}"
                yield Problem(message, key="recompute", hint=hint)


def _unknown(key: str, name: str, known: Collection[str], of: str = "") -> Problem:
    hint = known_hint(name, known)
    owner = f" of {of}" if of else ""
    return Problem(f'no {key}{owner} "{name}"', key=key, hint=hint)
