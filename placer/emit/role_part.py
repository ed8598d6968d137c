"""One instance of a role, as a plan of its own.

Roles are started apart from each other: a trainer by ``srun``, each server by its own
command. Ranks are numbered from 0 in each, as its job has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from placer.base.errors import InputError
from placer.job.axes import MEGATRON_DEFAULT_ORDER
from placer.placement.plan import Plan


def role_part(plan: Plan, asked: str) -> Plan:
    """The plan of one instance of a role.

    ``plan``: of a workload. ``asked``: ``role``, or ``role:instance`` where there are
    several.
    """
    role, instance = _named(plan, asked)
    numbers = plan.instance_of_rank
    own = [name == role for name in plan.role_of_rank]
    ranks = np.flatnonzero(np.array(own) & (numbers == instance))
    used, node_of_rank = np.unique(plan.node_of_rank[ranks], return_inverse=True)
    roles = plan.inputs.get("job", {}).get("roles", ()) if plan.inputs else ()
    job: dict[str, Any] = next((r["job"] for r in roles if r["name"] == role), {})
    sizes = dict(job.get("parallelism", {}))
    order = str(sizes.pop("order", "-".join(MEGATRON_DEFAULT_ORDER)))
    name = f"{plan.job.get('name', 'workload')}-{role}-{instance}"
    about = {"name": name, "order": order, "parallelism": sizes}
    return replace(
        plan,
        job={**about, "launcher": plan.job.get("launcher", "node-contiguous")},
        nodes=tuple(plan.nodes[node] for node in used.tolist()),
        domains={
            tier: tuple(names[node] for node in used.tolist())
            for tier, names in plan.domains.items()
        },
        node_of_rank=node_of_rank.ravel(),
        gpu_of_rank=plan.gpu_of_rank[ranks],
        role_of_rank=(),
        instance_of_rank=np.zeros(0, np.int64),
        request={},
        inputs={**plan.inputs, "job": job},
    )


def _named(plan: Plan, asked: str) -> tuple[str, int]:
    """The role and the number of the instance that are asked for."""
    name, _, text = asked.partition(":")
    count: dict[str, int] = {}
    for role, number in zip(plan.role_of_rank, plan.instance_of_rank, strict=True):
        count[role] = max(count.get(role, 0), int(number) + 1)
    if not count:
        raise InputError("the plan is of one job, not of roles", key="role")
    if name not in count:
        known = f"known: {', '.join(count)}"
        raise InputError(f'there is no role "{name}"', key="role", hint=known)
    hint = f"{name}:0" + (f" to {name}:{count[name] - 1}" if count[name] > 1 else "")
    if not text and count[name] > 1:
        message = f"{name} has {count[name]} instances"
        raise InputError(message, key="role", hint=hint)
    if text and not (text.isdecimal() and int(text) < count[name]):
        message = f'{name} has no instance "{text}"'
        raise InputError(message, key="role", hint=hint)
    return name, int(text or 0)
