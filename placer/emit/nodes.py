"""A plan node by node, as launchers see it, and what a launcher may refuse in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.base.errors import EmitError
from placer.base.hostlist import name_problem
from placer.emit.registry import formats_for

if TYPE_CHECKING:
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


# What launchers make of the ranks of a node, by the property of `NodeRanks` that this
# needs.
_TOLD = {
    "consecutive": "{format} gives every node consecutive ranks, but {host} holds "
    "{ranks}",
    "gpus_in_order": "{format} says nothing of GPUs, so local rank k takes GPU k, but "
    "the ranks of {host} run on GPUs {gpus}",
    "aligned": "{format} makes the local rank of rank modulo ranks of the node, but "
    "{host} holds {ranks}",
}


def nodes_in_order(plan: Plan, format: str) -> list[NodeRanks]:
    """The nodes for a launcher that is told only their order and their sizes."""
    nodes = nodes_of(plan)
    require(nodes, format, "consecutive")
    require(nodes, format, "gpus_in_order")
    return nodes


def require(nodes: Sequence[NodeRanks], format: str, what: str) -> None:
    """Nothing, when every node is ``consecutive``, ``gpus_in_order`` or ``aligned``."""
    for node in nodes:
        if not getattr(node, what):
            ranks, gpus = _shown(node.ranks), _shown(node.gpus)
            told = _TOLD[what].format(
                format=format, host=node.host, ranks=ranks, gpus=gpus
            )
            raise EmitError(f"{told}; {_alternatives(nodes)}")


def require_equal_nodes(nodes: Sequence[NodeRanks], format: str) -> None:
    """Nothing, when every node must have as many GPUs as the others."""
    counts = {node.reach for node in nodes}
    if len(counts) > 1:
        raise EmitError(
            f"the pods of {format} are alike, but nodes need {min(counts)} to "
            f"{max(counts)} GPUs; {_alternatives(nodes)}"
        )


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
    names = formats_for(
        free_ranks=not all(node.consecutive for node in nodes),
        free_gpus=not all(node.gpus_in_order for node in nodes),
        unequal_nodes=len({node.reach for node in nodes}) > 1,
        unaligned_nodes=not all(node.aligned for node in nodes),
    )
    return f"formats that can: {', '.join(names)}"


def _shown(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
