"""What a plan of an allocation says about requests, as comments under each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from placer.base.hostlist import compress
from placer.base.units import format_seconds
from placer.emit.domains import quoted
from placer.emit.nodes import NodeRanks
from placer.placement.launcher_orders import natural_key
from placer.placement.plan import Plan

HOSTNAME = "kubernetes.io/hostname"


def guaranteed(plan: Plan) -> Iterator[str]:
    """The least strict request that guarantees the plan's value, in words.

    Before it the spare nodes, which no scheduler is asked for.
    Nothing for a plan that no allocation made; that there is none, where there is none.
    """
    request = plan.request
    if not request:
        return
    if spares := plan.rules.get("spare_nodes"):
        shown = compress(sorted(spares, key=natural_key))
        yield f"# Not asked for: the spare nodes of the plan, {shown}."
    if "slice" not in request:
        yield "# No request by shape guarantees the plan's value: ask for its nodes."
        return
    size, tier, within = (request[key] for key in ("slice", "tier", "within"))
    asks = "any nodes" if size == 1 else f"slices of {size} nodes in one {quoted(tier)}"
    if within:
        asks += f", all in one {quoted(within)}"
    value = request["value"]
    step = (
        f"{format_seconds(value)} a step"
        if plan.bound.get("objective") == "time"
        else "the plan's hop cost"
    )
    yield f"# The least strict request that still guarantees {step}: {asks}."


def these_nodes(plan: Plan, nodes: Sequence[NodeRanks]) -> Iterator[str]:
    """Affinity of pods to the very nodes of a plan that an allocation made."""
    if plan.request:
        names = json.dumps(sorted((node.host for node in nodes), key=natural_key))
        yield "# These very nodes, whatever the topology; in the pod template's spec:"
        for line in (
            "affinity:",
            "  nodeAffinity:",
            "    requiredDuringSchedulingIgnoredDuringExecution:",
            "      nodeSelectorTerms:",
            "        - matchExpressions:",
            f"            - {{key: {HOSTNAME}, operator: In, values: {names}}}",
        ):
            yield f"#   {line}"


def comments(plan: Plan, nodes: Sequence[NodeRanks]) -> str:
    """Both, as the lines of a comment."""
    lines = [*guaranteed(plan), *these_nodes(plan, nodes)]
    return "".join(f"{line}\n" for line in lines)


def least_segment(plan: Plan, count: int, asked: int) -> Iterator[str]:
    """Slurm's option for the least strict request, where another one is asked for."""
    yield from guaranteed(plan)
    size: Any = plan.request.get("slice", asked)
    if size != asked and 1 < size <= count:
        yield f"##SBATCH --segment={size}"


def not_the_others(plan: Plan) -> Iterator[str]:
    """Slurm's option for all nodes but those that other jobs may have."""
    if others := plan.request.get("others"):
        yield "# Or none of the free nodes that are left to other jobs:"
        yield f"##SBATCH --exclude={others}"
