"""DeepSpeed's host file: ``HOST slots=N``, ranks numbered host by host.

Source: DeepSpeed, ``deepspeed/launcher/runner.py`` (``parse_hostfile``): a host may
stand there once, and its slots are GPUs 0 to N-1 in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.emit.nodes import nodes_of, require_consecutive, require_gpus_in_order

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def render(plan: Plan) -> str:
    """One line a host, in the plan's node order.

    Raises
    ------
    EmitError
        If a node's ranks are not consecutive or not on GPU 0, 1, 2 ... in their order,
        or a name is no host name.
    """
    nodes = nodes_of(plan)
    require_consecutive(nodes, "deepspeed")
    require_gpus_in_order(nodes, "deepspeed")
    return "".join(f"{node.host} slots={len(node.ranks)}\n" for node in nodes)
