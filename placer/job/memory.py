"""The ``memory`` mapping of a job: what fills a GPU and its model cannot know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from placer.documents import Section
from placer.documents.keys import BOOLEAN, SIZE, integer, key, list_of, number, one_of
from placer.documents.records import read

if TYPE_CHECKING:
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
    """What a job keeps in memory, beside what follows from its model."""

    all_newer = True

    recompute: str = key(
        one_of(RECOMPUTE),
        "`selective` (modules), `op` (every second product and all that is cheap, as "
        "torchtitan's selective checkpointing), `full` (layers, from their inputs)",
        "none",
    )
    recompute_modules: tuple[str, ...] = key(
        list_of(one_of(MODULES)),
        "of `selective`: `core_attn`, `layernorm`, `mla_up_proj`, `mlp`, `moe`, "
        "`moe_act`, `shared_experts`",
        ("core_attn",),
        absent="`[core_attn]`",
    )
    recompute_method: str = key(
        one_of(METHODS),
        "of `full`: `uniform` keeps the input of every n-th layer; `block` computes n "
        "layers of each chunk again and no others",
        "uniform",
    )
    recompute_layers: int = key(integer(1, 10_000), "of `full`: the n of its method", 1)
    attention: str = key(one_of(KERNELS), "`unfused` stores the scores", "fused")
    norm: str = key(
        one_of(KERNELS),
        "`unfused` runs a kernel for each step of a norm and keeps a copy in FP32",
        "fused",
    )
    dropout: bool = key(BOOLEAN, "its masks are kept", False)
    gemm: str = key(
        one_of(PRECISIONS),
        "precision of matrix products, in which inputs are kept: `fp8`, `mxfp8`, "
        "`nvfp4`",
        "bf16",
    )
    gemm_layers: int = key(
        integer(0, 10_000),
        "layers that have it; the others are `bf16`",
        0,
        absent="all",
    )
    parameter_bytes: float | None = key(
        number(0.0, 64.0),
        "bytes of a weight: 2 for BF16 or FP8 with its transpose, 1 for FP8 alone, 4 "
        "for FP32",
        None,
        absent="`2`; `4` with `zero3`, `hsdp`",
    )
    gradient_bytes: float | None = key(
        number(0.0, 64.0),
        "bytes of a gradient",
        None,
        absent="`bytes.gradient`, at least 2; `4` with `zero3`, `hsdp`",
    )
    optimizer_bytes: float | None = key(
        number(0.0, 64.0),
        "master weights and moments of a parameter",
        None,
        absent="`12`; `8` when weights are FP32",
    )
    keep_gathered: bool = key(
        BOOLEAN,
        "inputs that tensor ranks gather are kept so, as PyTorch's do; Megatron-LM "
        "gathers them again",
        False,
    )
    keep_outputs: bool = key(
        BOOLEAN,
        "what stages pass on is kept for all micro-batches, as "
        "`torch.distributed.pipelining` does",
        False,
    )
    logit_bytes: float = key(
        number(0.0, 64.0),
        "bytes that the loss keeps of a logit: 6 in Megatron-LM, 12 in PyTorch without "
        "compilation (16 over a sharded vocabulary), 4 compiled",
        6.0,
    )
    micro_batch_group: int = key(
        integer(0),
        "micro-batches that a chunk runs in a row, when stages are interleaved",
        0,
        absent="`pp`",
    )
    expert_capacity: float = key(
        number(0.0, 1e6),
        "most tokens of an expert rank, in those of the mean",
        0.0,
        absent="no limit",
    )
    activations: float | None = key(
        SIZE, "measured, instead of the model's", None, absent="from the model"
    )
    reserve: float | None = key(
        SIZE,
        "outside the framework's allocator: context, communicators",
        None,
        absent="1 GiB and 0.7 GiB a communicator",
    )

    def recomputes(self, module: str) -> bool:
        """Whether a module is computed again in the backward pass, or all it is in."""
        if self.recompute != "selective":
            return False
        holders = (whole for whole, parts in PARTS.items() if module in parts)
        return not {module, *holders}.isdisjoint(self.recompute_modules)


def gradient_bytes(job: Job) -> float:
    """Bytes of a parameter's gradient, as it is kept."""
    if job.memory.gradient_bytes is not None:
        return job.memory.gradient_bytes
    return 4.0 if job.data_parallel.shards_weights else max(job.bytes.gradient, 2.0)


def decode_memory(section: Section) -> Memory:
    """The mapping, checked; problems go to the section's document."""
    memory = read(section, Memory)
    for name, whose in (
        ("recompute_modules", "selective"),
        ("recompute_method", "full"),
        ("recompute_layers", "full"),
    ):
        if section.has(name) and memory.recompute != whose:
            message = f"is for recompute {whose} only, not {memory.recompute}"
            section.problem(message, name, f"set recompute: {whose}")
    if section.has("optimizer_instances"):
        hint = "write it there"
        section.problem("is a key of data_parallel", "optimizer_instances", hint)
    modules = memory.recompute_modules or Memory.recompute_modules
    return replace(memory, recompute_modules=modules)
