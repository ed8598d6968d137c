"""The axes of a plan's job, for the formats that write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from placer.base.errors import EmitError
from placer.emit.nodes import NodeRanks
from placer.job.axes import AXES, Parallelism
from placer.placement.plan import Plan


def axes_of(plan: Plan, format: str) -> Parallelism:
    """Axis sizes and rank order of the plan's job."""
    sizes = plan.job.get("parallelism")
    order = tuple(str(plan.job.get("order", "")).split("-"))
    if not sizes or sorted(order) != sorted(AXES):
        raise EmitError(
            f"{format} needs the sizes of the axes, which this plan does not give "
            "(job.parallelism); plans of `placer place` do"
        )
    known = (*AXES, "vp", "etp")
    given: dict[str, Any] = {axis: int(sizes.get(axis, 1)) for axis in known}
    given["etp"] = int(sizes.get("etp", given["tp"]))
    axes = Parallelism(order=order, **given)
    if axes.world_size != plan.world_size or min(map(axes.size, known)) < 1:
        product = prod((axes.tp, axes.cp, axes.pp, axes.dp))
        raise EmitError(
            f"tp x cp x pp x dp is {product}, the plan has {plan.world_size} ranks"
        )
    if axes.tp * axes.cp * axes.dp % (axes.ep * axes.etp):
        raise EmitError(
            f"ep x etp, {axes.ep} x {axes.etp}, does not divide tp x cp x dp, "
            f"{axes.tp} x {axes.cp} x {axes.dp}"
        )
    return axes


def array_of_flags(
    nodes: Sequence[NodeRanks],
    usage: str,
    remark: str,
    name: str,
    flags: Mapping[str, int | str],
) -> str:
    """Shell text that sets an array of flags; a switch has an empty value.

    ``usage``: comment that opens it, in which launchers that place the ranks are put.
    """
    script, launchers = "torchrun.sh", "torchrun"
    if not all(node.consecutive for node in nodes):
        script = "torchrun-wrapper.sh python"
        launchers = "torchrun-wrapper, env or sbatch"
    lines = [f"  --{flag} {value}".rstrip() for flag, value in flags.items()]
    head = usage.format(script=script, launchers=launchers) + remark
    return "\n".join((f"{head}{name}=(", *lines, ")\n"))
