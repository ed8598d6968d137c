"""A job at another size: other axes, other micro-batches."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from typing import Any

from placer.base.errors import InputError, Problem
from placer.documents import parse_document
from placer.documents.records import entries
from placer.job.decode import decode_one, job_digest
from placer.job.model import Job
from placer.job.pace import compute_at
from placer.job.parallel import default_bucket
from placer.job.write import to_document


def resized(job: Job, recompute: str = "", /, **sizes: int | None) -> Job:
    """The job at another size, checked as a job file is.

    Sizes are axes, ``micro_batch`` and ``micro_batches``. ``recompute`` is a mode.

    The work of a micro-batch is the model's, so a measured ``micro_batch_time`` follows
    the GPUs that share it, ``tp x cp x pp``, and both it and a rate how well products
    cut over ``tp`` and ``cp`` use a GPU (`product_efficiency`). What had its default
    (the gradient bucket, the tensor parallelism of experts) keeps it, and groups of all
    ranks stay so.
    """
    _check_roles(job)
    changed = {key: size for key, size in sizes.items() if size is not None}
    dense = [changed.get(a, job.parallelism.size(a)) for a in ("tp", "cp", "pp", "dp")]
    if prod(dense) != job.world_size:
        _check_groups(job)
    document = _without_defaults(job)
    own = {"micro_batch": job.micro_batch, "micro_batches": job.micro_batches}
    current = {**document["parallelism"], **own}
    same_mode = recompute in ("", job.memory.recompute)
    if same_mode and all(current[key] == size for key, size in changed.items()):
        return job
    document |= {key: changed.pop(key, size) for key, size in own.items()}
    if not same_mode:
        memory = entries(job.memory)
        kept = {k: v for k, v in memory.items() if not k.startswith("recompute")}
        document["memory"] = {**kept, "recompute": recompute}
    document["parallelism"] |= changed
    found = decode_one(parse_document(json.dumps(document), "job.json"))
    compute = compute_at(job, found)
    if compute == job.compute:
        return found
    found = replace(found, compute=compute)
    return replace(found, sha256=job_digest(found))


def with_gpus(job: Job, gpus: int) -> Job:
    """The job with as many replicas as fill so many GPUs; 0 leaves it as it is."""
    if gpus in (0, job.world_size):
        return job
    axes = job.parallelism
    replica = axes.tp * axes.cp * axes.pp
    if gpus % replica:
        message = f"{gpus} GPUs are no multiple of tp x cp x pp = {replica}"
        raise InputError(message, key="gpus")
    dp = gpus // replica
    if job.model is None and not (job.groups or job.weights or job.roles):
        return replace(job, parallelism=replace(axes, dp=dp))  # of a role
    return resized(job, dp=dp)


def reordered(job: Job, order: str) -> Job:
    """The job as if its file said ``order``: ``auto``, or ``tp-cp-ep-pp-dp``."""
    _check_roles(job)
    document = to_document(job)
    document["parallelism"]["order"] = order
    try:
        return decode_one(parse_document(json.dumps(document), "job.json"))
    except InputError as error:
        raise InputError(
            Problem(problem.message, key="order", hint=problem.hint)
            for problem in error.problems
        ) from None


def _check_roles(job: Job) -> None:
    """Refuse a workload: its roles have the sizes and the orders."""
    if job.roles:
        message = "a workload has no size and no order of its own"
        hint = "change the job of a role, or its instances"
        raise InputError(message, key="roles", hint=hint)


def _without_defaults(job: Job) -> dict[str, Any]:
    """The job as a document, without what followed from its sizes."""
    document = to_document(job)
    axes = job.parallelism
    if job.data_parallel.bucket_parameters == default_bucket(axes.dp):
        del document["data_parallel"]["bucket_parameters"]
    if axes.etp == axes.tp:
        del document["parallelism"]["etp"]
    return document


def _check_groups(job: Job) -> None:
    """Refuse groups that name ranks: only those of all ranks follow the world."""
    if job.traffic is not None:
        message = "its traffic names ranks and cannot follow another world size"
        raise InputError(message, key="traffic")
    everyone = (tuple(range(job.world_size)),)
    if any(group.ranks != everyone for group in job.groups):
        message = "its groups name ranks and cannot follow another world size"
        raise InputError(message, key="groups")
