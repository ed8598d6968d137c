"""NeMo-RL: the training job of a reinforcement learning run.

Sources: NVIDIA-NeMo/RL 7ea279ab, ``nemo_rl/models/policy/`` and
``nemo_rl/models/megatron/setup.py``. What ``generation`` says is inference.
"""

from __future__ import annotations

from placer.base.errors import InputError, Problem
from placer.documents.scalars import visible
from placer.formats.jobs import adapters, mcore
from placer.formats.jobs.findings import GLOBAL_BATCH, GPUS, Asked, Findings, Place
from placer.formats.jobs.fsdp import bucket_of_a_layer, shard
from placer.formats.jobs.hf import ask_for_model
from placer.formats.jobs.reading import of_yaml, resolved
from placer.formats.jobs.settings import Setting, Settings, reader

_AXES = {
    "parallelism.tp": "tensor_parallel_size",
    "parallelism.cp": "context_parallel_size",
}
_MOST_PARENTS = 20
_POLICY = "policy."
_MEGATRON, _DTENSOR = "policy.megatron_cfg.", "policy.dtensor_cfg."
_DDP = f"{_MEGATRON}distributed_data_parallel_config."


def _opened(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    values = _with_parents(text, source, asked, [])
    return Settings(found, resolved(values, asked), asked)


@reader(_opened)
def read(settings: Settings) -> None:
    """Take what a NeMo-RL configuration says, and those it is based on."""
    _read_batch(settings)
    if settings.flag(f"{_MEGATRON}enabled"):
        _read_megatron(settings)
        adapters.read_nemo_rl(settings, f"{_MEGATRON}peft.", megatron=True)
    elif settings.flag(f"{_DTENSOR}enabled"):
        _read_dtensor(settings)
        adapters.read_nemo_rl(settings, f"{_DTENSOR}lora_cfg.", megatron=False)
    else:
        settings.refuse("policy", "neither megatron_cfg nor dtensor_cfg is enabled")
    _read_gpus(settings)
    ask_for_model(settings, "policy.model_name")


def _with_parents(
    text: str, source: str, asked: Asked, seen: list[str]
) -> dict[str, Setting]:
    """Values of a file over those of the files that ``defaults`` names."""
    own = of_yaml(text, source, Findings(source), Asked()).values
    names = own.pop("defaults", None)
    merged: dict[str, Setting] = {}
    for name in [] if names is None else _listed(names.value):
        place = names.place if names else None
        included = asked.include(source, name)
        if included is None or included[1] in (*seen, source):
            why = "is not beside it" if included is None else "is based on itself"
            at = place or Place(source)
            raise InputError([Problem(f"{visible(name)} {why}", *at, "defaults")])
        if len(seen) >= _MOST_PARENTS:
            raise InputError([Problem("based on too many files", source)])
        parent = _with_parents(*included, asked, [*seen, source])
        merged = _over(merged, parent)
    return _over(merged, own)


def _over(below: dict[str, Setting], above: dict[str, Setting]) -> dict[str, Setting]:
    """One file's values over another's; a null takes what was under it away."""
    gone = tuple(f"{key}." for key, setting in above.items() if setting.value is None)
    kept = {k: v for k, v in below.items() if not (gone and k.startswith(gone))}
    return kept | above


def _listed(value: object) -> list[str]:
    names = value if isinstance(value, list) else [value]
    return [name for name in names if isinstance(name, str)]


def _read_batch(settings: Settings) -> None:
    found = settings.found
    settings.copy(GLOBAL_BATCH, "policy.train_global_batch_size")
    settings.copy("micro_batch", "policy.train_micro_batch_size")
    key = "policy.max_total_sequence_length"
    if settings.copy("sequence", key):
        found.notes.append(f"{key} is the longest sequence: most are shorter")
    for name in ("sequence_packing", "dynamic_batching"):
        settings.mention("micro-batches by tokens", f"{_POLICY}{name}.enabled")


def _read_megatron(settings: Settings) -> None:
    found = settings.found
    mcore.read_sizes(settings, _MEGATRON)
    mcore.ones(found, "default of NeMo-RL")
    if found.integer("parallelism.ep", 2) > 1:
        found.derive("parallelism.etp", 1, "default of NeMo-RL")
    elif found.has("parallelism.etp"):
        # It serves experts, and there are none to share out.
        del found.facts["parallelism.etp"]
    mcore.read_ddp(settings, _DDP, f"{_MEGATRON}optimizer.")
    again = settings.flag(f"{_MEGATRON}activation_checkpointing")
    mcore.read_rest(settings, _MEGATRON, recompute=bool(again))


def _read_dtensor(settings: Settings) -> None:
    """PyTorch's FSDP2 over all GPUs that tensor and context ranks leave."""
    found = settings.found
    settings.take(_AXES, _DTENSOR, (1, "default of NeMo-RL"))
    found.derive("parallelism.pp", 1, "FSDP2 has no pipeline")
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "mesh of NeMo-RL")
    if found.integer("parallelism.tp", 2) > 1:
        key = _DTENSOR + "sequence_parallel"
        settings.copy("tensor_parallel.sequence", key)
    place = settings.place(f"{_DTENSOR}enabled")
    found.later(shard, 1, False, place)
    found.later(bucket_of_a_layer)
    found.derive("bytes.gradient", 4, "FSDP2 reduces in fp32", place)
    if settings.flag(f"{_DTENSOR}activation_checkpointing"):
        settings.recomputed(f"{_DTENSOR}activation_checkpointing")


def _read_gpus(settings: Settings) -> None:
    """GPUs of the cluster, without those that only generate."""
    each = settings.integer("cluster.gpus_per_node")
    nodes = settings.integer("cluster.num_nodes")
    if not (each and nodes):
        return
    prefix = "policy.generation.colocated."
    apart = settings.flag(f"{prefix}enabled") is False
    taken = settings.integer(f"{prefix}resources.num_nodes") or 0
    if apart and 0 < taken < nodes:
        nodes -= taken
    elif apart:
        settings.not_modelled(f"{prefix}enabled", "GPUs that only generate")
    rule = f"{nodes} nodes x {each} GPUs"
    settings.derive(GPUS, each * nodes, rule, "cluster.num_nodes")
