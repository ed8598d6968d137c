"""All choices for a number of GPUs and a global batch, and the legal ones of them.

What is wrong with what is asked for is told first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import inf
from typing import Any

from placer.base.arrays import divisors
from placer.base.errors import Problem
from placer.base.naming import named
from placer.documents import known_hint
from placer.job.memory import MODULES
from placer.job.model import Job
from placer.job.models import Model
from placer.topology.model import Topology
from placer.tune.choice import JOINED, SIZES, Choice, recompute_name
from placer.tune.frameworks import FRAMEWORKS, Framework, Rules

# A larger micro-batch only fills memory: products are wide enough long before.
MOST_SAMPLES = 16
# Modules that take memory and cost next to nothing to compute again.
_CHEAP = ("layernorm", "moe_act", "mla_up_proj")

_UNSHARED = "a global batch that dp does not divide"
_UNCUT = "samples of a replica that the micro-batch does not divide"
_OVER = "more GPUs than budgets leave"
_ENDS = ((0.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True)
class Space:
    """What may be chosen."""

    # GPUs that the job may take. Empty for any number up to ``at_most``, of which every
    # replica takes as many copies as fit.
    gpus: tuple[int, ...]
    global_batch: int  # samples of a step
    at_most: int = 0  # GPUs that there are
    framework: str = "megatron"  # a key of `FRAMEWORKS`
    # tp, cp, ep, etp, pp, vp and micro_batch: the only sizes; every legal one when
    # empty.
    tp: tuple[int, ...] = ()
    cp: tuple[int, ...] = ()
    ep: tuple[int, ...] = ()
    etp: tuple[int, ...] = ()
    pp: tuple[int, ...] = ()
    vp: tuple[int, ...] = ()
    micro_batch: tuple[int, ...] = ()
    # recompute and sharding: the only ones, likewise.
    recompute: tuple[str, ...] = ()
    sharding: tuple[str, ...] = ()
    # Those that budgets leave, by the ranks of a replica.
    within: Callable[[int], int] | None = None

    def room(self, replica: int) -> int:
        """GPUs that replicas of so many ranks may take."""
        return self.within(replica) if self.within else max((self.at_most, *self.gpus))


@dataclass
class Legal:
    """The legal choices of a space for a job."""

    job: Job  # with a model
    model: Model
    space: Space
    # How many choices each rule refused, where it was first asked: sizes as they are
    # passed by, ways to keep states as they are counted.
    refused: Counter[str] = field(default_factory=Counter)
    _counts: dict[tuple[int, ...], tuple[int, Counter[str]]] = field(
        default_factory=dict
    )

    @property
    def framework(self) -> Framework:
        """The framework whose rules hold."""
        return FRAMEWORKS[self.space.framework]

    def shapes(self) -> Iterator[Choice]:
        """Every legal choice of sizes, without sharding or recomputation."""
        framework = self.framework
        chunks: dict[int, list[Choice]] = {}
        for bare in self._allowed(framework.degrees, self._degrees()):
            if bare.pp not in chunks:
                found = self._allowed(framework.stages, self._chunks(bare))
                chunks[bare.pp] = list(found)
            for experts in self._allowed(framework.experts, self._experts(bare)):
                for stages in chunks[bare.pp]:
                    shape = experts._replace(
                        vp=stages.vp, embedding=stages.embedding, loss=stages.loss
                    )
                    yield from self._allowed(framework.batch, self._batches(shape))

    def only(self, choice: Choice) -> Legal:
        """The legal choices of the same sizes, if this space has them."""
        own: dict[str, Any] = {size: (getattr(choice, size),) for size in SIZES}
        there = all(
            only[0] in (getattr(self.space, size) or only) for size, only in own.items()
        )
        gpus = (choice.gpus,) if there else (0,)
        space = replace(self.space, gpus=gpus, **own)
        return Legal(self.job, self.model, space)

    def variants(self, shape: Choice) -> list[Choice]:
        """The legal ways to keep states and activations of a choice of sizes."""
        return self._variants(shape, Counter())

    def _variants(self, shape: Choice, refused: Counter[str]) -> list[Choice]:
        shardings = self._shardings(shape)
        return [
            choice._replace(recompute=recompute)
            for choice in _allowed(self, self.framework.states, shardings, refused)
            for recompute in self.recomputes
        ]

    def count(self, shape: Choice) -> int:
        """How many variants a choice of sizes has."""
        alike = shape.pp > 1, shape.dp, shape.cp, shape.tp, shape.ep, shape.etp
        if alike not in self._counts:
            refused: Counter[str] = Counter()
            self._counts[alike] = len(self._variants(shape, refused)), refused
        count, refused = self._counts[alike]
        self.refused.update(refused)
        return count

    @cached_property
    def recomputes(self) -> tuple[str, ...]:
        """Modes of recomputation: none, what costs little, all, and the job's own."""
        if self.space.recompute:
            return self.space.recompute
        useful = {"layernorm"}
        useful |= {"moe_act"} if self.model.experts else set()
        useful |= {"mla_up_proj"} if self.model.kv_lora_rank else set()
        cheap = JOINED.join(module for module in _CHEAP if module in useful)
        modes = [cheap if m == "cheap" else m for m in self.framework.recomputes]
        return tuple(dict.fromkeys((*modes, recompute_name(self.job))))

    def _allowed(self, rules: Rules, choices: Iterable[Choice]) -> Iterator[Choice]:
        """The choices that no rule refuses."""
        return _allowed(self, rules, choices, self.refused)

    def _degrees(self) -> Iterator[Choice]:
        """Choices of tp, cp, pp and dp."""
        space = self.space
        for gpus in space.gpus:
            every = divisors(gpus)
            for tp, cp, pp in product(
                space.tp or every, space.cp or every, space.pp or every
            ):
                dp, rest = divmod(gpus, tp * cp * pp)
                if rest or not dp:
                    continue
                if gpus > space.room(tp * cp * pp):
                    self.refused[_OVER] += 1
                elif space.global_batch % dp:
                    self.refused[_UNSHARED] += 1
                else:
                    yield Choice(tp=tp, cp=cp, pp=pp, dp=dp, etp=tp)
        if not space.gpus:
            yield from self._largest()

    def _largest(self) -> Iterator[Choice]:
        """For each replica, as many of them as the GPUs and the batch allow."""
        space = self.space
        replicas = divisors(space.global_batch)
        for tp, cp, pp in product(
            space.tp or divisors(self.model.heads),
            space.cp or divisors(self.job.sequence),
            space.pp or range(1, self.model.layers + 3),
        ):
            most = space.room(tp * cp * pp) // (tp * cp * pp)
            dp = max((n for n in replicas if n <= most), default=0)
            if dp:
                yield Choice(tp=tp, cp=cp, pp=pp, dp=dp, etp=tp)

    def _experts(self, bare: Choice) -> Iterator[Choice]:
        """Choices of ep and etp; etp is 1 or, Megatron's default, tp."""
        if not self.model.experts:
            yield bare
            return
        for ep in self.space.ep or divisors(self.model.experts):
            for etp in self.space.etp or sorted({1, bare.tp}):
                yield bare._replace(ep=ep, etp=etp)

    def _chunks(self, bare: Choice) -> Iterator[Choice]:
        """Choices of vp, and of what the ends of the pipeline count for."""
        vps: Sequence[int] = self.space.vp or (1,)
        if not self.space.vp and bare.pp > 1 and self.framework.interleaves:
            vps = range(1, max((self.model.layers + 2) // bare.pp, 1) + 1)
        own = self.job.stages.embedding, self.job.stages.loss
        more = _ENDS if self.framework.counts_ends else ()
        ends = dict.fromkeys((own, *more)) if bare.pp > 1 else _ENDS[:1]
        for vp, (embedding, loss) in product(vps, ends):
            yield bare._replace(vp=vp, embedding=embedding, loss=loss)

    def _batches(self, shape: Choice) -> Iterator[Choice]:
        """Choices of the micro-batch."""
        samples = self.space.global_batch // shape.dp
        sizes = self.space.micro_batch or range(1, MOST_SAMPLES + 1)
        for size in sizes:
            if samples % size == 0:
                yield shape._replace(micro_batch=size, micro_batches=samples // size)
            elif self.space.micro_batch:
                self.refused[_UNCUT] += 1

    def _shardings(self, shape: Choice) -> Iterator[Choice]:
        """Choices of the sharding, and of the shard group of hsdp."""
        members = shape.dp * shape.cp
        for sharding in self.space.sharding or self.framework.shardings:
            sizes = divisors(members)[1:-1] if sharding == "hsdp" else [0]
            for size in sizes:
                yield shape._replace(sharding=sharding, shard_size=size)


def broken(choice: Choice, job: Job, model: Model, framework: str) -> set[str]:
    """Rules of a framework that a choice for a job breaks; ``model`` is the job's."""
    of, legal = FRAMEWORKS[framework], Legal(job, model, Space((), 0))
    kinds = of.degrees, of.experts, of.stages, of.batch, of.states
    return {
        reason
        for rules in kinds
        for reason, holds in rules.items()
        if not holds(legal, choice)
    }


def _allowed(
    legal: Legal, rules: Rules, choices: Iterable[Choice], refused: Counter[str]
) -> Iterator[Choice]:
    """The choices that no rule refuses; ``refused`` counts the others."""
    for choice in choices:
        for reason, holds in rules.items():
            if not holds(legal, choice):
                refused[reason] += 1
                break
        else:
            yield choice


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
