"""The rank map as JSON, for programs that start processes themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from placer.emit.rank_map import rows_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """A ``placer/rank-map`` document, one line a rank.

    Raises
    ------
    EmitError
        If a name is no host name, or two ranks share a GPU.
    """
    ranks = ",\n".join(f"  {json.dumps(vars(row))}" for row in rows_of(plan))
    return (
        '{"format": "placer/rank-map", "version": 1,\n'
        f' "world_size": {plan.world_size},\n "ranks": [\n{ranks}\n]}}\n'
    )
