"""The plan's process ids and devices for JAX; reads devices.json, its neighbour.

One process a host, which sees all GPUs that the job has there:

    import jax, placer_mesh
    jax.distributed.initialize(**placer_mesh.arguments())
    mesh = placer_mesh.mesh()     # its axes are the job's, the last varies fastest

PLACER_MASTER_ADDR and MASTER_PORT replace address and port of the coordinator, and
PLACER_HOST the name of this host.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

_PLAN: dict[str, Any] = json.loads(Path(__file__).with_name("devices.json").read_text())


def arguments() -> dict[str, Any]:
    """Keyword arguments of ``jax.distributed.initialize`` for this host."""
    hosts = _PLAN["processes"]
    address = os.environ.get("PLACER_MASTER_ADDR") or hosts[0]
    return {
        "coordinator_address": f"{address}:{os.environ.get('MASTER_PORT') or 29500}",
        "num_processes": len(hosts),
        "process_id": _process_id(hosts),
    }


def devices() -> list[Any]:
    """``jax.devices()`` in the order of the plan's ranks.

    A single process with as many devices as ranks stands for all hosts.
    """
    used: dict[int, list[int]] = {}
    for process, gpu in _PLAN["devices"]:
        used.setdefault(process, []).append(gpu)
    own = _by_host(used)
    return [
        own[process][_position(gpu, used[process], len(own[process]))]
        for process, gpu in _PLAN["devices"]
    ]


def mesh() -> Any:
    """``jax.sharding.Mesh`` over the job's axes, every rank on its device."""
    axes = _PLAN["axes"]
    array = import_module("numpy").empty(len(_PLAN["devices"]), dtype=object)
    array[:] = devices()
    sharding = import_module("jax").sharding
    return sharding.Mesh(array.reshape(tuple(axes.values())), tuple(axes))


def _process_id(hosts: list[str]) -> int:
    """Place of this host among ``hosts``: by name, else by a label that one has."""
    host = (
        os.environ.get("PLACER_HOST")
        or os.environ.get("SLURMD_NODENAME")
        or os.uname().nodename
    )
    for name in (host, host.split(".")[0]):
        if name in hosts:
            return hosts.index(name)
    found = [k for k, name in enumerate(hosts) if name.split(".")[0] == host]
    if len(found) != 1:
        raise RuntimeError(f"host {host!r} is not in the plan")
    return found[0]


def _by_host(used: dict[int, list[int]]) -> dict[int, list[Any]]:
    """Devices of every host of the plan, by its place there."""
    found = sorted(import_module("jax").devices(), key=_place)
    own: dict[int, list[Any]] = {}
    for device in found:
        own.setdefault(device.process_index, []).append(device)
    if len(own) == 1 and len(found) == len(_PLAN["devices"]):
        rest = iter(found)
        return {host: [next(rest) for _ in used[host]] for host in range(len(used))}
    if sorted(own) != sorted(used):
        raise RuntimeError(f"{len(own)} processes, but the plan has {len(used)} hosts")
    return own


def _place(device: Any) -> tuple[int, int]:
    local = getattr(device, "local_hardware_id", None)
    return device.process_index, device.id if local is None else local


def _position(gpu: int, used: list[int], seen: int) -> int:
    """Place of a GPU among the ``seen`` devices of its process.

    A process that sees as many devices as the plan uses there sees just those.
    """
    place = sorted(used).index(gpu) if len(used) == seen else gpu
    if place >= seen:
        raise RuntimeError(f"a process sees {seen} devices, the plan uses GPU {gpu}")
    return place
