"""DeepSpeed's host file: ``HOST slots=N``, ranks numbered host by host.

Source: DeepSpeed edaa7221, ``deepspeed/launcher/runner.py`` (``_parse_hostfile``): a
host may stand there once, and its slots are GPUs 0 to N-1 in order. ``launch.py`` gives
a rank ``LOCAL_RANK = rank % N``, which is its place on the node only where the node's
first rank is a multiple of N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.nodes import (
    nodes_of,
    require_aligned,
    require_consecutive,
    require_gpus_in_order,
)

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """One line a host, in the plan's node order.

    Raises
    ------
    EmitError
        If a node's ranks are not consecutive, not on GPU 0, 1, 2 ... in their order or
        do not start at a multiple of their number, or a name is no host name.
    """
    nodes = nodes_of(plan)
    require_consecutive(nodes, "deepspeed")
    require_gpus_in_order(nodes, "deepspeed")
    require_aligned(nodes, "deepspeed")
    return "".join(f"{node.host} slots={len(node.ranks)}\n" for node in nodes)
