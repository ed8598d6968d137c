"""A workload by role: the hosts and the ranks of every instance, as JSON."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from placer.base.hostlist import compress
from placer.emit.rank_map import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.placement.plan import Plan

# What a job without roles is called: one instance of one role.
JOB = "job"


def render(plan: Plan) -> str:
    """A ``placer/role-map`` document, one line an instance.

    Each has its ``role`` and ``instance``, its ``hosts`` as a host list in the order of
    their first rank, and ``host`` and ``gpu`` of every rank, numbered inside the
    instance; ``first_rank`` is the number of the first in the plan.

    Raises
    ------
    EmitError
        If a name is no host name, or two ranks share a GPU.
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
