"""The rank a plan gives to the process that asks, by its host and its GPU."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.launch.process import Process, host_name, local_index, this_process

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def plan_gpus(
    processes: Sequence[Process], planned: Collection[int]
) -> list[int | None]:
    """GPU of each process of one host in the plan's numbers; None when unknown.

    A plan counts the GPUs of a node, or those the job was given there. Device numbers
    are the plan's own when they cover all that the plan uses there, else the k-th
    device in sight is GPU k. Nothing can be told of devices named by UUID, of one that
    every process sees alone under the same name, as in a container, and of hosts where
    fewer devices are in sight than the plan uses.

    ``planned``: GPUs the plan uses on the host.
    """
    names = [process.gpu for process in processes]
    if _each_sees_one(processes) and len(processes) > len(set(names)):
        return [None] * len(processes)
    in_sight = [process.visible for process in processes if process.visible]
    union = {name for visible in in_sight for name in visible}
    own = not in_sight or {str(gpu) for gpu in planned} <= union
    hidden = not own and len(union) < len(planned)
    if hidden or not _numbered(union):
        return [None] * len(processes)
    given = sorted(map(int, union))

    def number(name: str | None) -> int | None:
        if name is None:
            return None
        return int(name) if own or int(name) not in given else given.index(int(name))

    return [number(name) for name in names]


def shared(processes: Sequence[Process]) -> dict[str, list[Process]]:
    """Device -> the processes of one host that use it, where there are several."""
    if _each_sees_one(processes):
        return {}
    users: dict[str, list[Process]] = {}
    for process in processes:
        if process.gpu is not None:
            users.setdefault(process.gpu, []).append(process)
    return {gpu: using for gpu, using in users.items() if len(using) > 1}


def _each_sees_one(processes: Sequence[Process]) -> bool:
    return all(p.visible is not None and len(p.visible) == 1 for p in processes)


class HostTable:
    """Looks hosts up among the names of a plan, as the emitted scripts do.

    A host is a node's whole name; or its name without a domain is; or its name is the
    first label of one node's name only.
    """

    def __init__(self, nodes: Sequence[str]) -> None:
        self._whole = {name: i for i, name in enumerate(nodes)}
        labels = [name.partition(".")[0] for name in nodes]
        uses = Counter(labels)
        self._label = {name: i for i, name in enumerate(labels) if uses[name] == 1}

    def find(self, host: str) -> int | None:
        """Index of the node, or None for a host of no node."""
        for name in (host, host.partition(".")[0]):
            if name in self._whole:
                return self._whole[name]
        return self._label.get(host)


def rank_of_this_process(
    plan: Plan | str | os.PathLike[str], environ: Mapping[str, str] | None = None
) -> int:
    """Global rank that the plan gives to the GPU of this process.

    The host and the GPU decide, not the launcher's own rank. Process k of a host has
    the k-th GPU the plan uses there; where ``CUDA_VISIBLE_DEVICES`` numbers devices,
    the one it lists at k. ``PLACER_LOCAL_INDEX`` replaces the local rank.

    ``environ``: environment to use instead of this process's. Raises `InputError` if
    the plan cannot be read or does not use the host or the GPU, nothing says which
    process of the host this is, or it sees one GPU and may be any of several.
    """
    env = os.environ if environ is None else environ
    content = _read(plan)
    process = this_process(env)
    gpus = _ranks_by_gpu(content, _node(content, process.host))
    if process.rank is not None and _is_emitted(process, gpus):
        return process.rank
    index = local_index(env, process)
    if index is None and len(gpus) > 1:
        message = f"nothing says which of {len(gpus)} processes of the host this is"
        hint = "set PLACER_LOCAL_INDEX to 0, 1, ... on every host"
        raise InputError(message, hint=hint)
    chosen_by_hand = bool(env.get("PLACER_LOCAL_INDEX"))
    gpu = _gpu(process, index or 0, list(gpus), counts=chosen_by_hand)
    if gpu is None:
        raise InputError(
            f"process {index} of {process.host}: GPUs the plan uses there: {len(gpus)}",
            hint="start one process for each rank of the plan",
        )
    return gpus[gpu]


def node_rank_of_this_process(
    plan: Plan | str | os.PathLike[str], environ: Mapping[str, str] | None = None
) -> int:
    """Position of this host when the plan's nodes are ordered by their lowest rank.

    Raises `InputError` if the plan cannot be read or does not use this host.
    """
    content = _read(plan)
    env = os.environ if environ is None else environ
    return node_ranks(content).index(_node(content, host_name(env)))


def device_of_rank(
    plan: Plan, rank: int, environ: Mapping[str, str] | None = None
) -> int:
    """Index of the rank's GPU among those this process sees, for ``set_device``.

    Raises `InputError` if the plan has no such rank, or the process does not see its
    GPU.
    """
    if not 0 <= rank < plan.world_size:
        raise InputError(f"rank {rank} is not one of the plan's {plan.world_size}")
    visible = this_process(environ).visible
    gpu = int(plan.gpu_of_rank[rank])
    if visible is None:
        return gpu
    if len(visible) == 1:
        return 0
    if str(gpu) in visible:
        return visible.index(str(gpu))
    listed = ",".join(visible)
    if gpu >= len(visible):
        raise InputError(f"GPU {gpu} is not in CUDA_VISIBLE_DEVICES={listed}")
    in_order = sorted(visible, key=int) if _numbered(visible) else list(visible)
    return visible.index(in_order[gpu])


def meeting(plan: Plan, environ: Mapping[str, str]) -> tuple[str, str]:
    """Address and port where rank 0 is met.

    ``PLACER_MASTER_ADDR`` or its host, port ``MASTER_PORT`` or 29500. An inherited
    ``MASTER_ADDR`` is ignored: it often is the first host by name.
    """
    address = environ.get("PLACER_MASTER_ADDR") or plan.host_of_rank[0]
    return address, environ.get("MASTER_PORT") or "29500"


def node_ranks(plan: Plan) -> list[int]:
    """Nodes of the plan, as indices, ordered by their lowest rank."""
    return list(dict.fromkeys(plan.node_of_rank.tolist()))


def _read(plan: Plan | str | os.PathLike[str]) -> Plan:
    if isinstance(plan, str | os.PathLike):
        from placer.placement.plan_file import read_plan

        return read_plan(plan)
    return plan


def _node(plan: Plan, host: str) -> int:
    node = HostTable(plan.nodes).find(host)
    if node is None:
        hint = "PLACER_HOST replaces the name this host has for itself"
        raise InputError(f"host {host!r} is not in the plan", hint=hint)
    return node


def _ranks_by_gpu(plan: Plan, node: int) -> dict[int, int]:
    """GPU -> rank on one node, by GPU."""
    ranks = (plan.node_of_rank == node).nonzero()[0].tolist()
    return dict(sorted((int(plan.gpu_of_rank[rank]), rank) for rank in ranks))


def _is_emitted(process: Process, gpus: Mapping[int, int]) -> bool:
    """Whether an emitted script set RANK and, as LOCAL_RANK, the GPU of that rank.

    torchrun's own numbers can look so too; then devices must be in order.
    """
    if (process.local_rank, process.rank) not in gpus.items():
        return False
    listed = process.visible or ()
    in_order = _numbered(listed) and list(listed) == sorted(listed, key=int)
    return process.launcher == "env" or (process.launcher == "torchrun" and in_order)


def _gpu(
    process: Process, index: int, gpus: Sequence[int], *, counts: bool
) -> int | None:
    """The plan's GPU of process ``index`` of a host, or None."""
    visible = process.visible
    if counts or len(gpus) == 1 or visible is None or not _numbered(visible):
        return gpus[index] if index < len(gpus) else None
    if len(visible) == 1:
        message = (
            f"this process sees one GPU, {visible[0]}, and others may be called so"
        )
        raise InputError(message, hint="let it see all GPUs of its host")
    if index >= len(visible):
        return None
    device = int(visible[index])
    if not {str(gpu) for gpu in gpus} <= set(visible):
        # Not the plan's numbers, so the plan counts the devices the job was given.
        device = sorted(map(int, visible)).index(device)
    return device if device in gpus else None


def _numbered(devices: Collection[str]) -> bool:
    return all(n.isascii() and n.isdigit() and len(n) < 10 for n in devices)
