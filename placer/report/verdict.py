"""What a plan is worth, in a few lines: the first that anybody reads of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placer.base.errors import InfeasibleError
from placer.base.units import counted, format_bytes, format_seconds, plural
from placer.cost import JITTER
from placer.job.started import STARTERS
from placer.placement.baselines import order_in_use_of, started_of
from placer.placement.plan import OBJECTIVES, Plan
from placer.placement.robust import uses_needless_hosts
from placer.placement.rules import breaks_launch_order
from placer.report.homes import Home, homes_of
from placer.report.words import (
    BETTER,
    NOUN,
    amount,
    compared,
    each,
    gap_words,
    hours_text,
    knows_work,
    lacks_memory,
    proved,
    saved_text,
    share_text,
    unbeaten,
)


def reason(plan: Plan, before: Mapping[str, Any]) -> str:
    """What the slower placement ``before`` does that ``plan`` does not.

    Of all axes the one is told that is exposed longest beside the plan; empty where
    none is.

    ``before``: ``exposed_s`` and ``crossings`` of the other placement, as in a score.
    """
    mine, theirs = plan.score.get("exposed_s", {}), before["exposed_s"]
    more = {axis: theirs[axis] - mine.get(axis, 0.0) for axis in theirs}
    axis = max(more, key=more.__getitem__, default="")
    if not axis or more[axis] <= 0:
        return ""
    crossings = before["crossings"], plan.score.get("crossings", {})
    for home in homes_of([plan], crossings):
        if home.axis == axis and home.leaving[0] > home.leaving[1]:
            return _crossed(home)
    return f"{axis} waits {format_seconds(more[axis])} a {plan.period} longer"


def _crossed(home: Home) -> str:
    """``1 of 32 tp groups crosses racks, and all wait for it``."""
    count, of = home.leaving[0], home.groups[0]
    nouns, tiers = plural(home.noun, of), plural(home.tier, 2)
    if count == of:
        whole = f"the {home.noun} crosses {tiers}"
        return f"all {of:,} {nouns} cross {tiers}" if of > 1 else whole
    words = ("crosses", "it") if count == 1 else ("cross", "them")
    return (
        f"{count:,} of {of:,} {nouns} {words[0]} {tiers}, and all wait for {words[1]}"
    )


KEEP, MOVE, INFEASIBLE = "keep", "move", "infeasible"
# Broken rules that are named; where there are more, all but the last few.
_MOST_BROKEN = 4

Facts = Mapping[str, Any]


def sentence(plan: Plan, facts: Facts) -> str:
    """The verdict in one line; empty for what was not searched.

    ``facts``: what is advised, and what is saved, as a plan's ``verdict`` has it.
    """
    return "; ".join(sentences(plan, facts))


def sentences(plan: Plan, facts: Facts) -> list[str]:
    """The verdict, a thought each: the decision, the order in use, why, the plan.

    A plan made after a failure is compared with the one before. Three where the order
    in use is kept.
    """
    if not plan.bound:
        return []
    if {"fewest", "moved"} <= plan.previous.keys():
        found = [*_repaired(plan)]
    elif _is_kept(facts):
        found = [
            f"Keep your order: {why_kept(plan.bound, facts, plan.period)}",
            f"your order: {name_of_order(plan)}, {_worth(plan)} on {_nodes(plan)}",
            unbeaten(plan.bound),
        ]
    else:
        found = [*_compared(plan, facts)]
    return [*filter(None, [*found, _memory(plan.score)])]


def infeasible_verdict(error: InfeasibleError) -> dict[str, Any]:
    """The verdict where no placement keeps the rules, in the form of a plan's."""
    text = "; ".join([*error.reason.splitlines(), *error.hints])
    return {
        "advice": INFEASIBLE,
        "proved": error.is_proved,
        "reason": error.reason,
        "hints": [*error.hints],
        "text": f"Infeasible: {text}",
    }


def is_kept(plan: Plan) -> bool:
    """Whether the plan is the order that its user has."""
    return bool(plan.bound) and _is_kept(plan.verdict)


def _is_kept(facts: Facts) -> bool:
    return facts.get("ranks_moved") == 0


def name_of_order(plan: Plan) -> str:
    """What the order is that a user has: ``torchrun-c10d (hosts by name)``."""
    started, named = started_of(plan), plan.inputs.get("hosts")
    rule = STARTERS[started.name] if started else "hosts as given"
    return f"{name_in_use(plan)} ({rule if named else rule.replace('given', 'listed')})"


def name_in_use(plan: Plan) -> str:
    """The order that a user has: the launcher of the script, else the baseline."""
    started = started_of(plan)
    return order_in_use_of(plan) if started is None else started.name


def why_broken(violations: Sequence[str]) -> str:
    """Which rules the order in use breaks; empty where it keeps them."""
    if not violations:
        return ""
    count = len(violations)
    shown = violations if count <= _MOST_BROKEN else violations[: _MOST_BROKEN - 1]
    named = ", ".join(one.partition(": the first")[0] for one in shown)
    more = f", and {count - len(shown)} more" * (len(shown) < count)
    rules = "a rule of the job" if count == 1 else f"{count} rules of the job"
    broken = f"your order breaks {rules}"
    if all(map(breaks_launch_order, violations)):
        broken = "the launcher cannot start your order"
    elif all(map(uses_needless_hosts, violations)):
        broken = "your order uses nodes to avoid"
    return f"{broken}: {named}{more}"


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


def _worth(plan: Plan, value: float | None = None) -> str:
    """The value of a plan, or another, with its unit: ``1.2 s a step``."""
    objective = plan.bound["objective"]
    own = plan.bound["value"] if value is None else value
    return f"{amount(objective, own)} {each(objective, plan.period)}"


def why_kept(bound: Mapping[str, Any], facts: Facts, period: str = "step") -> str:
    """Why an order that costs the bound's value is kept.

    ``bound``: of the plan. ``facts``: what the best that was found would save, as
    `saved_text` takes it. ``period``: what times are of, `Plan.period`.
    """
    saved = facts["saved_share"]
    if bound["status"] == "optimal":
        return "nothing to win"
    if not saved and bound["gap"] > JITTER:
        return "no better one was found"
    if saved > JITTER:
        return f"another order may save {saved_text('time', facts, period)}"
    share = share_text(saved) if saved else gap_words(bound["gap"])
    return f"nothing measurable to win ({share})"


def _compared(plan: Plan, facts: Facts) -> Iterator[str]:
    """The plan beside the order that its user would have had."""
    objective = plan.bound["objective"]
    usual = plan.baselines.get(order_in_use_of(plan), {})
    other = usual.get(OBJECTIVES[objective])
    if other is not None and {"advice", "reason", "saved_share"} <= facts.keys():
        broken = why_broken(usual.get("violates", ()))
        yield _decision(plan, facts, broken)
        yield f"your order: {name_of_order(plan)}, {_worth(plan, other)}"
        yield broken
        if facts["advice"] == MOVE and facts["reason"] != broken:
            yield f"in your order {facts['reason']}"
    yield unbeaten(plan.bound)
    # Told where anybody can measure that there are any.
    saved = facts.get("saved_share", 0.0) if facts.get("advice") == MOVE else 0.0
    hours = _hours(plan, max(saved, 0.0))
    yield f"the plan: {_worth(plan)} on {_where(plan)}{hours}"


def _decision(plan: Plan, facts: Facts, broken: str) -> str:
    """Whether to move, and what that saves."""
    objective, share = plan.bound["objective"], facts["saved_share"]
    saved = saved_text(objective, facts, plan.period)
    saved = f"{'saves' if share > 0 else 'costs'} {saved}" if share else "no faster"
    if facts["advice"] == KEEP:
        return f"Nothing measurable to win: {saved}"
    if broken and facts["reason"] == broken:
        return f"Move, as {broken.partition(':')[0]}: {saved}"
    return f"Move: {saved}"


def _repaired(plan: Plan) -> Iterator[str]:
    """What became of the cost after a failure, and what it moved."""
    about, objective = plan.previous, plan.bound["objective"]
    own, before = plan.bound["value"], about.get("value_before")
    if before is None:
        yield f"{NOUN[objective]} {amount(objective, own)}"
    elif own == before:
        worse = BETTER[objective][1]
        yield f"no {worse} than before: {NOUN[objective]} {amount(objective, own)}"
    else:
        is_same = before and "given_up" not in about
        hours = _hours(plan, 1 - own / before) if is_same else ""
        yield compared(objective, own, before, "before", plan.period) + hours
    if given_up := about.get("given_up"):
        yield f"{counted(len(given_up), 'replica')} given up"
    if not about["moved"]:
        yield f"all {plan.world_size:,} ranks stay"
    else:
        moved = f"{about['moved']:,} of {plan.world_size:,} ranks move"
        yield moved + ", the fewest possible" * (about["moved"] == about["fewest"])
    bound = plan.bound
    how_good = proved(bound["status"], bound["lower_bound"], bound["gap"])
    yield f"{_where(plan)}, {how_good}"


def _nodes(plan: Plan) -> str:
    return counted(len(plan.nodes), "node")


def _where(plan: Plan) -> str:
    """How many nodes, in how many domains."""
    tier, domains = inner_domains(plan)
    if not tier:
        return _nodes(plan)
    return f"{_nodes(plan)} in {counted(len(domains), tier)}"


def _hours(plan: Plan, share: float) -> str:
    """GPU hours a day that a share of the step is worth, where they are known."""
    if plan.bound["objective"] != "time" or not knows_work(plan.score):
        return ""
    hours = hours_text(plan.world_size, share)
    return f", {hours}" if hours else ""


def _memory(score: Mapping[str, Any]) -> str:
    """That the job does not fit, if so."""
    if not lacks_memory(score):
        return ""
    need = format_bytes(score["memory_bytes"]["total"])
    has = format_bytes(score["memory_limit_bytes"])
    return f"does not fit: {need} of memory needed, {has} in a GPU"
