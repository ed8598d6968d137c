"""The report: a verdict, why it holds, and the machine before and after, on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from shlex import join
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.units import plural
from placer.draw import palette
from placer.report.assumed_text import assumed_texts
from placer.report.matching import match
from placer.report.moves import moved_ranks
from placer.report.next_text import launch_commands
from placer.report.page.bars import (
    group_rows,
    step_rows,
    widths,
)
from placer.report.page.findings import (
    facts,
    gained,
    groups_heading,
    headline,
    homes,
    is_folded,
    lede,
    map_line,
    step_heading,
)
from placer.report.page.links import link_tables, links_heading
from placer.report.page.seats import encoded, partners, shown
from placer.report.page.shell import asset, page
from placer.report.page.tiers import colours_of_tiers, kinds_of_tiers, tier_style
from placer.report.page.times import times_data
from placer.report.verdict import is_kept
from placer.report.words import amount, roles_of, unbeaten

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.report.homes import Home
    from placer.report.matching import Matching
    from placer.report.page.seats import Shown
    from placer.report.page.side import Side

_SCRIPTS = (
    "data.js",
    "layout.js",
    "view.js",
    "colours.js",
    "paint.js",
    "marks.js",
    "tell.js",
    "follow.js",
    "pipeline.js",
    "main.js",
)
_AXES = ("tp", "cp", "ep", "etp", "pp", "dp", "edp")
_WORD = {"dp": "replica", "pp": "stage"}


def report_page(sides: Sequence[Side], path: str) -> str:
    """The page as HTML text; it needs nothing else.

    Parameters
    ----------
    sides : sequence of Side
        One placement, or two: before and after.
    path : str
        File of the last one's plan, for commands; none are told if empty.

    Raises
    ------
    InputError
        If the two are of jobs or machines that do not correspond.
    """
    plan, body = sides[-1].plan, asset("report", "page.html")
    said = dict(_said(sides))
    if is_folded(sides):
        sides = [replace(sides[-1], name="your order")]
    else:
        body = _without(body, "folded")
    machine, found = shown(sides), homes(sides)
    matching = match(sides[0].plan, plan) if len(sides) > 1 else None
    texts = said | dict(_texts(sides, machine, found, matching, path))
    for key, text in texts.items():
        body = body.replace("{{" + key + "}}", text)
    body = _without(body, "before" if matching is None else "alone")
    title = f"{plan.job.get('name')} on {plan.topology.get('name')}: placement report"
    plain = "The maps and the pipeline need scripts; the rest does not."
    style = asset("report", "page.css") + tier_style(plan) + widths(body)
    data = _data(sides, machine, found, matching)
    return page(title, style, body, "report", _SCRIPTS, data, plain)


def _without(body: str, kind: str) -> str:
    """The page without what is only of two placements, or of one ``alone``."""
    return re.sub(f"<!--{kind}-->.*?<!--/{kind}-->", "", body, flags=re.DOTALL)


def _said(sides: Sequence[Side]) -> Iterator[tuple[str, str]]:
    """The first words of the page, escaped: what terminals print first."""
    said, worth = map(_bound, headline(sides))
    mood = "good" if gained(sides) > 0 or len(sides) == 1 else "plain"
    tail = f'<em class="{mood}">{escape(worth)}</em>' if worth else ""
    yield "H1", f"{escape(said)}{tail}."
    yield "LEDE", escape(_bound(lede(sides, homes(sides))))


def _bound(text: str) -> str:
    """The text with numbers that stay with their unit."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _texts(
    sides: Sequence[Side],
    machine: Shown,
    found: Sequence[Home],
    matching: Matching | None,
    path: str,
) -> Iterator[tuple[str, str]]:
    """What stands in each place of the page, escaped."""
    plan = sides[-1].plan
    yield "JOB", escape(str(plan.job.get("name")))
    yield "MACHINE", escape(str(plan.topology.get("name")))
    yield "WORLD", f"{plan.world_size:,} {plural('GPU', plan.world_size)}"
    yield "SHAPE", escape(_shape(plan))
    yield "NAMES", escape(_names(sides))
    yield "FACTS", "".join(_fact(*fact) for fact in facts(sides, found))
    yield "WHY1", escape(groups_heading(sides, found))
    yield "AXES", group_rows(sides)
    yield "TIERS", _tiers(plan)
    yield "WHY2", escape(step_heading(sides))
    yield "STEPS", step_rows(sides)
    yield "PERIOD", plan.period
    yield "OLD", escape(sides[0].name)
    yield "NEW", escape(sides[-1].name)
    for key, side in (("MAP_OLD", 0), ("MAP_NEW", -1)):
        line, mood = map_line(sides, side, found)
        yield key, f'<span class="{mood}">{escape(line)}</span>'
    yield "SHOWN", escape(_shown_text(machine))
    yield "LINKHEAD", escape(links_heading(sides))
    yield "LINKS", link_tables(sides)
    yield "CERT", "".join(f"<p>{escape(text)}</p>" for text in _certificate(plan))
    yield "INPUTS", _inputs(plan)
    yield "APPLY", _apply(plan, path)
    yield "SWITCH", escape(_switch(sides, matching))
    yield "VERSION", escape(str(plan.solver.get("version", "")))


def _shape(plan: Plan) -> str:
    times = "\N{MULTIPLICATION SIGN}"
    if roles := roles_of(plan):
        return ", ".join(
            f"{name} {f'{instances:,} {times} ' * (instances > 1)}{ranks:,}"
            for name, instances, ranks in roles
        )
    sizes = plan.job.get("parallelism") or {}
    shown = [
        f"{a} {sizes[a]}" for a in ("tp", "cp", "pp", "ep", "dp") if sizes.get(a, 1) > 1
    ]
    return f" {times} ".join(shown) or "one rank a replica"


def _names(sides: Sequence[Side]) -> str:
    if len(sides) == 1:
        return sides[0].name
    return f"before: {sides[0].name}, after: {sides[1].name}"


def _fact(label: str, old: str, new: str, remark: str) -> str:
    before = f"<s>{escape(old)}</s> " if old else ""
    return (
        f'<div class="fact"><dt>{escape(label)}</dt><dd>{before}<b>{escape(new)}</b>'
        f"<p>{escape(remark)}</p></dd></div>"
    )


def _tiers(plan: Plan) -> str:
    return "".join(
        f'<span class="key"><i class="sw {kind}"></i>{escape(tier)}</span>'
        for tier, kind in kinds_of_tiers(plan).items()
    )


def _shown_text(machine: Shown) -> str:
    if not machine.left_out:
        return ""
    count = machine.left_out
    return f"{count:,} {plural('node', count)} in domains without ranks are not drawn."


def _certificate(plan: Plan) -> Iterator[str]:
    """What is proved, and what it rests on."""
    bound = plan.bound
    if not bound:
        yield "This placement was scored, not searched: nothing is proved of it."
    else:
        objective = bound["objective"]
        text = f"Value {amount(objective, bound['value'])}"
        if bound.get("lower_bound"):
            text += f", lower bound {amount(objective, bound['lower_bound'])}"
        yield f"{text}: {unbeaten(bound)}."
    who = "another order" if is_kept(plan) else "this plan"
    yield from (f"{text}." for text in assumed_texts(plan.assumed, plan.what_if, who))


def _inputs(plan: Plan) -> str:
    """Names of machine and job, whose digests show on hover."""
    return "".join(
        f'<p><span title="sha256 {escape(str(section.get("sha256")))}">'
        f"{escape(str(section.get('name')))}</span></p>"
        for section in (plan.topology, plan.job)
    )


def _apply(plan: Plan, path: str) -> str:
    """The commands that make files for the launcher, as in the text of a search."""
    if not path:
        return "<p>A plan that <code>placer place</code> makes can be emitted.</p>"
    commands = (["placer", *words] for words in launch_commands(plan, path))
    return "".join(f"<p><code>{escape(join(c))}</code></p>" for c in commands)


def _switch(sides: Sequence[Side], matching: Matching | None) -> str:
    """How many ranks and nodes change, in words."""
    if matching is None:
        return ""
    plans = [side.plan for side in sides]
    ranks = moved_ranks(plans[0], plans[1], matching)
    if not len(ranks[0]):
        return "no rank changes its GPU."
    nodes = {
        plan.nodes[node]
        for plan, moved in zip(plans, ranks, strict=True)
        for node in np.unique(plan.node_of_rank[moved]).tolist()
    }
    text = f"{len(ranks[0]):,} of {len(matching.old_rank):,} ranks are on another GPU"
    return f"{text}, on {len(nodes):,} {plural('node', len(nodes))}."


def _data(
    sides: Sequence[Side],
    machine: Shown,
    found: Sequence[Home],
    matching: Matching | None,
) -> dict[str, Any]:
    """What the scripts read."""
    plan = sides[-1].plan
    scale_up = plan.topology.get("scale_up", 0)
    tiers = list(plan.topology.get("tiers", ()))
    inner = len(tiers) - len(plan.outer_tiers)
    uplinks = min(max(scale_up - 1 - inner, 0), len(machine.levels) - 1)
    return {
        "machine": machine.to_dict(),
        "level": max(uplinks, min(1, len(machine.levels) - 1)),
        "whole": tiers[-1] if tiers else "machine",
        "colours": {
            "tiers": colours_of_tiers(plan),
            "distinct": palette.DISTINCT,
            "scale": [palette.ordered(i, 8) for i in range(8)],
        },
        "homes": [[h.axis, h.level] for h in found],
        "partners": "" if matching is None else partners(matching, plan.world_size),
        "sides": [
            {
                "name": side.name,
                "world": side.plan.world_size,
                "axes": _axes(side.plan),
                "roles": roles_of(side.plan),
                "seats": encoded(machine.seats(side.plan)),
                "step": side.plan.score.get("step_time_s", 0.0),
                **times_data(side, machine, uplinks),
            }
            for side in sides
        ],
        "uplinks": machine.levels[uplinks],
    }


def _axes(plan: Plan) -> list[list[Any]]:
    """Axis, size and distance of neighbours in rank numbers, of axes with groups."""
    axes = plan.axes
    if axes is None or plan.role_of_rank:  # the ranks of a workload share no axis
        return []
    found: list[list[Any]] = []
    for axis in _AXES:
        is_of_experts = axis in ("ep", "etp", "edp")
        if axes.size(axis) < 2 or (is_of_experts and not axes.divides_experts):
            continue
        ranks = axes.ranks_of_group[axis][0]
        found.append(
            [axis, axes.size(axis), int(ranks[1] - ranks[0]), _WORD.get(axis, axis)]
        )
    return found
