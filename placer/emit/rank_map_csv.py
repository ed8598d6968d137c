"""The rank map as comma-separated values, for spreadsheets and ``awk``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.rank_map import rows_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """A header and one line a rank; host names need no quotes.

    Raises
    ------
    EmitError
        If a name is no host name, or two ranks share a GPU.
    """
    lines = ["rank,host,node_rank,local_rank,gpu"]
    lines += [
        f"{row.rank},{row.host},{row.node_rank},{row.local_rank},{row.gpu}"
        for row in rows_of(plan)
    ]
    return "\n".join(lines) + "\n"
