"""What a job's own code asks a plan: its rank for torch, process id and mesh for JAX.

The positions of the mesh are the plan's ranks.

``jax.sharding.Mesh`` keeps the order of the array it is given;
``mesh_utils.create_device_mesh`` and ``jax.make_mesh`` may sort devices by id
(https://docs.jax.dev/en/latest/jax.sharding.html).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError
from placer.launch.ranks import (
    meeting,
    node_rank_of_this_process,
    node_ranks,
    rank_of_this_process,
)

if TYPE_CHECKING:
    import numpy as np

    from placer.placement.plan import Plan


def torch_arguments(
    plan: Plan, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Where to meet, and this process's rank by the plan.

    ``init_method``, ``rank`` and ``world_size`` of
    ``torch.distributed.init_process_group``.

    Under torchrun processes meet at the store of its agents (``env://``), wherever rank
    0 is. Otherwise rank 0 keeps the store: at ``PLACER_MASTER_ADDR`` or its host, port
    ``MASTER_PORT`` or 29500.

    Raises `InputError` if the plan does not say which rank this process has.
    """
    env = os.environ if environ is None else environ
    address, port = meeting(plan, env)
    by_agent = env.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return {
        "init_method": "env://" if by_agent else f"tcp://{address}:{port}",
        "rank": rank_of_this_process(plan, env),
        "world_size": plan.world_size,
    }


_DENSE = ("tp", "cp", "pp", "dp")


def jax_arguments(
    plan: Plan, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The coordinator on the host of rank 0, and a process id, for one process a host.

    ``coordinator_address``, ``num_processes`` and ``process_id`` of
    ``jax.distributed.initialize``.

    ``PLACER_MASTER_ADDR`` and ``MASTER_PORT`` (29500) replace address and port. JAX by
    itself takes the first host by name under Slurm.

    Raises `InputError` if the plan does not use this host.
    """
    env = os.environ if environ is None else environ
    return {
        "coordinator_address": ":".join(meeting(plan, env)),
        "num_processes": len(node_ranks(plan)),
        "process_id": node_rank_of_this_process(plan, env),
    }


def devices_in_plan_order(plan: Plan, devices: Sequence[Any]) -> list[Any]:
    """The device of every rank, by rank.

    Devices are told apart by ``process_index`` and their order in it, never by ``id``
    alone, which has gaps. One process a host (ids from `jax_arguments`), one process a
    rank, or a single process that stands for all hosts.

    ``devices``: ``jax.devices()``. Raises `InputError` if the processes or their
    devices are not those of the plan.
    """
    own: dict[int, list[Any]] = {}
    for device in sorted(devices, key=_place):
        own.setdefault(device.process_index, []).append(device)
    nodes = node_ranks(plan)
    if len(own) == len(nodes):
        by_node = dict(zip(nodes, own.values(), strict=True))
    elif len(own) == plan.world_size == len(devices):
        return [group[0] for group in own.values()]
    elif len(own) == 1 and len(devices) == plan.world_size:
        by_node = _shared_out(plan, nodes, next(iter(own.values())))
    else:
        raise InputError(
            f"{len(devices)} devices in {len(own)} processes for {plan.world_size} "
            f"ranks on {len(nodes)} hosts: start one process a host or one a rank"
        )
    position = _positions(plan, by_node)
    return [
        by_node[node][position[node][gpu]]
        for node, gpu in zip(
            plan.node_of_rank.tolist(), plan.gpu_of_rank.tolist(), strict=True
        )
    ]


def mesh_axes(plan: Plan) -> dict[str, int]:
    """Axis -> size, outermost first: ranks are counted in this order, last fastest.

    Raises `InputError` if the plan does not give the sizes of its axes.
    """
    sizes = plan.job.get("parallelism")
    if not sizes:
        raise InputError("the plan does not give the sizes of its axes")
    order = reversed(str(plan.job["order"]).split("-"))
    return {axis: int(sizes.get(axis, 1)) for axis in order if axis in _DENSE}


def mesh_array(plan: Plan, devices: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Devices by coordinate; shape: the sizes of `mesh_axes`.

    Raises `InputError` as `devices_in_plan_order` and `mesh_axes`.
    """
    import numpy as np

    array = np.empty(plan.world_size, dtype=object)
    array[:] = devices_in_plan_order(plan, devices)
    return array.reshape(tuple(mesh_axes(plan).values()))


def jax_mesh(plan: Plan, devices: Sequence[Any] | None = None) -> Any:
    """``jax.sharding.Mesh`` over the job's axes, every device where the plan wants it.

    Raises `InputError` as `mesh_array`.
    """
    jax = import_module("jax")
    found = jax.devices() if devices is None else devices
    return jax.sharding.Mesh(mesh_array(plan, found), tuple(mesh_axes(plan)))


def _place(device: Any) -> tuple[int, int, int]:
    local = getattr(device, "local_hardware_id", None)
    return device.process_index, -1 if local is None else local, device.id


def _shared_out(
    plan: Plan, nodes: Sequence[int], devices: Sequence[Any]
) -> dict[int, list[Any]]:
    """The devices of one process, dealt to the nodes in turn."""
    counts = Counter(plan.node_of_rank.tolist())
    rest = iter(devices)
    return {node: [next(rest) for _ in range(counts[node])] for node in nodes}


def _positions(
    plan: Plan, by_node: Mapping[int, Sequence[Any]]
) -> dict[int, dict[int, int]]:
    """Node -> GPU of the plan -> position among the devices of its process."""
    gpus: dict[int, list[int]] = {node: [] for node in by_node}
    pairs = zip(plan.node_of_rank.tolist(), plan.gpu_of_rank.tolist(), strict=True)
    for node, gpu in pairs:
        gpus[node].append(gpu)
    found = {}
    for node, used in gpus.items():
        number = len(by_node[node])
        if len(used) == number:
            found[node] = {gpu: k for k, gpu in enumerate(sorted(used))}
        elif max(used) < number:
            found[node] = {gpu: gpu for gpu in used}
        else:
            raise InputError(
                f"{plan.nodes[node]}: the process has {number} devices, "
                f"the plan uses GPU {max(used)}"
            )
    return found
