"""A plan as a page of plain text: what was placed, what it costs, what is proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from placer.base.hostlist import compress, expand
from placer.base.naming import named
from placer.base.units import counted, format_seconds
from placer.cost import JITTER
from placer.job.orders import how_to_number
from placer.placement.launcher_orders import in_natural_order
from placer.placement.parts import domain_of_members, even_tier, is_uneven, parts_of
from placer.placement.plan import Plan
from placer.report.assumed_text import assumed_lines
from placer.report.columns import PLAIN, WIDTH, Look, paragraphs, told, wrapped
from placer.report.gains_text import gain_lines
from placer.report.score_text import score_text
from placer.report.verdict import inner_domains, is_kept, sentences
from placer.report.words import (
    NOUN,
    amount,
    gap_text,
    hosts_text,
    largest_island,
    roles_text,
    slowest_group,
    withdrawn,
)

_FREE = "launcher: {ranks: free}"


def advice_lines(plan: Plan, width: int = WIDTH) -> Iterator[str]:
    """Lines, at most ``width`` columns; none when there is nothing to choose."""
    return told((*_to_do(plan), *_looked_at(plan)), width)


def _to_do(plan: Plan) -> Iterator[str]:
    """The order to launch in, and what launches save that anybody can measure."""
    job = plan.job
    if job.get("auto_order"):
        how = how_to_number(tuple(job["order"].split("-")))
        yield f"rank order {job['order']} chosen" + f" ({how})" * bool(how)
    objective = plan.bound.get("objective", "time")
    yield from (_saving(entry, objective) for entry in _savings(plan))


def _savings(plan: Plan) -> list[Mapping[str, Any]]:
    """Those of other launches that are more than jitter."""
    least = 0.0
    if plan.bound.get("objective", "time") == "time":
        least = JITTER * plan.score.get("step_time_s", 0.0)
    return [one for one in plan.advice.get("savings", ()) if one["saves"] > least]


def _looked_at(plan: Plan) -> Iterator[str]:
    """That no other launch is better, or that nobody has looked."""
    job, advice = plan.job, plan.advice
    status = advice.get("status")
    if status == "proved":
        yield (
            "no other rank order and no free launcher would do better: the lower bound "
            "holds for them too"
        )
    elif status == "not-computed":
        yield (
            "other rank orders and launchers: not computed for more than "
            f"{advice['most_ranks']:,} ranks"
        )
    elif status == "searched":
        if not _savings(plan):
            tried = ", ".join(advice["tried"])
            yield f"no better rank order or launcher found (tried {tried})"
    elif plan.solver.get("deterministic") is False and job.get("launcher") != "free":
        yield "other rank orders and launchers: not computed, no time was left"


def _saving(entry: Mapping[str, Any], objective: str) -> str:
    """One saving: ``order ... would save 41 ms a step (how)``."""
    is_order = entry["change"] == "order"
    subject = f"order {entry['to']}" if is_order else "a free launcher"
    how = entry.get("how") or ("" if is_order else _FREE)
    amount = entry["saves"]
    saved = (
        f"save {format_seconds(amount)} a step"
        if objective == "time"
        else f"lower the hop cost by {amount:,.12g}"
    )
    return f"{subject} would {saved}" + f" ({how})" * bool(how)


_AXES = ("tp", "cp", "ep", "pp", "dp")
_WHY = {
    "proved": "proved optimal",
    "searched": "all methods tried",
    "time-limit": "stopped by the time limit",
    "interrupted": "interrupted",
}
# Numbers of nodes that get a line of their own.
_MOST = 6
MOST_NAMED = 8


def summarise(plan: Plan, look: Look = PLAIN, *, in_full: bool = False) -> str:
    """The plan for people, without a final newline: plain text of 80 columns.

    What the plan does not say is left out. One that keeps the order in use says so,
    and no more unless all is asked for.

    ``look``: another width, and colours and bars where a terminal can show them.
    """
    if is_kept(plan) and not in_full:
        more = told((*_moved(plan.previous), *_to_do(plan)), look.width)
        return "\n".join((*verdict_lines(plan, look), *more))
    tiers = plan.topology.get("tiers", ())
    scale_up = plan.topology.get("scale_up", 0)
    advice = advice_lines(plan, look.width)
    score = score_text(plan.score, tiers, scale_up, look) if plan.score else ""
    blocks = (
        verdict_lines(plan, look),
        gain_lines(plan, look),
        _placed(plan, look),
        score.splitlines(),
        (*_proved(plan.bound, look), *advice),
        told(_worst(plan.score, tiers, scale_up), look.width),
    )
    return paragraphs(blocks)


def verdict_lines(plan: Plan, look: Look) -> Iterator[str]:
    """What the plan is worth, and which domains give how many of its nodes."""
    title, *rest = sentences(plan, plan.verdict) or [""]
    yield from (look.paint(line, "title") for line in told([title], look.width))
    used = used_texts(plan) if title and not is_kept(plan) else ()
    yield from told((*rest, *used, *_unequal(plan)), look.width)
    who = "another order" if is_kept(plan) else "this plan"
    yield from assumed_lines(plan.assumed, plan.what_if, look.width, who)


def _unequal(plan: Plan) -> Iterator[str]:
    """Which expert groups lie in unequal parts, where no rule forbids it."""
    tiers = plan.topology.get("tiers", ())
    scale_up = plan.topology.get("scale_up", 0)
    if plan.job.get("parallelism", {}).get("ep", 1) == 1 or not tiers:
        return
    tier = tiers[max(scale_up - 1, 0)]
    groups = domain_of_members(plan, "ep", tier)
    if groups is None or even_tier(plan, "ep"):
        return
    parts = [parts_of(group) for group in groups if is_uneven(group)]
    if parts:
        shown = " + ".join(map(str, parts[0][:4])) + " + ..." * (len(parts[0]) > 4)
        yield (
            f"{len(parts):,} of {len(groups):,} ep groups in unequal parts "
            f"({shown}); HybridEP wants equal ones: {named('even', {'ep': tier})}"
        )


def _placed(plan: Plan, look: Look) -> Iterator[str]:
    """What was placed on what, and how."""
    job, topology = plan.job, plan.topology
    title = f"{job['name']} on {topology['name']}: {plan.world_size:,} ranks"
    yield from (look.paint(line, "title") for line in told([title], look.width))
    sizes = job.get("parallelism", {})
    axes = " x ".join(f"{a} {sizes[a]}" for a in _AXES if sizes.get(a, 1) > 1)
    roles = roles_text(plan, "x")
    details = [
        roles or axes,
        f"vp {sizes['vp']}" if sizes.get("vp", 1) > 1 else "",
        "" if roles else f"numbered {job['order']}",
        job.get("launcher", ""),
    ]
    texts = [", ".join(filter(None, details)), ", ".join(_domains(plan))]
    texts += [*_rules(plan.rules), *_moved(plan.previous)]
    solver = plan.solver
    if "method" in solver:
        why = _WHY.get(solver["stop_reason"], "")
        texts.append(
            f"placed by {solver['method']} in {solver['wall_s']:.2f} s ({why})"
        )
    yield from told(texts, look.width)


def _moved(previous: Mapping[str, Any]) -> Iterator[str]:
    """How many ranks are where the previous plan has them."""
    if previous:
        total = sum(previous[key] for key in ("kept", "moved", "new"))
        new = f", {previous['new']:,} new" * (previous["new"] > 0)
        yield (
            f"{previous['kept']:,} of {total:,} ranks stay where the previous plan has "
            f"them, {previous['moved']:,} move{new}"
        )


def _domains(plan: Plan) -> Iterator[str]:
    """How many domains of each tier hold ranks, and how many each."""
    ranks = np.bincount(plan.node_of_rank, minlength=len(plan.nodes))
    yield _count("node", ranks)
    for tier, names in plan.domains.items():
        _, domain = np.unique(names, return_inverse=True)
        yield _count(tier, np.bincount(domain, weights=ranks).astype(np.int64))


def _count(tier: str, ranks: np.ndarray) -> str:
    low, high = int(ranks.min()), int(ranks.max())
    size = f"{low:,} GPUs" if low == high else f"{low:,} to {high:,} GPUs"
    each = " each" if len(ranks) > 1 and low == high else ""
    return f"{counted(len(ranks), tier)} ({size}{each})"


def _proved(bound: Mapping[str, Any], look: Look) -> Iterator[str]:
    """The bound and the gap; ``-v`` has the argument."""
    if "lower_bound" not in bound:
        return
    optimal = bound["status"] == "optimal"
    if optimal:
        text = f"optimal {NOUN[bound['objective']]}: equal to its lower bound"
    elif bound["lower_bound"] == 0:
        text = f"no lower bound{withdrawn(bound)}"
    else:
        lower = amount(bound["objective"], bound["lower_bound"])
        text = f"lower bound {lower}, gap {gap_text(bound['gap'])}"
    first, *rest = wrapped(text, "  ", look.width)
    word = "optimal" if optimal else "lower bound"
    yield first.replace(word, look.paint(word, "good" if optimal else "title"), 1)
    yield from rest


def _worst(
    score: Mapping[str, Any], tiers: Sequence[str], scale_up: int
) -> Iterator[str]:
    """The group for which the step waits longest, where some wait less."""
    worst = slowest_group(score)
    if not worst:
        return
    island = largest_island(tiers, scale_up)
    domains, alike = worst["domains"], worst["as_slow"]
    over = f" over {counted(domains, island)}" * (domains > 1)
    count = "" if alike == 1 else f", one of {alike:,} as slow,"
    share = worst["exposed_s"] / score["step_time_s"]
    yield (
        f"slowest of {worst['groups']:,} {worst['axis']} groups: {worst['axis']}:"
        f"{worst['group']}{count} with {worst['ranks']:,} ranks{over} inside one "
        f"{worst['common_tier']}: {format_seconds(worst['seconds'])} for "
        f"{worst['operation']}; {worst['axis']} adds "
        f"{format_seconds(worst['exposed_s'])} ({share:z.1%})"
    )


def used_texts(plan: Plan) -> Iterator[str]:
    """A text for the domains that give equally many nodes, most nodes first.

    None where the plan names no domains between a node and the whole machine.
    """
    tier, nodes_of = inner_domains(plan)
    domains_of: dict[int, list[str]] = {}
    for domain, count in nodes_of.items():
        domains_of.setdefault(count, []).append(domain)
    counts = sorted(domains_of, reverse=True)
    for count in counts[:_MOST]:
        names = domains_of[count]
        each = " each" * (len(names) > 1)
        yield (
            f"{counted(count, 'node')}{each} in {counted(len(names), tier)}: "
            f"{hosts_text(in_natural_order(names))}"
        )
    if rest := counts[_MOST:]:
        total = sum(len(domains_of[count]) for count in rest)
        yield f"fewer in {counted(total, f'other {tier}')}"


def _rules(rules: Mapping[str, Any]) -> Iterator[str]:
    """Which rules hold, what is kept free and which hosts are used."""
    pins = rules.get("pin", ())
    held = [f"ranks {pin['ranks']} on {pin['nodes']}" for pin in pins[:MOST_NAMED]]
    if len(pins) > MOST_NAMED:
        held.append(f"{len(pins) - MOST_NAMED} more pins")
    for tier, number in rules.get("at_most", {}).items():
        held.append(f"at most {counted(number, 'replica')} in a {tier}")
    for tier, number in rules.get("spares", {}).items():
        held.append(f"{counted(number, 'spare node')} in every {tier} used")
    if held:
        yield f"kept: {'; '.join(held)}"
    if rules.get("budgets"):
        yield f"budgets: {'; '.join(rules['budgets'])}"
    if rules.get("spare_nodes"):
        yield f"spare: {len(rules['spare_nodes']):,} nodes are free in these domains"
    if rules.get("avoid"):
        yield _avoided(rules)


def _avoided(rules: Mapping[str, Any]) -> str:
    """How many of the nodes to avoid are used, and the first of them."""
    total = sum(len(expand(text)) for text in rules["avoid"])
    of = f"{counted(total, 'node')} to avoid"
    used = rules.get("avoided_nodes", ())
    if not used:
        return f"avoided: none of {of} is used"
    named = compress(used[:MOST_NAMED])
    more = f" and {len(used) - MOST_NAMED} more" * (len(used) > MOST_NAMED)
    return f"avoided: {len(used):,} of {of} are used: {named}{more}"
