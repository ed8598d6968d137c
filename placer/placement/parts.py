"""How the groups of a plan lie in the domains of a tier, part by part."""

from __future__ import annotations

from math import gcd

import numpy as np

from placer.base.arrays import IntArray
from placer.job.even import axis_of, is_even
from placer.placement.inputs import inputs_of
from placer.placement.plan import Plan


def domain_of_members(plan: Plan, axis: str, tier: str) -> IntArray | None:
    """Domain of every member of every group, numbered; shape (groups, members).

    None where the plan does not say which groups or domains there are.
    """
    if plan.axes is None or plan.role_of_rank:
        return None
    if tier == plan.topology.get("tiers", (tier,))[0] and tier not in plan.domains:
        of_node = np.arange(len(plan.nodes))
    elif tier in plan.domains:
        of_node = np.unique(plan.domains[tier], return_inverse=True)[1].ravel()
    else:
        return None
    found: IntArray = of_node[plan.node_of_rank][plan.axes.ranks_of_group[axis]]
    return found


def is_uneven(domain: IntArray) -> bool:
    """Whether a group of domains, (members,), is not in equal parts, one a domain."""
    parts = parts_of(domain)
    return len(np.unique(domain)) < len(parts) or len({*parts}) > 1


def parts_of(domain: IntArray) -> list[int]:
    """Lengths of the runs of a group of domains, (members,)."""
    begins = np.flatnonzero(np.diff(domain, prepend=domain[0] - 1))
    lengths: list[int] = np.diff(np.append(begins, len(domain))).tolist()
    return lengths


def ranks_a_domain(domain: IntArray) -> int:
    """Ranks of a group in a domain, which the parts of all groups are multiples of."""
    width, found = domain.shape[1], 0
    for number in np.unique(1 + (np.diff(domain, axis=1) != 0).sum(axis=1)).tolist():
        found = gcd(found, width // number)
    return found


def even_tier(plan: Plan, axis: str) -> str:
    """The tier of equal parts that a plan was made under; empty without the rule."""
    inputs = plan.inputs.get("job", {}).get("even", {})
    added = plan.bound.get("require") or {}
    asked = [
        tier for key, tier in added.items() if is_even(key) and axis_of(key) == axis
    ]
    return str(next(iter(asked), inputs.get(axis, "")))


def part_environment(plan: Plan) -> dict[str, str]:
    """What back ends for experts want to know of NVLink domains, by variable.

    For plans under a rule of equal parts of ep; none for others. DeepEP's HybridEP
    reads all three (deepseek-ai/DeepEP, branch hybrid-ep); on NVL72 racks
    Megatron-Bridge's recipes say 72 and 1, on hosts of 8 GPUs 8 and 0
    (NVIDIA-NeMo/Megatron-Bridge, ``recipes``).
    """
    tier = even_tier(plan, "ep")
    domain = domain_of_members(plan, "ep", tier) if tier else None
    if domain is None:
        return {}
    machine = inputs_of(plan, force=True).topology
    widest = max(machine.scale_up_tier, 0)
    return {
        "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN": str(ranks_a_domain(domain)),
        "NVLINK_DOMAIN_SIZE": str(int(machine.gpus_of_domain(widest).max())),
        "USE_MNNVL": str(int(widest > 0)),
    }
