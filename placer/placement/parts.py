"""How the groups of a plan lie: in parts of a tier's domains, and where they belong.

Those that lie elsewhere than in the home of their axis are shown. Levels are the node
and the tiers around it, the whole machine last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import gcd, lcm

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


# Where this share of the groups lies in a tier, that tier can hold them.
_SHOWN = 0.1


def room_wanted(plan: Plan, axis: str) -> int | None:
    """Ranks of a domain that holds a group, and every group in it of axes within.

    A pipeline is no use in a rack if the tensor-parallel groups of its stages do not
    fit beside it. None where the plan does not say, or the axis has no such order.
    """
    axes = plan.axes
    if axes is None or plan.role_of_rank:
        return None
    dense = axes.tp * axes.cp
    experts = axes.ep * axes.etp if axes.divides_experts else 1
    return {
        "tp": axes.tp,
        "cp": dense,
        "etp": axes.etp,
        "ep": experts,
        "pp": lcm(dense, experts) * axes.pp,
        "dp": dense * axes.pp * axes.dp,
    }.get(axis)


def fullest(plan: Plan, tiers: Sequence[str]) -> list[int]:
    """Ranks in the fullest domain of each tier, the last of which is the machine.

    0 where the plan does not name the domains of a tier.
    """
    on_node = Counter(plan.node_of_rank.tolist())
    names = {tiers[0]: plan.nodes, **plan.domains, tiers[-1]: ("",) * len(plan.nodes)}
    found = []
    for tier in tiers:
        inside: Counter[str] = Counter()
        if own := names.get(tier):
            for node, ranks in on_node.items():
                inside[own[node]] += ranks
        found.append(max(inside.values(), default=0))
    return found


def home_level(
    wanted: int | None,
    room: Sequence[int],
    held: Sequence[Sequence[int]],
    scale_up: int,
    is_best: bool,
) -> int:
    """The innermost level that can hold a group.

    It can where a tenth of the groups lie so, on any side; unless a side is proved
    optimal, also where a domain has the room, but not further in than NVLink goes.

    ``wanted``: ranks that a domain must have room for; None if not known. ``room``:
    ranks in the fullest domain of each level. ``held``: by side: groups of which each
    level is the innermost that holds all ranks. ``scale_up``: the outermost level of
    NVLink. ``is_best``: whether a side is proved optimal.
    """
    last = len(room) - 1
    shown = next(
        (
            level
            for level in range(last)
            if any(sum(row[: level + 1]) >= _SHOWN * sum(row) > 0 for row in held)
        ),
        last,
    )
    if is_best or wanted is None:
        return shown
    fits = next((level for level, ranks in enumerate(room) if ranks >= wanted), last)
    return min(shown, max(fits, scale_up))
