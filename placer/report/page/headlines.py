"""What a report says in words: headlines that are read off its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placer.base.units import counted, format_seconds, listed, plural
from placer.placement.baselines import order_in_use_of
from placer.placement.plan import OBJECTIVES
from placer.report.diff import saving_of
from placer.report.homes import Home, homes_of, is_optimal
from placer.report.page.side import Side
from placer.report.verdict import inner_domains, is_kept, name_in_use, sentences
from placer.report.words import (
    BETTER,
    amount,
    each,
    gap_text,
    gpu_hours_a_day,
    knows_work,
    proved,
    saved_text,
    share_text,
)

_NO_BETTER = "no placement is better"
# Differences below this share of the cost are rounding.
_SAME = 1e-6


def homes(sides: Sequence[Side]) -> list[Home]:
    """Where the groups of each axis belong; gradient groups only if alone.

    None where a plan does not say how its groups lie.
    """
    crossings = [side.plan.score.get("crossings", {}) for side in sides]
    return homes_of([side.plan for side in sides], crossings)


def objective_of(sides: Sequence[Side]) -> str:
    """``time`` where every side has one, else ``hop-cost``."""
    has_time = all(side.plan.score.get("step_time_s") for side in sides)
    return "time" if has_time else "hop-cost"


def has_value(sides: Sequence[Side]) -> bool:
    """Whether every side has a cost under the objective."""
    objective = objective_of(sides)
    return all(value(side, objective) > 0 for side in sides)


def value(side: Side, objective: str) -> float:
    """What the placement costs under an objective."""
    return float(side.plan.score.get(OBJECTIVES[objective], 0.0))


def gained(sides: Sequence[Side]) -> float:
    """Share of the cost before that is saved; 0 with one side."""
    objective = objective_of(sides)
    before, after = value(sides[0], objective), value(sides[-1], objective)
    return (before - after) / before if before else 0.0


def is_folded(sides: Sequence[Side]) -> bool:
    """Whether the plan is the order beside it: two of the same."""
    old, new = sides[0].plan, sides[-1].plan
    return (
        bool(verdict(sides))
        and is_kept(new)
        and old.host_of_rank == new.host_of_rank
        and np.array_equal(old.gpu_of_rank, new.gpu_of_rank)
    )


def verdict(sides: Sequence[Side]) -> list[str]:
    """What a plan says beside the order that its user has; nothing beside others."""
    plan = sides[-1].plan
    in_use = (order_in_use_of(plan), name_in_use(plan))
    usual, old = plan.baselines.get(in_use[0], {}), sides[0].plan.score
    is_usual = len(sides) > 1 and sides[0].name in in_use
    is_usual &= all(old.get(key) == usual.get(key) for key in OBJECTIVES.values())
    if not is_usual or "saved_share" not in plan.verdict:
        return []
    return sentences(plan, plan.verdict)


def headline(sides: Sequence[Side]) -> tuple[str, str]:
    """The verdict in a few words: what is to do or compared, and how good that is."""
    objective, period = objective_of(sides), sides[-1].plan.period
    bound, proof = sides[-1].plan.bound, ""
    if bound and bound.get("lower_bound"):
        proof = proved(bound["status"], bound["lower_bound"], bound["gap"])
        proof = f"proved {proof}" if proof == "optimal" else proof
    if said := verdict(sides):
        decision, colon, worth = said[0].partition(": ")
        return f"{decision}{colon}", worth
    if not has_value(sides):
        text = "Where the ranks are"
    elif len(sides) == 1:
        worth = amount(objective, value(sides[0], objective))
        text = f"{worth} {each(objective, period)}"
    else:
        text = _compared(sides)
    return f"{text}, " if proof else text, proof


def _compared(sides: Sequence[Side]) -> str:
    """What one placement saves beside another."""
    objective, share = objective_of(sides), gained(sides)
    if abs(share) < _SAME:
        as_ = "fast" if objective == "time" else "cheap"
        return f"As {as_} as {sides[0].name}"
    saved = saving_of(sides[0].plan, sides[-1].plan)
    if objective != "time" or saved is None:
        return f"{share_text(abs(share))} {BETTER[objective][share < 0]}"
    known = saved_text(objective, saved.to_dict(), sides[-1].plan.period)
    text = f"{'Saves' if share > 0 else 'Costs'} {known}"
    return text if saved.can_be_measured else f"{text}, too little to measure"


def lede(sides: Sequence[Side], found: Sequence[Home]) -> str:
    """A few sentences: the cost, what the groups do, how far this is proved."""
    if said := verdict(sides):
        return " ".join(f"{text[0].upper()}{text[1:]}." for text in said[1:])
    objective = objective_of(sides)
    new = amount(objective, value(sides[-1], objective))
    took = f"A {sides[-1].plan.period} takes"
    took = took if objective == "time" else "The hop cost is"
    old = amount(objective, value(sides[0], objective))
    instead = f" instead of {old}" if len(sides) > 1 and old != new else ""
    sentences = [f"{took} {new}{instead}."] if has_value(sides) else []
    if found:
        sentences.append(f"{_held(sides, found)}.")
    if is_optimal(sides[-1].plan):
        sentences.append("Under the model no placement that keeps the rules is better.")
    return " ".join(sentences)


def _held(sides: Sequence[Side], found: Sequence[Home]) -> str:
    """The axis with the greatest change, or what holds for all."""
    home = most_changed(sides, found)
    now, of = home.groups[-1] - home.leaving[-1], home.groups[-1]
    nouns, tier = plural(home.noun, of), home.tier
    inside = f"stay inside one {tier}" if of > 1 else f"stays inside one {tier}"
    if now == of:
        text = f"All {of:,} {nouns} {inside}" if of > 1 else f"The {nouns} {inside}"
    else:
        text = f"{now:,} of {of:,} {nouns} {inside}"
    before = home.groups[0] - home.leaving[0]
    if len(home.groups) > 1 and before != now:
        text += f"; before, {before:,} did" if before else "; before, none did"
    return text


def most_changed(sides: Sequence[Side], found: Sequence[Home]) -> Home:
    """Of axes whose groups lie otherwise the one that waits otherwise for longest."""
    old, new = (side.plan.score.get("exposed_s", {}) for side in (sides[0], sides[-1]))

    def change(home: Home) -> tuple[bool, float, float]:
        share = abs(home.leaving[0] - home.leaving[-1]) / home.groups[-1]
        waits = abs(old.get(home.axis, 0.0) - new.get(home.axis, 0.0))
        return share > 0, waits, share

    return max(found, key=change)


def groups_heading(sides: Sequence[Side], found: Sequence[Home]) -> str:
    """What happened to the groups, as a heading."""
    if not found:
        return "Where groups are is not known"
    home = most_changed(sides, found)
    change = home.leaving[0] - home.leaving[-1]
    if len(home.groups) == 1 or not change:
        leaving = [h for h in found if h.leaving[-1]]
        if not leaving:
            return "Every group is where it belongs"
        text = ", ".join(
            f"{h.leaving[-1]:,} of {counted(h.groups[-1], h.noun)}" for h in leaving
        )
        if is_optimal(sides[-1].plan):
            return f"{text} reach further, and {_NO_BETTER}"
        return f"{text} reach further than they need"
    of, count = home.groups[-1], abs(change)
    words = ("come back into", "leave") if count > 1 else ("comes back into", "leaves")
    what = f"{count:,} of {counted(of, home.noun)}"
    subject = what if of > 1 else f"The {home.noun}"
    return f"{subject} {words[change < 0]} one {home.tier}"


def map_line(
    sides: Sequence[Side], side: int, found: Sequence[Home]
) -> tuple[str, str]:
    """What a map shows, in words, and whether that is ``ok``, ``bad`` or neither."""
    leaving = [h for h in found if h.leaving[side]]
    if not found:
        return "", ""
    if not leaving:
        axes = listed([h.axis for h in found])
        return f"every {axes} group is where it belongs", "ok"
    told = most_changed(sides, found)
    worst = max(leaving, key=lambda h: h.leaving[side] / h.groups[side])
    home = told if told in leaving else worst
    count, of = home.leaving[side], home.groups[side]
    verb = "leaves its" if count == 1 else "leave their"
    text = f"{count:,} of {counted(of, home.noun)} {verb} {home.tier}"
    is_best = is_optimal(sides[side].plan)
    is_as_good = is_optimal(sides[-1].plan) and abs(gained(sides)) < _SAME
    if is_best or is_as_good:
        return f"{text}, and {_NO_BETTER}", ""
    return text, "bad"


def parts(side: Side) -> dict[str, float]:
    """What a step is made of, in seconds; parts that are nothing left out."""
    score = side.plan.score
    found = {
        "compute": score.get("compute_s", 0.0),
        "fixed": score.get("fixed_s", 0.0),
        "bubble": score.get("bubble_s", 0.0),
    }
    if roles := score.get("roles"):
        found["slowest role"] = max(role["seconds"] for role in roles.values())
    exposed = score.get("exposed_s", {})
    return found | {f"{axis} exposed": seconds for axis, seconds in exposed.items()}


def step_heading(sides: Sequence[Side]) -> str:
    """What the step gained and lost, as a heading."""
    new, period = parts(sides[-1]), sides[-1].plan.period
    if len(sides) == 1:
        waits = {name: s for name, s in new.items() if name.endswith(" exposed")}
        worst = max(waits, key=lambda name: waits[name], default="")
        if not worst or not waits[worst]:
            return "Nothing waits for the network"
        waited = format_seconds(waits[worst])
        return (
            f"Longest wait: {worst.removesuffix(' exposed')}, {waited} of each {period}"
        )
    old = parts(sides[0])
    change = {n: new.get(n, 0.0) - old.get(n, 0.0) for n in {**old, **new}}
    least = min(change, key=change.__getitem__)
    most = max(change, key=change.__getitem__)
    noise = _SAME * sum(new.values())
    part = {name: name.removesuffix(" exposed") for name in change}
    words = []
    if change[least] < -noise:
        words.append(f"{part[least]} saves {format_seconds(-change[least])}")
    if change[most] > noise:
        verb = "gives back" if words else "costs"
        words.append(f"{part[most]} {verb} {format_seconds(change[most])}")
    return ", ".join(words) if words else f"No part of the {period} changes"


Fact = tuple[str, str, str, str]


def facts(sides: Sequence[Side], found: Sequence[Home]) -> Iterator[Fact]:
    """(label, value before or nothing, value after, remark) of the figures on top."""
    if has_value(sides):
        yield from _cost_facts(sides)
    if found:
        yield _groups_fact(most_changed(sides, found))
    old, new = sides[0].plan, sides[-1].plan
    tier, domains = inner_domains(new)
    if tier:
        was = f"{len(inner_domains(old)[1]):,}" if len(sides) > 1 else ""
        nodes = counted(len(new.nodes), "node")
        yield f"{plural(tier, 2).capitalize()} used", was, f"{len(domains):,}", nodes
    if new.bound and new.bound.get("lower_bound"):
        gap = gap_text(new.bound["gap"]).replace("%", " %")
        remark = "proved optimal" if is_optimal(new) else "at most"
        yield "Gap to the lower bound", "", gap if new.bound["gap"] else "0 %", remark


def _cost_facts(sides: Sequence[Side]) -> Iterator[Fact]:
    objective, has_two = objective_of(sides), len(sides) > 1
    before, after = value(sides[0], objective), value(sides[-1], objective)
    was = amount(objective, before) if has_two else ""
    if objective != "time":
        yield "Hop cost", was, amount(objective, after), ""
        return
    period = sides[-1].plan.period
    sign = "+" if after > before else "\N{MINUS SIGN}"
    remark = f"{sign}{format_seconds(abs(after - before))} a {period}"
    if abs(gained(sides)) < _SAME:
        remark = "no change" if has_two else "predicted"
    yield f"{period.capitalize()} time", was, amount(objective, after), remark
    size = sides[-1].plan.world_size
    if has_two and knows_work(sides[-1].plan.score):
        hours = gpu_hours_a_day(size, gained(sides))
        word = "saved" if hours >= 0 else "lost"
        of = f"of {size * 24:,} that this job uses"
        yield f"GPU hours {word} a day", "", f"{abs(hours):,.0f}", of
    waits = [float(s.plan.score.get("exposed_scale_out_s", 0.0)) for s in sides]
    yield (
        "Waiting for the network",
        format_seconds(waits[0]) if has_two else "",
        format_seconds(waits[-1]),
        f"{share_text(waits[-1] / after)} of a {period}"
        if waits[-1]
        else "nothing waits",
    )


def _groups_fact(home: Home) -> Fact:
    inside = [h - out for h, out in zip(home.groups, home.leaving, strict=True)]
    nouns = plural(home.noun, 2)
    if not nouns.startswith(home.axis):
        nouns = nouns.capitalize()
    return (
        f"{nouns} inside one {home.tier}",
        f"{inside[0]:,}" if len(inside) > 1 else "",
        f"{inside[-1]:,}",
        f"of {home.groups[-1]:,}",
    )
