"""The node map that torchrun's rendezvous backend ``placer`` reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of, require_consecutive, require_gpus_in_order

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """A ``placer/node-map`` document, one line a node, by node rank.

    Raises
    ------
    EmitError
        If a node's ranks are not consecutive or not on GPU 0, 1, 2 ... in their order,
        or a name is no host name.
    """
    nodes = nodes_of(plan)
    require_consecutive(nodes, "torchrun-map")
    require_gpus_in_order(nodes, "torchrun-map")
    lines = ",\n".join(
        "  " + json.dumps({"host": node.host, "processes": len(node.ranks)})
        for node in nodes
    )
    return f'{{"format": "placer/node-map", "version": 1,\n "nodes": [\n{lines}\n]}}\n'
