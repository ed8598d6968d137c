"""The placements a job would get without placer, by name, and which it has today."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InfeasibleError, InputError
from placer.documents import document_of, known_hint
from placer.job.axes import MEGATRON_DEFAULT_ORDER, REPLICA_MAJOR_ORDER
from placer.job.model import Job
from placer.job.started import KEYS, SORTING, Started, decode_started
from placer.placement.launcher_orders import slurm_key
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.topology.machine import Domains

BaselineName = Literal[
    "given-order", "sorted-hosts", "megatron-default", "replica-major", "random"
]
BASELINES: tuple[BaselineName, ...] = get_args(BaselineName)
# What each does, for lists of them.
RULES: dict[BaselineName, str] = {
    "given-order": "fills hosts as they are given",
    "sorted-hosts": "fills hosts in the order of their names, as text or as Slurm does",
    "megatron-default": "fills hosts as they are given, ranks numbered tp-cp-ep-dp-pp",
    "replica-major": "fills hosts as they are given, ranks numbered tp-cp-ep-pp-dp",
    "random": "fills hosts in a random order, by the seed",
}


def baseline(name: str, topology: Domains, job: Job, seed: int = 0) -> Placement:
    """The placement called ``name``: every node filled in turn, in some order.

    ``given-order`` takes hosts as given; ``sorted-hosts`` sorts their names as text, as
    torchrun's c10d rendezvous does, or as Slurm does where it starts the job;
    ``megatron-default`` and ``replica-major`` number the ranks ``tp-cp-ep-dp-pp`` and
    ``tp-cp-ep-pp-dp`` on the hosts as given; ``random`` shuffles the hosts by ``seed``.

    Raises `InfeasibleError` if the machine has fewer GPUs than the job has ranks.
    """
    if name not in BASELINES:
        raise InputError(
            f'there is no baseline "{name}"', hint=known_hint(name, BASELINES)
        )
    if job.world_size > topology.num_gpus:
        raise InfeasibleError(
            f"the job has {job.world_size:,} ranks, "
            f"the machine {topology.num_gpus:,} usable GPUs"
        )
    slots = gpus_in_host_order(topology, _host_order(name, topology, job, seed))
    orders = {
        "megatron-default": MEGATRON_DEFAULT_ORDER,
        "replica-major": REPLICA_MAJOR_ORDER,
    }
    axes = job.parallelism
    position = axes.numbers_in(orders.get(name, axes.order))
    return Placement(slots[position])


def gpus_in_host_order(topology: Domains, hosts: IntArray) -> IntArray:
    """Global indices of the GPUs of hosts, each host's as a launcher counts them."""
    place = np.full(len(topology.host_names), -1)
    place[hosts] = np.arange(len(hosts))
    of_gpu = place[topology.host_of_gpu]
    order = np.lexsort((topology.index_of_gpu, of_gpu))
    listed: IntArray = order[of_gpu[order] >= 0]
    return listed


def _host_order(name: str, topology: Domains, job: Job, seed: int) -> IntArray:
    hosts = topology.host_names
    if name == "sorted-hosts":
        by_slurm = job.started is not None and job.started.name == "slurm"
        keys = [*map(slurm_key, hosts)] if by_slurm else hosts
        by_name = sorted(range(len(hosts)), key=keys.__getitem__)
        return np.array(by_name, dtype=np.int64)
    if name == "random":
        return np.random.default_rng(seed).permutation(len(hosts))
    return np.arange(len(hosts))


def started_of(plan: Plan) -> Started | None:
    """The launcher in the script that the job was read from, or None."""
    job = plan.inputs.get("job")
    kept = job.get("launcher") if isinstance(job, dict) else None
    if not isinstance(kept, dict):
        return None
    content = {key: kept[key] for key in KEYS if key in kept}
    document = document_of(content, "inputs.job.launcher")
    found = decode_started(document.root)
    document.finish()
    return found


def order_in_use(job: Job) -> BaselineName:
    """The baseline that is the order in which a job's hosts are numbered today.

    That of the allocation, or sorted by a launcher that does so whatever it is given.
    """
    return _in_use(job.started)


def order_in_use_of(plan: Plan) -> BaselineName:
    """The order in use of the job that a plan keeps."""
    return _in_use(started_of(plan))


def _in_use(started: Started | None) -> BaselineName:
    sorts = started is not None and started.name in SORTING
    return "sorted-hosts" if sorts else "given-order"
