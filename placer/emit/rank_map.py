"""The rank map as rows, for programs, spreadsheets and ``awk``; of roles, too.

JAX: process ids and the order of devices, with a loader that needs JAX alone.

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
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files as package_files
from itertools import groupby
from typing import Any

from placer.base.errors import EmitError
from placer.base.hostlist import compress
from placer.emit.nodes import NodeRanks, axes_of, nodes_of
from placer.placement.parts import part_environment
from placer.placement.plan import Plan

# What a job without roles is called: one instance of one role.
JOB = "job"


def render_roles(plan: Plan) -> str:
    """A ``placer/role-map`` document, one line an instance.

    Each has its ``role`` and ``instance``, its ``hosts`` as a host list in the order of
    their first rank, and ``host`` and ``gpu`` of every rank, numbered inside the
    instance; ``first_rank`` is the number of the first in the plan.
    """
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in _instances(plan))
    return (
        '{"format": "placer/role-map", "version": 1,\n'
        f' "world_size": {plan.world_size},\n "instances": [\n{lines}\n]}}\n'
    )


def _instances(plan: Plan) -> Iterator[dict[str, Any]]:
    roles = plan.role_of_rank or (JOB,) * plan.world_size
    numbers = plan.instance_of_rank.tolist() or [0] * plan.world_size
    entries = zip(zip(roles, numbers, strict=True), rows_of(plan), strict=True)
    for (role, instance), grouped in groupby(entries, key=lambda entry: entry[0]):
        rows = [row for _, row in grouped]
        yield {
            "role": role,
            "instance": instance,
            "first_rank": rows[0].rank,
            "hosts": compress(dict.fromkeys(row.host for row in rows)),
            "host": [row.host for row in rows],
            "gpu": [row.gpu for row in rows],
        }


@dataclass(frozen=True)
class RankRow:
    """Where one rank runs."""

    rank: int
    host: str
    node_rank: int  # position of its node when nodes are ordered by their lowest rank
    local_rank: int  # position among its node's ranks
    gpu: int  # index of the GPU in the node


def render_json(plan: Plan) -> str:
    """A ``placer/rank-map`` document, one line a rank."""
    ranks = ",\n".join(f"  {json.dumps(vars(row))}" for row in rows_of(plan))
    return (
        '{"format": "placer/rank-map", "version": 1,\n'
        f' "world_size": {plan.world_size},\n "ranks": [\n{ranks}\n]}}\n'
    )


def render_csv(plan: Plan) -> str:
    """A header and one line a rank; host names need no quotes."""
    lines = ["rank,host,node_rank,local_rank,gpu"]
    lines += [
        f"{row.rank},{row.host},{row.node_rank},{row.local_rank},{row.gpu}"
        for row in rows_of(plan)
    ]
    return "\n".join(lines) + "\n"


def rows_of(plan: Plan) -> Iterator[RankRow]:
    """One row a rank, in rank order."""
    node_rank_of_host = {node.host: k for k, node in enumerate(nodes_of(plan))}
    columns = zip(
        plan.host_of_rank,
        plan.local_rank.tolist(),
        plan.gpu_of_rank.tolist(),
        strict=True,
    )
    for rank, (host, local_rank, gpu) in enumerate(columns):
        yield RankRow(rank, host, node_rank_of_host[host], local_rank, gpu)


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
