"""Decoding one job: everything is checked here, so that a `Job` can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from placer.assumed import decode_assumed
from placer.base.units import format_bandwidth
from placer.documents import (
    Document,
    Section,
    Value,
    content_digest,
    known_hint,
)
from placer.documents.records import digested, read
from placer.job.adapters import decode_adapters
from placer.job.axes import (
    AXES,
    EXPERT_AXES,
    Parallelism,
    data_parallel_degrees,
    decode_parallelism,
)
from placer.job.beside import beside_seconds, host_seconds
from placer.job.even import evenly
from placer.job.logged import logged
from placer.job.memory import decode_memory
from placer.job.model import WEIGHTED_AXES, Compute, Job
from placer.job.models import Model, decode_model, read_model
from placer.job.pace import held_by
from placer.job.parallel import decode_stages, decode_sync
from placer.job.read_rank_traffic import decode_rank_traffic
from placer.job.rules import decode_rules
from placer.job.started import RANKS_HINT, Started, decode_started
from placer.job.traffic import Group, RankTraffic, decode_groups
from placer.job.work import micro_batch_time

FORMAT = "placer/job"
_OF_RANKS = ("groups", "traffic")  # what names ranks, so that no axes need to
# What changes no job.
_BESIDE = ("sha256", "description", "sources", "assumed", "started")


def decode_one(document: Document, *, alone: bool = True) -> Job:
    """Job of a parsed document; one that is not alone may leave all that is sent."""
    document.check_format(FORMAT)
    root = document.root
    of_ranks = not root.has("parallelism") and any(map(root.has, _OF_RANKS))
    axes = root.section("parallelism", required=not of_ranks)
    sized = decode_parallelism(axes)
    parallelism = sized or Parallelism()
    known_world = 0 if of_ranks or not sized else sized.world_size
    groups = decode_groups(root, known_world)
    traffic, groups = decode_rank_traffic(root, known_world, groups)
    if of_ranks and not document.problems:
        known_world = _ranks_named(groups, traffic)
        parallelism = Parallelism(dp=known_world)
    model = _model(root)
    root.get("sequence", required=model is not None)
    launcher = root.section("launcher", hint=RANKS_HINT)
    adapted = decode_adapters(root, model)
    job = read(
        root,
        Job,
        parallelism=parallelism,
        model=model,
        data_parallel=decode_sync(
            root.section("data_parallel"), parallelism, data_parallel_degrees(axes)
        ),
        stages=decode_stages(root, model, parallelism),
        compute=_compute(root, has_model=root.has("model")),
        require=_require(root.section("require"), groups)
        | evenly(_require(root.section("even"), groups)),
        launcher=Started.ranks.take(launcher),
        started=decode_started(launcher),
        groups=groups,
        traffic=traffic,
        adapters=adapted,
        memory=decode_memory(root.section("memory")),
        weights=_weights(root.section("weights")),
        rules=decode_rules(root.section("rules"), known_world),
        assumed=decode_assumed(root),
    )
    faulty = any(
        f"{problem.key}.".startswith("model.") for problem in document.problems
    )
    if sized and model is not None and not faulty:
        _check_model(root, model, sized)
    if not document.problems:
        _check_together(root, job, alone=alone)
    if not document.problems:
        job = logged(root.section("compute"), job)
        known = job.compute.micro_batch_time or job.compute.tflops_per_gpu
        if job.model is not None and known:
            _check_times(root, job, job.model)
    document.finish()
    return replace(job, sha256=job_digest(job))


def _ranks_named(groups: tuple[Group, ...], traffic: RankTraffic | None) -> int:
    """How many ranks a job without axes has: up to the highest that it names."""
    named = [max(map(max, group.ranks)) for group in groups]
    if traffic is not None:
        named += [int(ends.max()) for ends in (traffic.senders, traffic.receivers)]
    return max(named, default=0) + 1


def job_digest(job: Job) -> str:
    """SHA-256 of what the job says, whatever the layout of its file.

    Description, sources, what starts it and which values are assumed are left out: they
    change nothing about the job.
    """
    content = {key: _settled(value) for key, value in vars(job).items()}
    for key in (*_BESIDE, "rules", "roles", "transfers"):
        del content[key]
    for key in ("traffic", "memory", "adapters", "host_time"):
        if not content[key] and content[key] != 0.0:
            del content[key]
    if job.traffic is not None:
        content["traffic"] = job.traffic.to_document()
    if job.roles:
        content["transfers"] = _settled(job.transfers)
        content["roles"] = [
            {**vars(role), "job": job_digest(role.job)} for role in job.roles
        ]
    if not job.parallelism.auto_order:
        del content["parallelism"]["auto_order"]
    content["compute"]["fixed_time"] = job.compute.fixed_s
    content["collectives"]["gather"] = "auto"  # digests outlive the key that was
    if job.rules:
        content["rules"] = job.rules.to_document()
    return content_digest(content)


def _settled(value: Any) -> Any:
    """A value as digests have it; the numbers of groups are not copied one by one."""
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        return [*map(digested, value)]
    return digested(value) if is_dataclass(value) else value


def _model(root: Section) -> Model | None:
    value = root.get("model")
    if value is None:
        return None
    if value.kind == "mapping":
        return decode_model(value.section())
    name = value.text()
    return value.made(read_model, name, default=None) if name else None


def _compute(root: Section, *, has_model: bool) -> Compute:
    """Times and rates of the work; one that a log tells is `logged` afterwards."""
    section = root.section("compute", required=has_model)
    by_time, by_rate = section.has("micro_batch_time"), section.has("tflops_per_gpu")
    by_log = section.has("log")
    hint = "give micro_batch_time (measured), tflops_per_gpu or log"
    if by_log and (by_time or by_rate):
        other = "micro_batch_time" if by_time else "tflops_per_gpu"
        section.problem(f"contradicts {other}", "log", "remove one of them")
    elif by_log and not has_model:
        section.problem("needs a model", "log", "add model, or a time")
    if by_time and by_rate:
        section.problem("contradicts micro_batch_time", "tflops_per_gpu", hint)
    elif by_rate and not has_model:
        section.problem("needs a model", "tflops_per_gpu", "add model, or a time")
    elif has_model and root.has("compute") and not (by_time or by_rate or by_log):
        section.problem("says nothing about the time of the work", hint=hint)
    return read(section, Compute)


def _require(section: Section, groups: tuple[Group, ...]) -> dict[str, str]:
    known = (*AXES, *EXPERT_AXES, *(group.name for group in groups))
    found = _by_name(section, known, "there is no such axis or group")
    return {key: value.text() for key, value in found}


def _weights(section: Section) -> dict[str, float]:
    found = _by_name(section, WEIGHTED_AXES, "there is no such axis to weigh")
    return {key: value.number() for key, value in found}


def _by_name(
    section: Section, known: Sequence[str], unknown: str
) -> Iterator[tuple[str, Value]]:
    """The entries; those of another name are a problem."""
    for key, value in section.entries():
        if key not in known:
            value.problem(unknown, known_hint(key, known))
        yield key, value


def _check_together(root: Section, job: Job, *, alone: bool) -> None:
    """Rules that tie one part of the job to another; one alone sends something."""
    if job.parallelism.auto_order and job.names_ranks:
        message = "cannot be auto: groups, traffic or pins name ranks by number"
        section = root.section("parallelism")
        section.problem(message, "order", "write the order these numbers are of")
    if job.model is not None:
        _check_heads(root, job, job.model)
        _check_micro_batches(root, job)
    elif alone and not (job.weights or job.groups or job.traffic):
        message = "the job sends nothing: it has no model, weights, groups or traffic"
        hint = "add model and compute, or weights, groups or traffic"
        root.problem(message, hint=hint)


def _check_times(root: Section, job: Job, model: Model) -> None:
    """Norms and the like leave some time for products; the host takes no longer."""
    time, stages = micro_batch_time(job), held_by(job, model).stages
    rate = job.compute.memory_bandwidth
    if rate and stages[0] * beside_seconds(job, model) >= time:
        message = (
            f"norms and other work that multiplies nothing would take all of a "
            f"micro-batch at {format_bandwidth(rate)}"
        )
        hint = "is it the rate of the GPU's memory, such as 3.35TB/s?"
        root.section("compute").problem(message, "memory_bandwidth", hint)
    host = max(stages) * host_seconds(job, model)
    if job.host_time and host > time * (1 + 1e-9):
        message = (
            f"the host would take {host:g} s for the layers of a micro-batch, but all "
            f"of it takes {time:g} s"
        )
        root.problem(message, "host_time", "give the time of one layer")


def _check_model(root: Section, model: Model, parallelism: Parallelism) -> None:
    section = root.section("parallelism")
    stages = parallelism.pp * parallelism.vp
    # Megatron may count the embedding and the loss as one layer each.
    if stages > model.layers + 2:
        message = (
            f"pp x vp = {parallelism.pp} x {parallelism.vp} = {stages} stages are more "
            f"than the model's {model.layers} layers (+2 for embedding and loss)"
        )
        section.problem(message, "pp")
    if parallelism.tp > model.heads:
        message = f"{parallelism.tp} is more than the model's {model.heads} heads"
        section.problem(message, "tp")
    if parallelism.ep > 1 and not model.experts:
        section.problem("the model has no experts", "ep", "set ep: 1")
    elif model.experts % parallelism.ep:
        message = (
            f"{parallelism.ep} does not divide the model's {model.experts} experts"
        )
        section.problem(message, "ep")


def _check_heads(root: Section, job: Job, model: Model) -> None:
    """Heads must be there to exchange, when context parallelism exchanges them."""
    axes = job.parallelism
    if job.context_parallel.communication == "a2a" and model.heads % (
        axes.tp * axes.cp
    ):
        message = (
            f"tp x cp = {axes.tp} x {axes.cp} = {axes.tp * axes.cp} does not divide "
            f"the model's {model.heads} heads"
        )
        section = root.section("context_parallel")
        section.problem(message, "communication", "set p2p or all_gather")


def _check_micro_batches(root: Section, job: Job) -> None:
    """Interleaved stages run no fewer in a row than there are stages."""
    group, stages = job.memory.micro_batch_group, job.parallelism.pp
    if group and not stages <= group <= job.micro_batches:
        message = (
            f"{group} is not from the number of stages ({stages}) to that of "
            f"micro-batches ({job.micro_batches})"
        )
        root.section("memory").problem(message, "micro_batch_group", "remove it")
