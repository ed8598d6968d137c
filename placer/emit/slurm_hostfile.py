"""Slurm's ``SLURM_HOSTFILE``: line k names the host of task k (srun manual page).

No comments and no brackets: every version reads plain lines alike. On a node
``SLURM_LOCALID`` counts tasks in that order, and GPUs follow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of, require_gpus_in_order

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """The host of every rank, one a line, in rank order.

    Raises
    ------
    EmitError
        If local rank k of a node does not run on GPU k, or a name is no host name.
    """
    require_gpus_in_order(nodes_of(plan), "slurm-hostfile")
    return "".join(f"{host}\n" for host in plan.host_of_rank)
