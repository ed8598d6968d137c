"""Which of the plan's GPUs the processes of a host use, as far as that can be told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.launch.process import Process


def plan_gpus(
    processes: Sequence[Process], planned: Collection[int]
) -> list[int | None]:
    """GPU of each process of one host in the plan's numbers; None when unknown.

    A plan counts the GPUs of a node, or those the job was given there. Device numbers
    are the plan's own when they cover all that the plan uses there, else the k-th
    device in sight is GPU k. Nothing can be told of devices named by UUID, of one that
    every process sees alone under the same name, as in a container, and of hosts where
    fewer devices are in sight than the plan uses.

    Parameters
    ----------
    processes : sequence of Process
    planned : collection of int
        GPUs the plan uses on the host.
    """
    names = [process.gpu for process in processes]
    if _each_sees_one(processes) and len(processes) > len(set(names)):
        return [None] * len(processes)
    in_sight = [process.visible for process in processes if process.visible]
    union = {name for visible in in_sight for name in visible}
    own = not in_sight or {str(gpu) for gpu in planned} <= union
    hidden = not own and len(union) < len(planned)
    if hidden or not all(_is_number(name) for name in union):
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


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10
