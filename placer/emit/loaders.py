"""JAX: process ids and the order of devices, with a loader that needs JAX alone.

``jax.sharding.Mesh`` keeps the order of the devices it is given; ``jax.make_mesh`` may
sort them (JAX documentation, ``jax.sharding``). A device is told by its process and its
place there, since ids have gaps.

Ray: a placement group with a bundle a node, and the rank of every GPU in it.

Ray keeps no order of bundles, so a label ties each to its node; and it chooses the GPU
of an actor itself, so the rank is looked up by bundle and GPU once the actor runs (Ray
documentation, "Use labels to control scheduling", "Placement groups").
"""

from __future__ import annotations

import json
import re
from importlib.resources import files as package_files
from typing import Any

from placer.base.errors import EmitError
from placer.emit.axes import axes_of
from placer.emit.nodes import NodeRanks, nodes_of
from placer.emit.rank_map import rows_of
from placer.placement.parts import part_environment
from placer.placement.plan import Plan

_MESH_AXES = ("tp", "cp", "pp", "dp")


def jax_files(plan: Plan) -> dict[str, str]:
    """A ``placer/jax-devices`` document and the Python module that reads it.

    Without the job's axes the mesh has one axis, ``rank``.
    """
    rows = list(rows_of(plan))
    hosts = {row.node_rank: row.host for row in rows}
    axes = {"rank": plan.world_size}
    if plan.job.get("parallelism"):
        given = axes_of(plan, "jax")
        outermost_first = [axis for axis in given.order[::-1] if axis in _MESH_AXES]
        axes = {axis: given.size(axis) for axis in outermost_first}
    devices = ",\n".join(f"  [{row.node_rank}, {row.gpu}]" for row in rows)
    document = (
        '{"format": "placer/jax-devices", "version": 1,\n'
        f' "axes": {json.dumps(axes)},\n'
        f' "processes": {json.dumps([hosts[k] for k in range(len(hosts))])},\n'
        f' "devices": [\n{devices}\n]}}\n'
    )
    loader = package_files("placer.emit").joinpath("jax_loader.py")
    return {"devices.json": document, "placer_mesh.py": loader.read_text("utf-8")}


LABEL = "placer-host"

# A label's value (Ray, ``python/ray/_private/label_utils.py``).
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def ray_files(plan: Plan) -> dict[str, str]:
    """A ``placer/ray-bundles`` document and the Python module that reads it."""
    nodes = nodes_of(plan)
    for node in nodes:
        if not _VALUE.fullmatch(node.host):
            raise EmitError(
                f"{node.host!r} cannot be the value of a Ray label: letters, digits, "
                "'-', '_' and '.', at most 63 characters, the first and the last a "
                "letter or digit"
            )
    rows: dict[str, list[Any]] = {
        "bundles": [{"GPU": node.reach} for node in nodes],
        "bundle_label_selector": [{LABEL: node.host} for node in nodes],
        "ranks": [_rank_of_gpu(node) for node in nodes],
    }
    known = part_environment(plan)
    told = f' "environment": {json.dumps(known)},\n' if known else ""
    lists = ",\n".join(
        f' "{key}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"
        for key, value in rows.items()
    )
    document = (
        '{"format": "placer/ray-bundles", "version": 1,\n'
        f' "world_size": {plan.world_size}, "strategy": "STRICT_SPREAD",\n'
        f"{told}{lists}\n}}\n"
    )
    loader = package_files("placer.emit").joinpath("ray_loader.py")
    return {"bundles.json": document, "placer_ray.py": loader.read_text("utf-8")}


def _rank_of_gpu(node: NodeRanks) -> list[int | None]:
    """Rank on each GPU of a node, counted from GPU 0; None on those without."""
    rank_of_gpu = dict(zip(node.gpus, node.ranks, strict=True))
    return [rank_of_gpu.get(gpu) for gpu in range(node.reach)]
