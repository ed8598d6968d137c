"""Files of Open MPI: the host of every rank, and the slot it takes there.

* The sequential mapper's host file: line k names the host of rank k. Processes take the
  lines one by one; local ranks count up in that order, and GPUs follow them (Open MPI,
  ``orte/mca/rmaps/seq/rmaps_seq.c``).
* A rankfile: ``rank K=HOST slot=S`` (mpirun manual page, "Rankfiles"). The slot is the
  local rank, so ranks of a node never share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from placer.base.errors import EmitError
from placer.emit.nodes import NodeRanks, nodes_for

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_ADDRESS = r"([0-9]{1,3}\.){3}[0-9]{1,3}"
# What the scanners of both files read as one host: they have keywords, turn bare
# numbers into integers, and want a letter in front of a name with dots
# (orte/mca/rmaps/rank_file/rmaps_rank_file_lex.l, orte/util/hostfile/hostfile_lex.l).
_KEYWORD = (
    "alias|boards|count|cpu|cores_per_socket|max[-_]slots|port|rank|slots?|"
    "slot[-_]list|sockets_per_board|username|user[-_]name|relative"
)
_HOST = re.compile(
    rf"(?!({_KEYWORD}|[0-9]+)$)"
    rf"([A-Za-z0-9_-]+|[A-Za-z][A-Za-z0-9_.-]*|{_ADDRESS})"
)


def render_seq(plan: Plan) -> str:
    """The host of every rank, one a line, in rank order."""
    _require_names(nodes_for(plan, "openmpi-seq"), "host file")
    return "".join(f"{host}\n" for host in plan.host_of_rank)


def render_rankfile(plan: Plan) -> str:
    """One line a rank: its host and its slot there."""
    _require_names(nodes_for(plan, "openmpi-rankfile"), "rankfile")
    hosts_and_slots = zip(plan.host_of_rank, plan.local_rank.tolist(), strict=True)
    return "".join(
        f"rank {rank}={host} slot={slot}\n"
        for rank, (host, slot) in enumerate(hosts_and_slots)
    )


def _require_names(nodes: Iterable[NodeRanks], file: str) -> None:
    """Nothing, when Open MPI reads every host's name as one, and no two as the same.

    It drops the domain of a name: its parameters ``orte_keep_fqdn_hostnames`` and
    ``prte_keep_fqdn_hostnames`` are "no" by default (``ompi_info``, ``prte_info``).
    """
    host_of_label: dict[str, str] = {}
    for node in nodes:
        if not _HOST.fullmatch(node.host):
            raise EmitError(
                f"Open MPI does not read {node.host!r} as a host name in a {file}; "
                "the env format gives ranks to any processes"
            )
        if re.fullmatch(_ADDRESS, node.host):
            continue
        other = host_of_label.setdefault(node.host.partition(".")[0], node.host)
        if other != node.host:
            raise EmitError(
                f"Open MPI drops domains and takes {other} and {node.host} for one "
                "host; the env format gives ranks to any processes"
            )
