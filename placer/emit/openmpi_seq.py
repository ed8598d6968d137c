"""Host file of Open MPI's sequential mapper: line k names the host of rank k.

Source: Open MPI, ``orte/mca/rmaps/seq/rmaps_seq.c``: processes take the lines one by
one. Local ranks count up in that order, and GPUs follow them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of, require_gpus_in_order
from placer.emit.openmpi_names import require_openmpi_names

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """The host of every rank, one a line, in rank order.

    Raises
    ------
    EmitError
        If local rank k of a node does not run on GPU k, or a host file cannot hold a
        host name.
    """
    nodes = nodes_of(plan)
    require_gpus_in_order(nodes, "openmpi-seq")
    require_openmpi_names(nodes, "host file")
    return "".join(f"{host}\n" for host in plan.host_of_rank)
