"""The rank map as rows, for programs, spreadsheets and ``awk``; of roles, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from placer.base.hostlist import compress
from placer.emit.nodes import nodes_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan

# What a job without roles is called: one instance of one role.
JOB = "job"


def render_roles(plan: Plan) -> str:
    """A ``placer/role-map`` document, one line an instance.

    Each has its ``role`` and ``instance``, its ``hosts`` as a host list in the order of
    their first rank, and ``host`` and ``gpu`` of every rank, numbered inside the
    instance; ``first_rank`` is the number of the first in the plan.
    """
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in _instances(plan))
    return (
        '{"format": "placer/role-map", "version": 1,\n'
        f' "world_size": {plan.world_size},\n "instances": [\n{lines}\n]}}\n'
    )


def _instances(plan: Plan) -> Iterator[dict[str, Any]]:
    roles = plan.role_of_rank or (JOB,) * plan.world_size
    numbers = plan.instance_of_rank.tolist() or [0] * plan.world_size
    entries = zip(zip(roles, numbers, strict=True), rows_of(plan), strict=True)
    for (role, instance), grouped in groupby(entries, key=lambda entry: entry[0]):
        rows = [row for _, row in grouped]
        yield {
            "role": role,
            "instance": instance,
            "first_rank": rows[0].rank,
            "hosts": compress(dict.fromkeys(row.host for row in rows)),
            "host": [row.host for row in rows],
            "gpu": [row.gpu for row in rows],
        }


@dataclass(frozen=True)
class RankRow:
    """Where one rank runs."""

    rank: int
    host: str
    node_rank: int  # position of its node when nodes are ordered by their lowest rank
    local_rank: int  # position among its node's ranks
    gpu: int  # index of the GPU in the node


def render_json(plan: Plan) -> str:
    """A ``placer/rank-map`` document, one line a rank."""
    ranks = ",\n".join(f"  {json.dumps(vars(row))}" for row in rows_of(plan))
    return (
        '{"format": "placer/rank-map", "version": 1,\n'
        f' "world_size": {plan.world_size},\n "ranks": [\n{ranks}\n]}}\n'
    )


def render_csv(plan: Plan) -> str:
    """A header and one line a rank; host names need no quotes."""
    lines = ["rank,host,node_rank,local_rank,gpu"]
    lines += [
        f"{row.rank},{row.host},{row.node_rank},{row.local_rank},{row.gpu}"
        for row in rows_of(plan)
    ]
    return "\n".join(lines) + "\n"


def rows_of(plan: Plan) -> Iterator[RankRow]:
    """One row a rank, in rank order."""
    node_rank_of_host = {node.host: k for k, node in enumerate(nodes_of(plan))}
    columns = zip(
        plan.host_of_rank,
        plan.local_rank.tolist(),
        plan.gpu_of_rank.tolist(),
        strict=True,
    )
    for rank, (host, local_rank, gpu) in enumerate(columns):
        yield RankRow(rank, host, node_rank_of_host[host], local_rank, gpu)
