"""JAX: process ids and the order of devices, with a loader that needs JAX alone.

``jax.sharding.Mesh`` keeps the order of the devices it is given; ``jax.make_mesh`` may
sort them (JAX documentation, ``jax.sharding``). A device is told by its process and its
place there, since ids have gaps.
"""

from __future__ import annotations

import json
from importlib.resources import files as package_files
from typing import TYPE_CHECKING

from placer.emit.axes import axes_of
from placer.emit.rank_map import rows_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_MESH_AXES = ("tp", "cp", "pp", "dp")


def files(plan: Plan) -> dict[str, str]:
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
