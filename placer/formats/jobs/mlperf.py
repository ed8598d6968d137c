"""MLPerf Training's ``config_*.sh``: variables of a submission, and their defaults.

Source: mlcommons/training_results_v5.0 0fdc28f0, NVIDIA's llama31_405b
(``conf/custom.yaml``, ``pretrain.py``); of v5.1 441d65f4 those and AMD's llama31_8b.
"""

from __future__ import annotations

import re

from placer.base.errors import Problem
from placer.base.naming import entry
from placer.documents.tree import visible
from placer.formats.jobs import adapters, core_rules
from placer.formats.jobs.findings import GLOBAL_BATCH, Asked, Findings, Place
from placer.formats.jobs.megatron.launches import read_world
from placer.formats.jobs.shell import Text, read_script
from placer.formats.jobs.shell.questions import ask, note_left_out
from placer.formats.jobs.shell.text import text_at
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
_NODES, _EACH = ("DGXNNODES", "NNODES"), ("DGXNGPU", "GPUS_PER_NODE")
# What a submission of Llama 2 70B with LoRA sets, and no other.
_LORA = "LORA_A2A", "LORA_DIM", "LORA_RANK", "LORA_ALPHA"
_MODELS = {"8b": "llama3.1-8b", "405b": "llama3.1-405b"}
_ASSUMED = Place(f"{_CUSTOM} of v5.0")  # where defaults stand that no file gives
_LEAST_BUCKET = 1_000_000
_SEQUENCE = 8192


class _Variables:
    """Variables at the end of the scripts, with the defaults of ``custom.yaml``."""

    def __init__(self, found: Findings, given: dict[str, Text], asked: Asked) -> None:
        self.found = found
        self.asked = asked
        self.given = given
        self.defaults: dict[str, Text] = {}

    def get(self, *names: str) -> Text | None:
        """The first of these that is set, else the first default."""
        for name in names:
            given = self.asked.setting(name)
            if given is not None:
                return text_at(given, Place(entry("settings", name)))
        for values in (self.given, self.defaults):
            for name in names:
                if name in values and values[name].text not in ("", "null", "None"):
                    return values[name]
                if name in values:
                    return None
        return None

    def integer(self, key: str, *names: str) -> int | None:
        """An integer, read as a fact; None, with a question, where it is open."""
        text = self.closed(key, *names)
        if text is None:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", text.text) or int(text.text) < 1:
            message = f'{names[0]}: expected a number, got "{visible(text.text)}"'
            self.found.problems.append(Problem(message, *text.place, key))
            return None
        value = int(text.text)
        if text.place == _ASSUMED:
            self.found.assume(
                key, value, f"{names[0]} of v5.0, as {_CUSTOM} is missing"
            )
        else:
            self.found.read(key, value, text.place)
        return value

    def closed(self, key: str, *names: str) -> Text | None:
        """A text as `get`; None, with a question, where it is open."""
        text = self.get(*names)
        if text is None or not text.is_open:
            return text
        ask(self.found, key, names[0], text)
        return None

    def flag(self, *names: str, key: str = "") -> tuple[bool, Place]:
        """Whether a variable is true, and where that stands."""
        text = self.closed(key, *names)
        if text is None:
            return False, Place(self.found.source)
        return text.text.lower() in ("true", "1"), text.place


def read(text: str, source: str, asked: Asked) -> Findings:
    """Findings of a submission's configuration and what it sources."""
    script = read_script(text, source, asked)
    found = Findings(source)
    note_left_out(found, script)
    variables = _Variables(found, script.variables, asked)
    _defaults(variables, asked)
    _axes(found, variables)
    each, nodes = variables.get(*_EACH), variables.get(*_NODES)
    if each is not None and nodes is not None:
        read_world(found, each, nodes, asked)
    _batch(found, variables)
    _overlaps(found, variables)
    _model(found, variables)
    segment = variables.get("SEGMENT")
    if segment is not None and segment.text.isdecimal():  # an open one decides nothing
        found.notes.append(
            f"SEGMENT {segment.text[:9]}: so many nodes lie in one domain; a job says "
            "it as require"
        )
    found.rules.append(_derive)
    return found


def _defaults(variables: _Variables, asked: Asked) -> None:
    """Defaults of the variables, and the sequence, from the file beside the script."""
    found = variables.found
    included = asked.include(found.source, _CUSTOM)
    nvidia = any(name in variables.given for name in ("DGXNNODES", "MINIBS"))
    if included is None:
        stages = variables.given.get("PIPELINE_MODEL_PARALLEL")
        large = nvidia and stages is not None and stages.text != "1"
        if stages is not None and stages.is_open:
            large = False  # asked for
        usual = (_USUAL if nvidia else {}) | (_USUAL_405B if large else {})
        variables.defaults = {n: text_at(v, _ASSUMED) for n, v in usual.items()}
        if large or not nvidia:
            found.assume("sequence", _SEQUENCE, "of MLPerf's Llama 3.1")
        return
    text, shown = included
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        for match in _DEFAULT.finditer(line):
            place = Place(shown, number, match.start(2) + 1)
            variables.defaults.setdefault(match[1], text_at(match[2], place))
        length = re.match(r"\s*encoder_seq_length:\s*([0-9]{1,9})\s*(?:#|$)", line)
        if length:
            place = Place(shown, number, length.start(1) + 1)
            found.read("sequence", int(length[1]), place)


def _axes(found: Findings, variables: _Variables) -> None:
    for key, names in _SIZES.items():
        is_axis = key.startswith("parallelism.") and key != "parallelism.etp"
        if variables.integer(key, *names) is None and is_axis:
            found.derive(key, 1, "not set")
    if variables.integer("parallelism.vp", "INTERLEAVED_PIPELINE") is None:
        found.derive("parallelism.vp", 1, "INTERLEAVED_PIPELINE is not set")
    mapped, place = variables.flag("TP_PP_DP_MAPPING")
    core_rules.order(found, place if mapped else None)
    for key, name in (("embedding", "ASYM_PP_EMBED"), ("loss", "ASYM_PP_LOSS")):
        counts, place = variables.flag(name)
        if counts:
            found.read(f"stages.{key}", 1, place)


def _batch(found: Findings, variables: _Variables) -> None:
    """``MINIBS`` counts the sequences of a replica, ``GBS`` those of all."""
    if variables.get("GBS", "GLOBAL_BATCH_SIZE") is not None:
        variables.integer(GLOBAL_BATCH, "GBS", "GLOBAL_BATCH_SIZE")
        return
    replica = variables.integer("replica_batch", "MINIBS")
    fact = found.facts.pop("replica_batch", None)
    one = found.integer("micro_batch")
    if replica is None or fact is None or not one:
        return
    if replica % one:
        message = f"MINIBS {replica} is no multiple of MICRO_BATCH_SIZE {one}"
        found.problems.append(Problem(message, *fact.place, "micro_batches"))
        return
    rule = f"MINIBS {replica} / micro_batch {one}"
    found.derive("micro_batches", replica // one, rule, fact.place)


def _overlaps(found: Findings, variables: _Variables) -> None:
    for key, name in _FLAGS.items():
        is_on, place = variables.flag(name, key=key)
        if variables.get(name) is None:
            found.derive(key, False, f"{name} is not set")
        elif place == _ASSUMED:
            found.assume(key, is_on, f"{name} of v5.0, as {_CUSTOM} is missing")
        else:
            found.read(key, is_on, place)
    sharded, place = variables.flag("USE_DIST_OPTIMIZER")
    sharding = "zero1" if sharded else "ddp"
    if place == _ASSUMED:
        found.assume("data_parallel.sharding", sharding, "as in v5.0")
    elif variables.get("USE_DIST_OPTIMIZER") is not None:
        found.read("data_parallel.sharding", sharding, place)
    else:
        found.assume("data_parallel.sharding", "zero1", "the distributed optimizer")
    found.derive("bytes.activation", 2, "bf16 between the products")
    found.derive("bytes.gradient", 2, "gradients are reduced in bf16")
    _precision(found, variables)
    # AMD's name is the other one.
    gather, place = variables.flag("FP8_PARAM_GATHER", "FP8_PARAMS")
    if gather:
        found.read("bytes.parameter_gather", 1, place)
    else:
        found.derive("bytes.parameter_gather", 2, "no FP8_PARAM_GATHER")
    key = "data_parallel.bucket_parameters"
    bucket = variables.closed(key, "BUCKET_SIZE")
    if bucket and bucket.text.isdecimal() and int(bucket.text[:13]) >= _LEAST_BUCKET:
        found.read(key, int(bucket.text[:13]), bucket.place)
    p2p, _ = variables.flag("OVERLAP_P2P_COMM")
    core_rules.messages(found, overlap=p2p)


def _precision(found: Findings, variables: _Variables) -> None:
    """FP4 where it is on, else FP8 and its recipe."""
    for name in ("FP4", "FP8"):
        is_on, place = variables.flag(name)
        if is_on:
            recipe = variables.closed("memory.gemm", f"{name}_RECIPE")
            text = recipe.text if recipe else ""
            core_rules.precision(found, name.lower(), text, place)
            return


def _model(found: Findings, variables: _Variables) -> None:
    """The shape that the benchmark fixes."""
    key = "adapters.rank"
    lora = variables.closed(key, *_LORA)
    if lora is not None:
        rank = variables.closed(key, "LORA_DIM", "LORA_RANK")
        adapters.read_mlperf(found, rank.text if rank else "16", lora.place)
    size = variables.closed("model.name", "MODEL_SIZE", "SIZE")
    name = _MODELS.get(size.text.lower()) if size else None
    if size is None or name is None:
        return
    model = read_model(name)
    rule = f"MODEL_SIZE {size.text} is {name}"
    found.derive("model.name", name, rule, size.place)
    for key in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "gated"):
        found.derive(f"model.{key}", getattr(model, key), rule, size.place)
    found.derive("model.tied_embeddings", model.tied_embeddings, rule, size.place)
    layers = variables.closed("model.layers", "OVERWRITTEN_NUM_LAYERS")
    if layers is not None and layers.text.isdecimal() and int(layers.text[:5]):
        found.read("model.layers", int(layers.text[:5]), layers.place)


def _derive(found: Findings) -> None:
    """What follows from sizes, and what Megatron-Core refuses."""
    core_rules.buckets(found)
    core_rules.sequence_parallel(found)
    core_rules.stages(found)
    one, dp = found.integer("micro_batch"), found.integer("parallelism.dp")
    batch = found.integer("micro_batches") * one * dp
    if batch:
        found.derive(GLOBAL_BATCH, batch, f"micro-batches x micro_batch x dp {dp}")
