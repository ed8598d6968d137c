"""Ray: its nodes in the order of a placement, by what each says of itself."""

from __future__ import annotations

import sys
from typing import Any

import placer
from placer.api.options import seconds_of
from placer.base.arguments import NOTHING, TEXT, instance, takes
from placer.base.errors import InputError, PlacerError
from placer.injob.again import LIMIT_S, placed_again
from placer.injob.bounded import LateError, first_line, needed
from placer.injob.probe import probe
from placer.injob.rendezvous import tell
from placer.job.model import Job

_PROBES_S = 60.0


@takes(job=instance(Job) | TEXT | NOTHING)
def ray_nodes(
    nodes: int | None = None,
    *,
    job: Job | str | None = None,
    time_limit: float | str = LIMIT_S,
) -> list[str]:
    """Ids of Ray's nodes that have GPUs, by node rank.

    A task asks each what it is. A placement group with a bundle for each id, tied to it
    by the label ``ray.io/node-id``, has its bundles in this order.

    Parameters
    ----------
    nodes : int, optional
        How many are wanted, the best of those that there are; by default all.
    job : Job, or what `read_job` takes, optional
        By default that of ``PLACER_JOB``, else the degrees that the command names.
    time_limit : float, s, or str
        For a placement. Where none is had in time, Ray's order stays.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        If an argument is of a wrong type, Ray is missing or not connected, placer is
        not on its nodes, there are too few of them, or the job cannot be read.

    Examples
    --------
    >>> placer.ray_nodes(16, job="quickstart")  # doctest: +SKIP
    """
    limit = seconds_of(time_limit)
    ray = needed("ray")
    if not ray.is_initialized():
        hint = "call ray.init() first"
        raise InputError("Ray is not connected", hint=hint)
    gpus = {
        row["NodeID"]: int(row["Resources"]["GPU"])
        for row in ray.nodes()
        if row["Alive"] and row["Resources"].get("GPU", 0) >= 1
    }
    size = len(gpus) if nodes is None else nodes
    if not 1 <= size <= len(gpus):
        raise InputError(f"Ray has {len(gpus)} nodes with GPUs, {size} are wanted")
    if isinstance(job, str):
        job = placer.read_job(job, gpus=size * max(gpus.values()))
    probes = [
        said | {"host": node, "gpus": gpus[node]}
        for node, said in _probes(ray, list(gpus)).items()
    ]
    try:
        found = placed_again(
            probes, None, sys.argv, limit, tell, nodes=size, job=job
        ).ranks
    except (PlacerError, LateError) as error:
        tell(f"the nodes have Ray's order: {first_line(error)}")
        found = list(range(size))
    return [probes[found.index(rank)]["host"] for rank in range(size)]


def _probes(ray: Any, nodes: list[str]) -> dict[str, dict[str, Any]]:
    """What each node says, asked there."""
    on = needed("ray.util.scheduling_strategies", "ray").NodeAffinitySchedulingStrategy
    ask = ray.remote(num_cpus=0)(probe)
    asked = [
        ask.options(scheduling_strategy=on(node, soft=False)).remote() for node in nodes
    ]
    try:
        return dict(zip(nodes, ray.get(asked, timeout=_PROBES_S), strict=True))
    except ray.exceptions.RayError as error:
        why = (str(error).splitlines() or [type(error).__name__])[-1]
        message = f"Ray's nodes cannot be asked: {why}"
        hint = "placer must be on every node, as by runtime_env={'pip': ['placer']}"
        raise InputError(message, hint=hint) from None
