"""What a plan is worth, in one sentence: the first that anybody reads of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placer.placement.robust import uses_needless_hosts
from placer.placement.rules import breaks_launch_order
from placer.report.words import (
    NOUN,
    amount,
    compared,
    gpu_hours_a_day,
    knows_work,
    no_better,
    no_worse,
    proved,
)
from placer.units import format_bytes, plural

if TYPE_CHECKING:
    from placer.placement.plan import Plan

# What a user has without placer: the hosts in the order of the allocation.
USUAL = "given-order"
_VALUE = {"time": "step_time_s", "hop-cost": "hop_cost"}


def verdict(plan: Plan) -> str:
    """The sentence, without a full stop; empty for a plan that was not searched.

    It compares the plan with the order that its user would have had, says how many
    nodes it takes and how good it is proved to be. A plan made after a failure is
    compared with the one before.
    """
    if not plan.bound:
        return ""
    is_repair = "fewest" in plan.previous
    parts = [*(_repaired(plan) if is_repair else _compared(plan)), _where(plan)]
    parts.append(_costs(plan) if is_repair else _saves(plan))
    if ": it is optimal" not in parts[0]:
        bound = plan.bound
        parts.append(proved(bound["status"], bound["lower_bound"], bound["gap"]))
    parts.append(_memory(plan.score))
    return "; ".join(filter(None, parts))


def inner_domains(plan: Plan) -> tuple[str, dict[str, int]]:
    """The tier in whose domains the nodes lie, and the nodes that each of them gives.

    The tier is the largest NVLink domain where that is more than a node, else the first
    above the node. Both are empty where there is none below the whole machine.
    """
    tiers = plan.outer_tiers[1:]
    scale_up = plan.topology.get("tiers", ())[: plan.topology.get("scale_up", 0)]
    joined = [tier for tier in tiers if tier in scale_up]
    named = [tier for tier in (*joined[-1:], *tiers) if tier in plan.domains]
    # A rack that is the whole machine has no name among the domains.
    if not named or (joined and joined[-1] != named[0]):
        return "", {}
    return named[0], dict(Counter(plan.domains[named[0]]))


def _compared(plan: Plan) -> Iterator[str]:
    """The plan beside the order that its user would have had."""
    objective, own = plan.bound["objective"], plan.bound["value"]
    usual = plan.baselines.get(USUAL, {})
    other = usual.get(_VALUE[objective])
    yours = f"your order ({USUAL}{_broken(usual.get('violates', ()))})"
    if other is not None and (own != other or plan.bound["status"] != "optimal"):
        yield compared(
            objective, own, other, yours, usual.get("noise", {}), plan.period
        )
        return
    if other is not None:
        yield f"{no_better(objective, yours)}: it is optimal already"
    yield f"{NOUN[objective]} {amount(objective, own)}"


def _broken(violations: Sequence[str]) -> str:
    """What an order breaks, after its name."""
    if not violations:
        return ""
    if all(map(breaks_launch_order, violations)):
        return ", which the job's launcher cannot start"
    if all(map(uses_needless_hosts, violations)):
        return ", which uses nodes to avoid"
    return ", which breaks hard rules of the job"


def _repaired(plan: Plan) -> Iterator[str]:
    """What became of the cost after a failure, and what it moved."""
    about, objective = plan.previous, plan.bound["objective"]
    own, before = plan.bound["value"], about.get("value_before")
    if before is None:
        yield f"{NOUN[objective]} {amount(objective, own)}"
    elif own == before:
        same = no_worse(objective, "before")
        yield f"{same}: {NOUN[objective]} {amount(objective, own)}"
    else:
        yield compared(objective, own, before, "before", {}, plan.period)
    if given_up := about.get("given_up"):
        yield f"{len(given_up):,} {plural('replica', len(given_up))} given up"
    if not about["moved"]:
        yield f"all {plan.world_size:,} ranks stay"
        return
    moved = f"{about['moved']:,} of {plan.world_size:,} ranks move"
    yield moved + ", the fewest possible" * (about["moved"] == about["fewest"])


def _where(plan: Plan) -> str:
    """How many nodes, in how many domains."""
    nodes = f"{len(plan.nodes):,} {plural('node', len(plan.nodes))}"
    tier, domains = inner_domains(plan)
    if not tier:
        return nodes
    return f"{nodes} in {len(domains):,} {plural(tier, len(domains))}"


def _saves(plan: Plan) -> str:
    """GPU hours a day, where the model can tell that there are any."""
    usual = plan.baselines.get(USUAL, {})
    if plan.bound["objective"] != "time" or not knows_work(plan.score):
        return ""
    if not usual.get("step_time_s") or usual.get("noise", {}).get("within"):
        return ""
    share = 1 - plan.bound["value"] / usual["step_time_s"]
    hours = gpu_hours_a_day(plan.world_size, share)
    return f"saves {hours:,.0f} GPU hours a day" if hours >= 1 else ""


def _costs(plan: Plan) -> str:
    """GPU hours a day that a repair costs, or saves, where its job is the same."""
    before = plan.previous.get("value_before")
    if plan.bound["objective"] != "time" or not before or "given_up" in plan.previous:
        return ""
    if not knows_work(plan.score):
        return ""
    hours = gpu_hours_a_day(plan.world_size, plan.bound["value"] / before - 1)
    word = "costs" if hours > 0 else "saves"
    return f"{word} {abs(hours):,.0f} GPU hours a day" if abs(hours) >= 1 else ""


def _memory(score: Mapping[str, Any]) -> str:
    """That the job does not fit, if so."""
    needs, limit = score.get("memory_bytes"), score.get("memory_limit_bytes")
    if not needs or not limit or needs["total"] <= limit:
        return ""
    need, has = format_bytes(needs["total"]), format_bytes(limit)
    return f"does not fit: {need} of memory needed, {has} in a GPU"
