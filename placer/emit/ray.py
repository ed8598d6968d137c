"""Ray: a placement group with a bundle a node, and the rank of every GPU in it.

Ray keeps no order of bundles, so a label ties each to its node; and it chooses the GPU
of an actor itself, so the rank is looked up by bundle and GPU once the actor runs (Ray
documentation, "Use labels to control scheduling", "Placement groups").
"""

from __future__ import annotations

import json
import re
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any

from placer.base.errors import EmitError
from placer.emit.nodes import nodes_of
from placer.placement.parts import part_environment

if TYPE_CHECKING:
    from placer.emit.nodes import NodeRanks
    from placer.placement.plan import Plan

LABEL = "placer-host"

# A label's value (Ray, ``python/ray/_private/label_utils.py``).
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def files(plan: Plan) -> dict[str, str]:
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
