"""Open MPI's rankfile: ``rank K=HOST slot=S`` (mpirun manual page, "Rankfiles").

The slot is the local rank, so ranks of a node never share one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of, require_gpus_in_order
from placer.errors import EmitError

if TYPE_CHECKING:
    from placer.placement.plan import Plan

# What the rankfile scanner reads as one host: it has keywords, turns bare numbers into
# integers, and wants a letter in front of a name with dots
# (orte/mca/rmaps/rank_file/rmaps_rank_file_lex.l).
_HOST = re.compile(
    r"(?!(rank|slots?|username|user-name|user_name|[0-9]+)$)"
    r"([A-Za-z0-9_-]+|[A-Za-z][A-Za-z0-9_.-]*|([0-9]{1,3}\.){3}[0-9]{1,3})"
)


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
    for node in nodes:
        if not _HOST.fullmatch(node.host):
            raise EmitError(
                f"Open MPI does not read {node.host!r} as a host name in a rankfile; "
                "its sequential mapper reads the slurm-hostfile format"
            )
    hosts_and_slots = zip(plan.host_of_rank, plan.local_rank.tolist(), strict=True)
    return "".join(
        f"rank {rank}={host} slot={slot}\n"
        for rank, (host, slot) in enumerate(hosts_and_slots)
    )
