"""torchrun's rendezvous backend ``placer``: node ranks from an emitted node map.

Without a map `placer.injob.rendezvous` asks the nodes; it is loaded by name.

torchrun finds `handler` by the entry point group ``torchrun.handlers`` (PyTorch,
``torch/distributed/elastic/rendezvous/registry.py``). The rendezvous itself is
torchrun's static one; only the node rank comes from the map::

    torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=placer
        --rdzv-conf=map=nodes.json train.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from placer.base.errors import InputError
from placer.documents.files import read_text
from placer.launch.process import host_name
from placer.launch.ranks import HostTable

_STATIC = "torch.distributed.elastic.rendezvous.static_tcp_rendezvous"
_BACKEND = "placer"
_PORT = 29500


def handler() -> Callable[[Any], Any]:
    """What torchrun calls with its ``RendezvousParameters`` to get the rendezvous."""
    return _rendezvous


def read_node_map(path: str) -> list[str]:
    """Hosts of a ``placer/node-map`` file, by node rank.

    Raises `InputError` if it cannot be read, is no such file, or is of a newer version.
    """
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise InputError(f"not JSON: {error}", path) from None
    if not isinstance(data, dict) or data.get("format") != "placer/node-map":
        hint = "make one with `placer emit PLAN torchrun-map`"
        raise InputError("not a node map", path, hint=hint)
    if data.get("version") != 1:
        raise InputError("not of version 1", path, hint="upgrade placer")
    try:
        return [str(node["host"]) for node in data["nodes"]]
    except (KeyError, TypeError):
        message = "expected a list of objects with a host"
        raise InputError(message, path, key="nodes") from None


def _rendezvous(parameters: Any) -> Any:
    """The static rendezvous of torchrun, with this host's node rank in the map.

    Where none is given, one by what the nodes say of themselves.
    """
    path = parameters.config.get("map")
    if not path:
        return import_module("placer.injob.rendezvous").create(parameters)
    hosts = read_node_map(str(path))
    if (parameters.min_nodes, parameters.max_nodes) != (len(hosts), len(hosts)):
        shown = f"{parameters.min_nodes}:{parameters.max_nodes}"
        message = f"it maps {len(hosts)} nodes, --nnodes is {shown}"
        raise InputError(message, str(path))
    host = host_name(os.environ)
    node_rank = HostTable(hosts).find(host)
    if node_rank is None:
        raise InputError(f"host {host!r} is not in the map", str(path))
    parameters.config["rank"] = node_rank
    if not parameters.endpoint:
        first = os.environ.get("PLACER_MASTER_ADDR") or hosts[0]
        parameters.endpoint = f"{first}:{_PORT}"
    rendezvous = import_module(_STATIC).create_rdzv_handler(parameters)
    # torchrun refuses a rendezvous that gives itself another name than the one asked.
    rendezvous.get_backend = lambda: _BACKEND
    return rendezvous
