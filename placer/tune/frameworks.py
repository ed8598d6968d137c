"""Which degrees a framework accepts, by its own rules.

The rules are those of the code, read at these versions. JAX stands for MaxText, whose
pipeline cuts the layers of the decoder alone.

Sources: Megatron-LM d98e8a64, ``core/transformer/transformer_config.py``,
``training/arguments.py``, ``core/parallel_state.py`` and
``core/pipeline_parallel/schedules.py``; torchtitan b5bcd76c,
``distributed/parallel_dims.py`` and ``distributed/pipeline_parallel.py``; PyTorch 2.6,
``distributed/pipelining/schedules.py``; DeepSpeed edaa7221, ``runtime/zero``,
``runtime/engine.py``, ``runtime/pipe/engine.py``, ``sequence/layer.py`` (Ulysses),
``utils/groups.py`` and ``docs/code-docs/source/memory.rst``; MaxText,
``layers/pipeline.py``.

A rule is a reason for refusing, in words, and a test. Rules are asked as soon as what
they are about is chosen: first the degrees, then experts, stages, micro-batches and
sharding; what follows is at its default then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import lcm, prod
from typing import TYPE_CHECKING, Literal

from placer.job.model import Job
from placer.tune.choice import Choice, overlaps_stages

if TYPE_CHECKING:
    from placer.tune.space import Legal

FrameworkName = Literal["megatron", "torchtitan", "deepspeed", "jax"]
Rule = Callable[["Legal", "Choice"], bool]
Rules = Mapping[str, Rule]


@dataclass(frozen=True)
class Framework:
    """One framework."""

    shardings: tuple[str, ...]  # how it keeps gradients, optimizer and parameters
    # degrees, experts, stages, batch and states: why a choice of tp, cp, pp and dp, of
    # ep and etp, of vp and the ends of the pipeline, of the micro-batch, of the
    # sharding is refused, and whether it is not.
    degrees: Rules
    experts: Rules
    stages: Rules
    batch: Rules = field(default_factory=dict)
    states: Rules = field(default_factory=dict)
    interleaves: bool = True  # whether pipeline ranks may hold several chunks
    # Whether embedding and loss may count as layers of the first and last stage.
    counts_ends: bool = True
    # What may be computed again; ``cheap`` stands for the modules that cost next to
    # nothing.
    recomputes: tuple[str, ...] = ("none", "full")
    context: str = ""  # the way of context parallelism, where there is one alone
    # weight and gradient, bytes: of a parameter, however states are shared out; 0 as
    # for any framework.
    weight: float = 0.0
    gradient: float = 0.0


def _heads(of: Legal, choice: Choice) -> bool:
    groups, tp = of.model.kv_heads, choice.tp
    return of.model.heads % tp == 0 and (groups % tp == 0 or tp % groups == 0)


def _experts_divide(of: Legal, choice: Choice) -> bool:
    if not of.model.experts:
        return choice.ep == 1
    return of.model.experts % choice.ep == 0 and of.model.expert_ffn % choice.etp == 0


def _pieces(of: Legal, choice: Choice) -> tuple[int, int]:
    """Of the sequence: two for each context rank, and those of tensor ranks."""
    own = 2 * choice.cp if choice.cp > 1 else 1
    return own, choice.tp if of.job.tensor_parallel.sequence else 1


def _cut_together(of: Legal, choice: Choice) -> bool:
    """Tensor ranks cut the pieces of a context rank together."""
    pieces, slices = _pieces(of, choice)
    return of.job.sequence % lcm(pieces, choice.cp * slices) == 0


def _exchanged_heads(of: Legal, choice: Choice) -> bool:
    exchanges = of.job.context_parallel.communication == "a2a" and choice.cp > 1
    return not exchanges or of.model.heads // choice.tp % choice.cp == 0


def _whole_layers(of: Legal, choice: Choice) -> bool:
    layers = of.model.layers + choice.embedding + choice.loss
    ends_fit = max(choice.embedding, choice.loss) * choice.pp * choice.vp <= layers
    return layers % (choice.pp * choice.vp) == 0 and ends_fit


def _interleaving(of: Legal, choice: Choice) -> bool:
    if choice.vp == 1:
        return True
    least = 2 if overlaps_stages(of.job, choice.vp) else 3
    return choice.pp >= least and choice.micro_batches % choice.pp == 0


def _shards_without_pipeline(_of: Legal, choice: Choice) -> bool:
    return choice.pp == 1 or choice.sharding not in ("zero2", "zero3", "hsdp")


def _context_in_shards(_of: Legal, choice: Choice) -> bool:
    """Parameters are shared out over dp_shard x cp ranks."""
    if choice.sharding == "ddp":
        return choice.cp == 1
    return choice.shard_size % choice.cp == 0


def _experts_in_shards(_of: Legal, choice: Choice) -> bool:
    """Experts lie on dp_shard x cp x tp ranks."""
    shards = {"ddp": choice.cp, "hsdp": choice.shard_size}
    ranks = shards.get(choice.sharding, choice.dp * choice.cp) * choice.tp
    return ranks % choice.ep == 0


def _whole_rounds(_of: Legal, choice: Choice) -> bool:
    """PyTorch interleaves in rounds of at least pp micro-batches, all of one size."""
    rounds = max(1, choice.micro_batches // choice.pp)
    return choice.vp == 1 or choice.micro_batches % rounds == 0


_UNEVEN = "a sequence that tp and cp do not cut evenly"
_UNHELD = "experts that a shard group does not hold"
_DEGREES: dict[str, Rule] = {
    "heads that tp does not divide": _heads,
    # Tensor ranks cut each piece of a context rank.
    _UNEVEN: lambda of, c: of.job.sequence % prod(_pieces(of, c)) == 0,
    "heads that tp and cp do not divide": _exchanged_heads,
}
_EXPERTS: dict[str, Rule] = {
    "experts that ep or etp does not divide": _experts_divide,
    "experts that do not share the ranks": lambda _, c: (
        c.tp * c.cp * c.dp % (c.ep * c.etp) == 0
    ),
}
_LAYERS: dict[str, Rule] = {"layers that pp and vp do not divide": _whole_layers}
_CHUNKS: dict[str, Rule] = {
    "interleaving without a pipeline": lambda _, c: c.vp == 1 or c.pp > 1
}

FRAMEWORKS: dict[str, Framework] = {
    "megatron": Framework(
        ("ddp", "zero1", "zero3", "hsdp"),
        _DEGREES | {_UNEVEN: _cut_together},
        _EXPERTS
        | {
            "experts with tp but no sequence parallelism": lambda of, c: (
                not of.model.experts or c.tp == 1 or of.job.tensor_parallel.sequence
            )
        },
        _LAYERS,
        {
            "interleaving without enough stages, or with micro-batches that are not a "
            "multiple of them": _interleaving
        },
        {
            "sharded parameters with a pipeline": _shards_without_pipeline,
            # Replicas of experts are divided by the number of copies, too.
            _UNHELD: lambda _, c: (
                c.sharding != "hsdp" or c.tp * c.shard_size % (c.ep * c.etp) == 0
            ),
        },
        recomputes=("none", "cheap", "full"),
    ),
    "torchtitan": Framework(
        ("ddp", "zero3", "hsdp"),
        _DEGREES,
        _EXPERTS
        | {"experts that tp cuts": lambda of, c: not of.model.experts or c.etp == 1},
        {
            "more stages than layers": lambda of, c: c.pp * c.vp <= of.model.layers,
            "more than two chunks a rank": lambda _, c: c.vp <= 2,
            **_CHUNKS,
        },
        {"micro-batches that are not cut into equal rounds": _whole_rounds},
        {
            "shards that are not of whole context groups": _context_in_shards,
            _UNHELD: _experts_in_shards,
        },
        recomputes=("none", "op", "full"),
    ),
    "deepspeed": Framework(
        ("ddp", "zero1", "zero2", "zero3"),
        _DEGREES
        | {
            "heads that tp and Ulysses do not divide": lambda of, c: (
                of.model.heads % (c.tp * c.cp) == 0
            )
        },
        _EXPERTS
        | {"experts that replicas do not share": lambda _, c: c.dp % c.ep == 0},
        _LAYERS | {"interleaving": lambda _, c: c.vp == 1},
        states={
            "sharded gradients with a pipeline": _shards_without_pipeline,
            # ZeRO-3 has experts by AutoEP alone, which knows no tp and no Ulysses.
            "sharded experts with tp or Ulysses": lambda of, c: (
                not of.model.experts or c.sharding != "zero3" or c.tp * c.cp == 1
            ),
        },
        interleaves=False,
        counts_ends=False,
        context="a2a",
        weight=2.0,
        gradient=4.0,
    ),
    "jax": Framework(
        ("ddp", "zero3", "hsdp"),
        _DEGREES,
        _EXPERTS,
        _LAYERS | _CHUNKS,
        counts_ends=False,
    ),
}


def in_framework(job: Job, name: str) -> Job:
    """The job with context parallelism and parameters as the framework has them.

    What the job says of its parameters holds.
    """
    framework, memory = FRAMEWORKS[name], job.memory
    if framework.context:
        job = replace(
            job,
            context_parallel=replace(
                job.context_parallel, communication=framework.context
            ),
            overlap=replace(job.overlap, cp=False),
        )
    if framework.weight and memory.parameter_bytes is None:
        memory = replace(memory, parameter_bytes=framework.weight)
    if framework.gradient and memory.gradient_bytes is None:
        memory = replace(memory, gradient_bytes=framework.gradient)
    return job if memory is job.memory else replace(job, memory=memory)
