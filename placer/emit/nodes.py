"""A plan as launchers see it: its nodes and axes, and what they may refuse in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from placer.base.errors import EmitError
from placer.base.hostlist import name_problem
from placer.emit.registry import FORMATS, formats_for
from placer.job.axes import AXES, Parallelism
from placer.placement.plan import Plan


@dataclass(frozen=True)
class NodeRanks:
    """The ranks of one node."""

    host: str
    ranks: tuple[int, ...]  # global ranks, ascending; the k-th has local rank k
    gpus: tuple[int, ...]  # GPU of each of them, as an index into the node

    @property
    def consecutive(self) -> bool:
        """Whether no rank is missing between the first and the last."""
        return self.ranks[-1] - self.ranks[0] == len(self.ranks) - 1

    @property
    def gpus_in_order(self) -> bool:
        """Whether local rank k runs on GPU k."""
        return self.gpus == tuple(range(len(self.gpus)))

    @property
    def aligned(self) -> bool:
        """Whether the first rank is a multiple of the number of ranks."""
        return self.ranks[0] % len(self.ranks) == 0

    @property
    def reach(self) -> int:
        """How many GPUs the node must have, counted from GPU 0."""
        return max(self.gpus) + 1


def nodes_of(plan: Plan) -> list[NodeRanks]:
    """The nodes that hold ranks, by lowest rank; the index is the node rank."""
    at: dict[int, list[int]] = {}
    for rank, node in enumerate(plan.node_of_rank.tolist()):
        at.setdefault(node, []).append(rank)
    if not at:
        raise EmitError("the plan has no ranks")
    gpu_of_rank = plan.gpu_of_rank.tolist()
    nodes = [
        NodeRanks(
            host=plan.nodes[node],
            ranks=tuple(ranks),
            gpus=tuple(gpu_of_rank[rank] for rank in ranks),
        )
        for node, ranks in at.items()
    ]
    _refuse_bad_hosts([node.host for node in nodes])
    for node in nodes:
        if len(set(node.gpus)) < len(node.gpus) or min(node.gpus) < 0:
            raise EmitError(
                f"the ranks of {node.host} need a GPU each, "
                f"but the plan gives them GPUs {_shown(node.gpus)}"
            )
    return nodes


# What launchers make of the ranks of a node that lacks a property of `NodeRanks`.
_TOLD = {
    "consecutive": "{format} gives every node consecutive ranks, but {host} holds "
    "{ranks}",
    "gpus_in_order": "{format} says nothing of GPUs, so local rank k takes GPU k, but "
    "the ranks of {host} run on GPUs {gpus}",
    "aligned": "{format} makes the local rank of rank modulo ranks of the node, but "
    "{host} holds {ranks}",
}


def nodes_for(plan: Plan, format: str) -> list[NodeRanks]:
    """The nodes, where they are as the format needs them."""
    nodes = nodes_of(plan)
    require(nodes, format, FORMATS[format].needs)
    return nodes


def require(nodes: Sequence[NodeRanks], format: str, needs: Collection[str]) -> None:
    """Nothing, when the nodes are what is needed (see `placer.emit.registry`)."""
    for what, told in _TOLD.items():
        if what not in needs:
            continue
        if node := next((node for node in nodes if not getattr(node, what)), None):
            ranks, gpus = _shown(node.ranks), _shown(node.gpus)
            told = told.format(format=format, host=node.host, ranks=ranks, gpus=gpus)
            raise EmitError(f"{told}; {_alternatives(nodes)}")
    counts = {node.reach for node in nodes}
    if "equal" in needs and len(counts) > 1:
        pods, end = f"the pods of {format}", _alternatives(nodes)
        if format.endswith("-request"):
            pods, end = "pods of one request", "no annotation says that"
        differ = f"nodes need {min(counts)} to {max(counts)} GPUs"
        raise EmitError(f"{pods} are alike, but {differ}; {end}")


def _refuse_bad_hosts(hosts: Sequence[str]) -> None:
    """No launcher file, script or shell ever sees a name that is not a host name."""
    problems = [problem for problem in map(name_problem, hosts) if problem]
    problems += [
        f"two nodes are called {host}"
        for host, count in Counter(hosts).items()
        if count > 1
    ]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise EmitError(problems[0] + more)


def _alternatives(nodes: Sequence[NodeRanks]) -> str:
    lacks = [what for what in _TOLD if not all(getattr(node, what) for node in nodes)]
    lacks += ["equal"] if len({node.reach for node in nodes}) > 1 else []
    return f"formats that can: {', '.join(formats_for(lacks))}"


def _shown(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")


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
