"""MLPerf Training's ``config_*.sh``: variables of a submission, and their defaults.

Source: mlcommons/training_results_v5.0 0fdc28f0, NVIDIA's llama31_405b
(``conf/custom.yaml``, ``pretrain.py``); of v5.1 441d65f4 those and AMD's llama31_8b.
"""

from __future__ import annotations

import re

from placer.base.errors import Problem
from placer.formats.jobs import adapters, mcore, mcore_rules
from placer.formats.jobs.findings import (
    GLOBAL_BATCH,
    GPUS,
    Asked,
    Findings,
    Place,
    Unknown,
)
from placer.formats.jobs.settings import Setting, Settings, Usual, plain_value
from placer.formats.jobs.shell import read_script
from placer.formats.jobs.shell.questions import note_left_out, setting_of
from placer.job.models import read_model

_CUSTOM = "conf/custom.yaml"
_DEFAULT = re.compile(r"\$\{oc\.env:([A-Z][A-Z0-9_]*),([^${}]*)\}")
# What v5.0's conf/custom.yaml has, for submissions without it.
_USUAL = {
    "DGXNNODES": "1",
    "DGXNGPU": "8",
    "SEQ_PARALLEL": "True",
    "USE_DIST_OPTIMIZER": "True",
    "OVERLAP_GRAD_REDUCE": "True",
    "OVERLAP_PARAM_GATHER": "True",
    "OVERLAP_P2P_COMM": "True",
}
# Of no use to the other benchmarks, which have no pipeline.
_USUAL_405B = {
    "INTERLEAVED_PIPELINE": "12",
    "CONTEXT_PARALLEL": "4",
    "MODEL_SIZE": "405b",
}
# Job key, and the names of its variable: NVIDIA's, then AMD's.
_SIZES = {
    "parallelism.tp": ("TENSOR_MODEL_PARALLEL", "TP"),
    "parallelism.pp": ("PIPELINE_MODEL_PARALLEL", "PP"),
    "parallelism.cp": ("CONTEXT_PARALLEL", "CP"),
    "parallelism.ep": ("EXPERT_PARALLEL", "EXPERT_MODEL_PARALLEL", "EP"),
    "parallelism.etp": ("EXPERT_TENSOR_PARALLEL", "ETP"),
    "micro_batch": ("MICRO_BATCH_SIZE", "MBS"),
}
_FLAGS = {
    "tensor_parallel.sequence": "SEQ_PARALLEL",
    "overlap.tp": "TP_COMM_OVERLAP",
    "data_parallel.overlap_reduce": "OVERLAP_GRAD_REDUCE",
    "data_parallel.overlap_gather": "OVERLAP_PARAM_GATHER",
}
_BATCH = ("GBS", "GLOBAL_BATCH_SIZE")
_NODES, _EACH = ("DGXNNODES", "NNODES"), ("DGXNGPU", "GPUS_PER_NODE")
# What a submission of Llama 2 70B with LoRA sets, and no other.
_LORA = "LORA_A2A", "LORA_DIM", "LORA_RANK", "LORA_ALPHA"
_MODELS = {"8b": "llama3.1-8b", "405b": "llama3.1-405b"}
_ASSUMED = Place(f"{_CUSTOM} of v5.0")  # where defaults stand that no file gives
_SHAPE = (
    *("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "gated"),
    "tied_embeddings",
)
_LEAST_BUCKET = 1_000_000
_SHARDS, _MODEL = "USE_DIST_OPTIMIZER", ("MODEL_SIZE", "SIZE")
_SEQUENCE = 8192


def _take(
    variables: Settings, key: str, *names: str, usual: Usual | None = None
) -> None:
    """Take a fact of a job; ``usual`` where it is not told."""
    found = variables.found
    read = variables.flag if key in _FLAGS else variables.integer
    value = read(*names, fact=key)
    if value is None:
        if usual is not None:
            found.derive(key, *usual)
    elif variables.place(*names) == _ASSUMED:
        found.assume(key, value, f"{names[0]} of v5.0, as {_CUSTOM} is missing")
    else:
        found.read(key, value, variables.place(*names))


def read(text: str, source: str, asked: Asked) -> Findings:
    """Findings of a submission's configuration and what it sources."""
    script = read_script(text, source, asked)
    found = Findings(source)
    note_left_out(found, script)
    given = {name: setting_of(text) for name, text in script.variables.items()}
    defaults = _defaults(found, given, asked)
    for names in (*_SIZES.values(), _EACH, _NODES, _BATCH, _MODEL):
        if any(name in given for name in names):  # no other name's default counts
            defaults = {n: v for n, v in defaults.items() if n not in names}
    variables = Settings(found, defaults | given, asked)
    _axes(found, variables)
    _world(found, variables)
    _batch(found, variables)
    _overlaps(found, variables)
    _model(found, variables)
    segment = variables.get("SEGMENT")
    if segment is not None and isinstance(segment[1].value, int):
        found.notes.append(  # an open one decides nothing
            f"SEGMENT {segment[1].value}: so many nodes lie in one domain; a job says "
            "it as require"
        )
    found.later(_derive)
    return found


def _defaults(
    found: Findings, given: dict[str, Setting], asked: Asked
) -> dict[str, Setting]:
    """Defaults of the variables, and the sequence, from the file beside the script."""
    included = asked.include(found.source, _CUSTOM)
    nvidia = any(name in given for name in ("DGXNNODES", "MINIBS"))
    defaults: dict[str, Setting] = {}
    if included is None:
        stages = given.get("PIPELINE_MODEL_PARALLEL")
        told = stages is not None and not isinstance(stages.value, Unknown)
        large = nvidia and stages is not None and told and stages.value != 1
        usual = (_USUAL if nvidia else {}) | (_USUAL_405B if large else {})
        if large or not nvidia:
            found.assume("sequence", _SEQUENCE, "of MLPerf's Llama 3.1")
        return {n: Setting(plain_value(v), _ASSUMED) for n, v in usual.items()}
    text, shown = included
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        for match in _DEFAULT.finditer(line):
            place = Place(shown, number, match.start(2) + 1)
            defaults.setdefault(match[1], Setting(plain_value(match[2]), place))
        length = re.match(r"\s*encoder_seq_length:\s*([0-9]{1,9})\s*(?:#|$)", line)
        if length:
            place = Place(shown, number, length.start(1) + 1)
            found.read("sequence", int(length[1]), place)
    return defaults


def _world(found: Findings, variables: Settings) -> None:
    """The GPUs of a node times the nodes; asked for where they are open."""
    each, nodes = variables.get(*_EACH), variables.get(*_NODES)
    if each is None or nodes is None:
        return
    is_open = any(isinstance(one[1].value, Unknown) for one in (each, nodes))
    if is_open and variables.asked and variables.asked.gpus is not None:
        return
    gpus, hosts = (variables.integer(*names, fact=GPUS) for names in (_EACH, _NODES))
    if gpus and hosts:
        found.read(GPUS, gpus * hosts, nodes[1].place)


def _axes(found: Findings, variables: Settings) -> None:
    for key, names in _SIZES.items():
        is_axis = key.startswith("parallelism.") and key != "parallelism.etp"
        _take(variables, key, *names, usual=(1, "not set") if is_axis else None)
    name = "INTERLEAVED_PIPELINE"
    _take(variables, "parallelism.vp", name, usual=(1, f"{name} is not set"))
    mcore.order(variables, "TP_PP_DP_MAPPING")
    for key, name in (("embedding", "ASYM_PP_EMBED"), ("loss", "ASYM_PP_LOSS")):
        if variables.flag(name):
            found.read(f"stages.{key}", 1, variables.place(name))


def _batch(found: Findings, variables: Settings) -> None:
    """``MINIBS`` counts the sequences of a replica, ``GBS`` those of all."""
    if variables.get(*_BATCH) is not None:
        _take(variables, GLOBAL_BATCH, *_BATCH)
        return
    replica = variables.integer("MINIBS", fact="micro_batches")
    one = found.integer("micro_batch")
    if replica is None or not one:
        return
    place = variables.place("MINIBS")
    if replica % one:
        message = f"MINIBS {replica} is no multiple of MICRO_BATCH_SIZE {one}"
        found.problems.append(Problem(message, *place, "micro_batches"))
        return
    rule = f"MINIBS {replica} / micro_batch {one}"
    found.derive("micro_batches", replica // one, rule, place)


def _overlaps(found: Findings, variables: Settings) -> None:
    for key, name in _FLAGS.items():
        _take(variables, key, name, usual=(False, f"{name} is not set"))
    key = "data_parallel.sharding"
    sharded, place = variables.flag(_SHARDS, fact=key), variables.place(_SHARDS)
    sharding = "ddp" if sharded is False else "zero1"
    if sharded is None or place == _ASSUMED:
        why = "the distributed optimizer" if sharded is None else "as in v5.0"
        found.assume(key, sharding, why)
    else:
        found.read(key, sharding, place)
    found.derive("bytes.activation", 2, "bf16 between the products")
    found.derive("bytes.gradient", 2, "gradients are reduced in bf16")
    # FP4 where it is on, else FP8 and its recipe.
    if name := next(filter(variables.flag, ("FP4", "FP8")), ""):
        recipe, place = variables.text(f"{name}_RECIPE"), variables.place(name)
        mcore_rules.precision(found, name.lower(), recipe, place)
    # AMD's name is the other one.
    gather = "FP8_PARAM_GATHER", "FP8_PARAMS"
    if variables.flag(*gather):
        found.read("bytes.parameter_gather", 1, variables.place(*gather))
    else:
        found.derive("bytes.parameter_gather", 2, "no FP8_PARAM_GATHER")
    key = "data_parallel.bucket_parameters"
    bucket = variables.integer("BUCKET_SIZE", minimum=0, maximum=10**13, fact=key)
    if bucket and bucket >= _LEAST_BUCKET:
        found.read(key, bucket, variables.place("BUCKET_SIZE"))
    mcore_rules.messages(found, overlap=bool(variables.flag("OVERLAP_P2P_COMM")))


def _model(found: Findings, variables: Settings) -> None:
    """The shape that the benchmark fixes."""
    if variables.value(*_LORA) is not None:
        rank = variables.text("LORA_DIM", "LORA_RANK") or "16"
        adapters.read_mlperf(found, rank, variables.place(*_LORA))
    size, place = variables.text(*_MODEL), variables.place(*_MODEL)
    name = _MODELS.get(size.lower())
    if name is None:
        return
    model = read_model(name)
    rule = f"MODEL_SIZE {size} is {name}"
    found.derive("model.name", name, rule, place)
    for key in _SHAPE:
        found.derive(f"model.{key}", getattr(model, key), rule, place)
    name, key = "OVERWRITTEN_NUM_LAYERS", "model.layers"
    if layers := variables.integer(name, minimum=0, fact=key):
        found.read(key, layers, variables.place(name))


def _derive(found: Findings) -> None:
    """What follows from sizes, and what Megatron-Core refuses."""
    mcore_rules.buckets(found)
    mcore_rules.sequence_parallel(found)
    mcore_rules.stages(found)
    one, dp = found.integer("micro_batch"), found.integer("parallelism.dp")
    batch = found.integer("micro_batches") * one * dp
    if batch:
        found.derive(GLOBAL_BATCH, batch, f"micro-batches x micro_batch x dp {dp}")
