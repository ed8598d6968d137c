"""Whether the parts of a well-formed plan fit together.

A plan that contradicts itself is still a plan: whoever wants to use it gets an error,
whoever asks whether it holds gets a "no".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

import numpy as np

from placer.base.errors import InputError, Problem, capped
from placer.placement.plan import Plan

# Which only the plan of a workload has.
_ROLES = ("role_of_rank", "instance_of_rank")


class ContradictionError(InputError):
    """A plan is well formed, but its parts do not fit together."""


def require_consistent(plan: Plan, world_size: int, source: str) -> None:
    """Nothing, when the parts of ``plan`` fit together.

    Raises `ContradictionError` if lengths differ, an index points nowhere, a GPU holds
    two ranks, a node is listed twice or the axes do not multiply to ``world_size``.
    """
    found = [
        *_lengths(plan, world_size),
        *_repeated_nodes(plan),
        *_axes(plan, world_size),
    ]
    if len(plan.node_of_rank) == len(plan.gpu_of_rank):
        found += _ranks(plan)
    if found:
        problems = [Problem(message, source, key=key) for key, message in found]
        raise ContradictionError(capped(problems))


def _lengths(plan: Plan, world_size: int) -> Iterator[tuple[str, str]]:
    has_roles = len(plan.role_of_rank) or len(plan.instance_of_rank)
    for key, array in (
        ("node_of_rank", plan.node_of_rank),
        ("gpu_of_rank", plan.gpu_of_rank),
        ("role_of_rank", plan.role_of_rank),
        ("instance_of_rank", plan.instance_of_rank),
    ):
        if len(array) != world_size and (has_roles or key not in _ROLES):
            yield key, f"{len(array)} entries for a world of {world_size}"
    tiers = plan.topology.get("tiers")
    for tier, names in plan.domains.items():
        if len(names) != len(plan.nodes):
            yield f"domains.{tier}", f"{len(names)} entries for {len(plan.nodes)} nodes"
        if tiers is not None and tier not in tiers:
            yield f"domains.{tier}", "topology.tiers has no such tier"


def _repeated_nodes(plan: Plan) -> Iterator[tuple[str, str]]:
    for name, times in Counter(plan.nodes).most_common():
        if times == 1:
            return
        yield "nodes", f"{name} is listed {times} times"


def _axes(plan: Plan, world_size: int) -> Iterator[tuple[str, str]]:
    sizes = plan.job.get("parallelism")
    if not sizes:
        return
    dense = {axis: sizes.get(axis, 1) for axis in ("tp", "cp", "pp", "dp")}
    ranks = prod(dense.values())
    if ranks != world_size:
        message = f"tp x cp x pp x dp is {ranks}, the world has {world_size} ranks"
        yield "job.parallelism", message
        return
    expert = {"tp": sizes.get("etp", 1), "ep": sizes.get("ep", 1), "pp": dense["pp"]}
    edp, rest = divmod(ranks, prod(expert.values()))
    if rest:
        message = f"etp x ep x pp ({prod(expert.values())}) does not divide {ranks}"
        yield "job.parallelism", message
        return
    if expert["ep"] > 1 or expert["tp"] not in (1, dense["tp"]):
        order = plan.job["order"].split("-")
        inside = order[: order.index("pp")]
        expert["dp"] = edp
        strides = [prod(of.get(a, 1) for a in inside) for of in (dense, expert)]
        if dense["pp"] > 1 and strides[0] != strides[1]:
            message = "dense and expert axes do not agree on who is in a pipeline"
            yield "job.parallelism", message


def _ranks(plan: Plan) -> Iterator[tuple[str, str]]:
    """Ranks without a node, and GPUs with two ranks."""
    outside = np.flatnonzero(plan.node_of_rank >= len(plan.nodes))
    if outside.size:
        index = plan.node_of_rank[outside[0]]
        yield (
            f"node_of_rank[{outside[0]}]",
            f"{index} points outside the {len(plan.nodes)} nodes",
        )
    key = plan.node_of_rank * (int(plan.gpu_of_rank.max(initial=0)) + 1)
    by_gpu = np.argsort(key + plan.gpu_of_rank, kind="stable")
    repeat = np.flatnonzero(np.diff((key + plan.gpu_of_rank)[by_gpu]) == 0)
    if repeat.size and not outside.size:
        first, second = by_gpu[repeat[0]], by_gpu[repeat[0] + 1]
        where = f"{plan.nodes[plan.node_of_rank[first]]}:{plan.gpu_of_rank[first]}"
        yield (
            f"gpu_of_rank[{second}]",
            f"ranks {first} and {second} are both on {where} "
            f"({repeat.size} such ranks in all)",
        )
