"""Open MPI's rankfile: ``rank K=HOST slot=S`` (mpirun manual page, "Rankfiles").

The slot is the local rank, so ranks of a node never share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of, require_gpus_in_order
from placer.emit.openmpi_names import require_openmpi_names

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """One line a rank: its host and its slot there.

    Raises
    ------
    EmitError
        If local rank k of a node does not run on GPU k, or a rankfile cannot hold a
        host name.
    """
    nodes = nodes_of(plan)
    require_gpus_in_order(nodes, "openmpi-rankfile")
    require_openmpi_names(nodes, "rankfile")
    hosts_and_slots = zip(plan.host_of_rank, plan.local_rank.tolist(), strict=True)
    return "".join(
        f"rank {rank}={host} slot={slot}\n"
        for rank, (host, slot) in enumerate(hosts_and_slots)
    )
