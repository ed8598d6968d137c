"""DLRover: the map by which its master reorders the nodes of a rendezvous.

``--enable-topology-rerank`` reads JSON of addresses and groups, and the strategy
``ep_dp_pp`` numbers nodes by the text of their group, in a group by their own rank
(intelligent-machine-learning/dlrover, ``master/elastic_training/topology_rerank.py``).
So a group for each node, called by its node rank, makes the plan's order.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_in_order

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """Host -> its node rank, with as many digits for each."""
    nodes = nodes_in_order(plan, "dlrover")
    width = len(str(len(nodes) - 1))
    groups = {node.host: f"{rank:0{width}}" for rank, node in enumerate(nodes)}
    return json.dumps(groups, indent=1) + "\n"
