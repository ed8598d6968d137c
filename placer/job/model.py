"""The job: parallelism, what it sends, what it requires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from placer.assumed import Assumption
from placer.base.loading import Shown
from placer.documents.keys import (
    BANDWIDTH,
    TEXT,
    TIME,
    Key,
    above_zero,
    also,
    integer,
    key,
    list_of,
    map_of,
    number,
    special,
)
from placer.documents.records import nested
from placer.job.adapters import Adapters
from placer.job.axes import AXES, Parallelism
from placer.job.memory import Memory
from placer.job.models import Model
from placer.job.parallel import (
    Collectives,
    ContextParallel,
    DataParallel,
    ElementBytes,
    EndStages,
    ExpertParallel,
    Overlap,
    TensorParallel,
)
from placer.job.roles import Role, Transfer
from placer.job.rules import Rules
from placer.job.started import Started
from placer.job.traffic import Flows, Group, RankTraffic

WEIGHTED_AXES = (*AXES, "edp")


# Kernels of attention on H100: cuDNN reaches 600 and 518 TFLOP/s forward and backward
# (arXiv 2407.08608, figures 5 and 6), 529 of 600 with a causal mask. 12 FLOPs take
# 4/600 + 10/518: 462 TFLOP/s, 410 so; products sustain 520 to 530: 0.78 to 0.88.
ATTENTION_RATE = 0.83


@dataclass(frozen=True)
class Compute:
    """Time of the work itself; give a micro-batch time or a rate."""

    micro_batch_time: float = key(
        above_zero(TIME),
        "one micro-batch on the slowest pipeline stage, all chunks, forward and "
        "backward, without exposed communication",
        0.0,
        absent="",
        unsaid=True,
    )
    tflops_per_gpu: float = key(
        above_zero(number(0.0, 1e9)),
        "or: sustained rate of matrix products, 10¹² FLOP/s; the time then follows "
        "from the model",
        0.0,
        absent="",
        unsaid=True,
    )
    log = Key(
        TEXT,
        "or: the log of a run of this job; its median step is shared out over the "
        "micro-batches and the bubble of stages that differ, so that exposed "
        "communication counts as work",
        "",
        absent="",
    )
    fixed_time: float | None = key(
        TIME,
        "what a step pays once, whatever the placement; where it is unknown a score "
        "has none, and `tune`, `sweep` and a calibration that cannot tell it assume "
        "60 ms",
        None,
        absent="unknown",
    )
    step_error: float = key(
        number(0.0, 1000.0),
        "how far a step may lie from its prediction, as a share of it, with 95 % "
        "confidence; `placer calibrate` gives it, 0 means unknown",
        0.0,
        newer=True,
    )
    attention_rate: float = key(
        also(
            number(0.0, 10.0),
            lambda rate: rate >= 0.01,
            "must be 0.01 or more",
            minimum=0.01,
        ),
        "rate of attention proper, in that of matrix products",
        ATTENTION_RATE,
        newer=True,
    )
    memory_bandwidth: float = key(
        BANDWIDTH,
        "rate of the GPU's memory, at which routed experts' weights, norms and all "
        "else that multiplies nothing pass; `tune` and `sweep` count it apart from "
        "products",
        0.0,
        absent="0.83 of the machine's",
        newer=True,
    )
    multiprocessors: int = key(
        integer(0, 10**6),
        "of a GPU (A100: 108), which products fill in waves of tiles; without it "
        "`tune` and `sweep` judge products by the time that they take at the peak",
        0,
        absent="unknown",
        newer=True,
    )
    peak_tflops: float = key(
        number(0.0, 1e9),
        "what a GPU multiplies at the most in the precision of the products, 10¹² "
        "FLOP/s (A100: 312): products that take little time at it use a GPU less well",
        0.0,
        absent="the machine's",
        newer=True,
    )
    output_tflops: float = key(
        number(0.0, 1e9),
        "rate of the output layer, 10¹² FLOP/s, where layers are mixtures or multiply "
        "in FP8 or FP4",
        0.0,
        absent="0.78 of the machine's peak in BF16",
        newer=True,
    )

    @property
    def fixed_s(self) -> float:
        """The fixed time; 0 where it is not known."""
        return self.fixed_time or 0.0


def _groups_schema() -> dict[str, Any]:
    file = {"description": "A file whose one key is groups.", **TEXT.schema()}
    by_file = {
        "type": "object",
        "properties": {"file": file},
        "required": ["file"],
        "additionalProperties": False,
    }
    return {"anyOf": [list_of(nested(Group)).schema(), by_file]}


def _weights_schema() -> dict[str, Any]:
    weights = dict.fromkeys(WEIGHTED_AXES, number().schema())
    return {"type": "object", "properties": weights, "additionalProperties": False}


@dataclass(frozen=True, eq=False, repr=False)
class Job(Shown):
    """A training job, validated.

    Attributes
    ----------
    require : mapping of str to str
        Axis (or custom group) -> tier: every group of it lies in one domain of the
        tier; ``ep/even`` in equal parts.
    roles, transfers : tuple of Role, tuple of Transfer
        Of a workload: its ranks are those of its roles, one after the other, and
        ``traffic`` is what its transfers come to.
    sha256 : str
        Digest of the job's content.
    """

    name: str = key(TEXT, "name of the job")
    parallelism: Parallelism = key(
        nested(Parallelism),
        "sizes of the axes. A job of `groups` or `traffic` alone may leave it out: "
        "ranks go up to the highest that these name",
        absent="required",
    )
    model: Model | None = key(
        special(lambda: {"anyOf": [TEXT.schema(), nested(Model).schema()]}),
        "a model preset, or the model's shape",
        None,
    )
    sequence: int = key(
        integer(1, 10**8),
        "tokens of a sequence; required with `model`",
        1,
        absent="`1`",
    )
    micro_batch: int = key(integer(1, 10**6), "sequences of a micro-batch", 1)
    micro_batches: int = key(
        integer(1, 10**6), "micro-batches of a data-parallel replica and step", 1
    )
    bytes: ElementBytes = key(
        nested(ElementBytes), "bytes of an element on the wire", ElementBytes
    )
    data_parallel: DataParallel = key(
        nested(DataParallel),
        "how gradients and parameters are kept in step",
        DataParallel,
    )
    overlap: Overlap = key(
        nested(Overlap), "which axes' traffic hides behind compute", Overlap
    )
    collectives: Collectives = key(
        nested(Collectives), "algorithms of all-reduces and gathers", Collectives
    )
    tensor_parallel: TensorParallel = key(
        nested(TensorParallel), "how layers are cut over `tp`", TensorParallel
    )
    context_parallel: ContextParallel = key(
        nested(ContextParallel),
        "how attention sees the whole sequence over `cp`",
        ContextParallel,
    )
    expert_parallel: ExpertParallel = key(
        nested(ExpertParallel),
        "how tokens reach their experts over `ep`",
        ExpertParallel,
    )
    stages: EndStages = key(
        nested(EndStages), "how layers are spread over pipeline chunks", EndStages
    )
    compute: Compute = key(
        nested(Compute), "time of the work itself; required with `model`", Compute
    )
    require: Mapping[str, str] = key(
        map_of(TEXT),
        "hard rule, axis or group: tier. Every group of the axis lies in one domain "
        "of the tier",
        dict,
    )
    even = Key(
        map_of(TEXT),
        "hard rule, axis or group: tier. Every group lies in equal parts, one in "
        "each domain of the tier that it touches",
        dict,
    )
    launcher: str = key(
        special(lambda: nested(Started).schema()),
        "what ranks the launcher can express, and what starts the job today",
        "node-contiguous",
        absent="",
    )
    started: Started | None = None
    groups: tuple[Group, ...] = key(
        special(_groups_schema), "communicators of your own", ()
    )
    traffic: RankTraffic | None = key(nested(Flows), "bytes between ranks", None)
    adapters: Adapters | None = key(
        nested(Adapters), "what alone is trained, where the model stays as it is", None
    )
    host_time: float | None = key(
        TIME,
        "what the host takes for a layer of a micro-batch, forward and backward: "
        "`0s` where graphs hold the whole iteration. Layers of a mixture wait for "
        "it, 2.5 ms where it is unknown; others take no less",
        None,
        absent="unknown",
    )
    memory: Memory = key(
        nested(Memory), "what fills a GPU and the other keys do not say", Memory
    )
    weights: Mapping[str, float] = key(
        special(_weights_schema), "axis: weight, for hop cost only", dict
    )
    rules: Rules = key(
        nested(Rules), "pins, nodes to avoid, replicas a domain, spare nodes", Rules
    )
    description: str = key(TEXT, "one line for `placer job list`", "")
    sources: tuple[str, ...] = key(list_of(TEXT), "where each figure comes from", ())
    assumed: tuple[Assumption, ...] = key(
        list_of(nested(Assumption)), "what no source says, as placer writes it", ()
    )
    roles: tuple[Role, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    sha256: str = ""

    together: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {"required": ["model", "parallelism"]},
            {"required": ["weights", "parallelism"]},
            {"required": ["groups"]},
            {"required": ["traffic"]},
        ],
        "dependentRequired": {"model": ["sequence", "compute"]},
    }

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.parallelism.world_size

    @property
    def tokens(self) -> float:
        """Tokens of a micro-batch on one context rank."""
        return self.sequence / self.parallelism.cp * self.micro_batch

    @property
    def norm_tokens(self) -> float:
        """Those of them that the norms of one tensor rank work on."""
        if not self.tensor_parallel.sequence:
            return self.tokens
        return self.tokens / self.parallelism.tp

    @property
    def has_time(self) -> bool:
        """Whether it says what a step, or traffic of its own, takes."""
        return bool(self.model or self.groups or self.traffic or self.roles)

    @property
    def expert_copies(self) -> int:
        """Experts of a token that is sent once for several; 0 if once for each."""
        is_once = self.expert_parallel.dispatch == "deduplicated"
        return self.model.top_k if is_once and self.model is not None else 0

    @property
    def names_ranks(self) -> bool:
        """Whether it names ranks by number, which another order would change."""
        return bool(self.rules.pin or self.traffic or self.roles) or any(
            group.ranks != (tuple(range(self.world_size)),) for group in self.groups
        )
