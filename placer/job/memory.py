"""The ``memory`` mapping of a job: what fills a GPU and its model cannot know."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from placer.base.units import parse_bytes

if TYPE_CHECKING:
    from placer.documents import Section
    from placer.job.model import Job

RecomputeName = Literal["none", "selective", "op", "full"]
RECOMPUTE: tuple[RecomputeName, ...] = get_args(RecomputeName)
MODULES = (
    "core_attn",
    "layernorm",
    "mla_up_proj",
    "mlp",
    "moe",
    "moe_act",
    "shared_experts",
)
# Modules that are part of another: who computes experts again computes these too.
PARTS = {"moe": ("moe_act", "shared_experts")}
METHODS = ("uniform", "block")
KERNELS = ("fused", "unfused")
# Bytes of an input as a product takes and keeps it. MXFP8 has a scale of one byte for
# 32 numbers (OCP Microscaling Formats 1.0, section 5), NVFP4 one for 16 (arXiv
# 2509.25149).
INPUT_BYTES = {"bf16": 2.0, "fp8": 1.0, "mxfp8": 1.0 + 1 / 32, "nvfp4": 0.5 + 1 / 16}
PRECISIONS = tuple(INPUT_BYTES)
# Which peak of a GPU products of each reach for.
PEAK_OF = {"bf16": "bf16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}


@dataclass(frozen=True)
class Memory:
    """What a job keeps in memory, beside what follows from its model.

    Attributes
    ----------
    recompute : str
        ``none``, ``selective`` (the modules), ``op`` (every second matrix product and
        all that is cheap) or ``full`` (layers, from their inputs).
    recompute_modules : tuple of str
        What ``selective`` computes again.
    recompute_method : str
        ``uniform``: inputs of every ``recompute_layers``-th layer are kept. ``block``:
        ``recompute_layers`` layers of each chunk are computed again, the rest are not.
    recompute_layers : int
    attention : str
        ``fused`` never stores the scores, ``unfused`` does.
    norm : str
        ``fused`` keeps its input alone, ``unfused`` a copy in FP32 and one between.
    dropout : bool
        Masks are kept.
    gemm : str
        Precision of the matrix products, in which their inputs are kept.
    gemm_layers : int
        How many layers have it; 0 means all. The others are bf16.
    parameter_bytes, gradient_bytes, optimizer_bytes : float or None
        Of a parameter; None follows from the sharding.
    keep_gathered : bool
        Inputs that tensor ranks gather are kept so, rather than gathered again.
    keep_outputs : bool
        What stages send and receive of all micro-batches stays for the step.
    logit_bytes : float
        Kept of a logit between forward and backward of the loss.
    micro_batch_group : int
        Micro-batches that a chunk runs in a row when stages are interleaved; 0 means
        the pipeline's size.
    expert_capacity : float
        Most tokens of an expert rank, in those of the mean; 0 sets no limit.
    activations : float or None, bytes
        Measured, instead of the model's.
    reserve : float or None, bytes
        Outside the framework's allocator: context, communicators.
    """

    recompute: str = "none"
    recompute_modules: tuple[str, ...] = ("core_attn",)
    recompute_method: str = "uniform"
    recompute_layers: int = 1
    attention: str = "fused"
    norm: str = "fused"
    dropout: bool = False
    gemm: str = "bf16"
    gemm_layers: int = 0
    parameter_bytes: float | None = None
    gradient_bytes: float | None = None
    optimizer_bytes: float | None = None
    keep_gathered: bool = False
    keep_outputs: bool = False
    logit_bytes: float = 6.0
    micro_batch_group: int = 0
    expert_capacity: float = 0.0
    activations: float | None = None
    reserve: float | None = None

    def recomputes(self, module: str) -> bool:
        """Whether a module is computed again in the backward pass, or all it is in."""
        if self.recompute != "selective":
            return False
        holders = (whole for whole, parts in PARTS.items() if module in parts)
        return not {module, *holders}.isdisjoint(self.recompute_modules)

    def to_document(self) -> dict[str, Any]:
        """What differs from the default, as in a job file."""
        usual = asdict(Memory())
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if value != usual[key]
        }


def gradient_bytes(job: Job) -> float:
    """Bytes of a parameter's gradient, as it is kept."""
    if job.memory.gradient_bytes is not None:
        return job.memory.gradient_bytes
    return 4.0 if job.data_parallel.shards_weights else max(job.bytes.gradient, 2.0)


def decode_memory(section: Section) -> Memory:
    """The mapping, checked; problems go to the section's document."""
    usual = Memory()
    recompute = section.choice("recompute", RECOMPUTE, usual.recompute)
    modules = _modules(section)
    if section.has("recompute_modules") and recompute != "selective":
        message = f"is for recompute selective only, not {recompute}"
        section.problem(message, "recompute_modules", "set recompute: selective")
    for key in ("recompute_method", "recompute_layers"):
        if section.has(key) and recompute != "full":
            message = f"is for recompute full only, not {recompute}"
            section.problem(message, key, "set recompute: full")
    if section.has("optimizer_instances"):
        hint = "write it there"
        section.problem("is a key of data_parallel", "optimizer_instances", hint)
    return Memory(
        recompute=recompute,
        recompute_modules=modules or usual.recompute_modules,
        recompute_method=section.choice("recompute_method", METHODS, "uniform"),
        recompute_layers=section.integer("recompute_layers", 1, maximum=10_000),
        attention=section.choice("attention", KERNELS, usual.attention),
        norm=section.choice("norm", KERNELS, usual.norm),
        dropout=section.boolean("dropout", usual.dropout),
        gemm=section.choice("gemm", PRECISIONS, usual.gemm),
        gemm_layers=section.integer("gemm_layers", 0, minimum=0, maximum=10_000),
        parameter_bytes=_number(section, "parameter_bytes"),
        gradient_bytes=_number(section, "gradient_bytes"),
        optimizer_bytes=_number(section, "optimizer_bytes"),
        keep_gathered=section.boolean("keep_gathered", usual.keep_gathered),
        keep_outputs=section.boolean("keep_outputs", usual.keep_outputs),
        logit_bytes=section.number("logit_bytes", usual.logit_bytes, maximum=64.0),
        micro_batch_group=section.integer("micro_batch_group", 0, minimum=0),
        expert_capacity=section.number("expert_capacity", 0.0, maximum=1e6),
        activations=_size(section, "activations"),
        reserve=_size(section, "reserve"),
    )


def _modules(section: Section) -> tuple[str, ...]:
    listed = section.items("recompute_modules")
    return tuple(item.choice(MODULES) for item in listed)


def _number(section: Section, key: str) -> float | None:
    """Bytes of a parameter; None when nothing is said."""
    return section.number(key, maximum=64.0) if section.has(key) else None


def _size(section: Section, key: str) -> float | None:
    return section.quantity(key, parse_bytes) if section.has(key) else None
