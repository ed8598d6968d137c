"""Slurm's ``SLURM_HOSTFILE``: line k names the host of task k (srun manual page).

No comments and no brackets: every version reads plain lines alike. On a node
``SLURM_LOCALID`` counts tasks in that order, and GPUs follow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_in_order, nodes_of, require_gpus_in_order

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """The host of every rank, one a line, in rank order."""
    require_gpus_in_order(nodes_of(plan), "slurm-hostfile")
    return "".join(f"{host}\n" for host in plan.host_of_rank)


def render_nodes(plan: Plan) -> str:
    """The plan's hosts, one a line, for one task a node that starts its ranks."""
    nodes = nodes_in_order(plan, "one task a node")
    return "".join(f"{node.host}\n" for node in nodes)
