"""The report: a verdict, why it holds, and the machine before and after, on a page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from shlex import join
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined

from placer.base.units import counted
from placer.draw import svg
from placer.placement.plan import Plan
from placer.report.assumed_text import assumed_texts
from placer.report.homes import Home
from placer.report.moves import Matching, match, moved_ranks
from placer.report.next_text import launch_commands
from placer.report.page import bars, headlines
from placer.report.page.maps import Maps, maps_of, modes, partners
from placer.report.page.side import Side, encoded, times_data
from placer.report.verdict import is_kept
from placer.report.words import amount, roles_of, roles_text, unbeaten


@cache
def _templates() -> Environment:
    return Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _json(data: Mapping[str, Any]) -> str:
    """Compact JSON that no name inside can end: every ``<`` is written as an escape.

    Floats are written as ``repr``, as in the JSON report.
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c")


def _asset(name: str) -> str:
    """Text of a file of the page."""
    return (files("placer.report.page") / "assets" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


_SCRIPTS = (
    "data.js",
    "layout.js",
    "view.js",
    "colours.js",
    "paint.js",
    "marks.js",
    "tell.js",
    "follow.js",
    "main.js",
)
_AXES = ("tp", "cp", "ep", "etp", "pp", "dp", "edp")
_WORD = {"dp": "replica", "pp": "stage"}


def report_page(sides: Sequence[Side], path: str) -> str:
    """The page as HTML text; it needs nothing else.

    ``sides``: one placement, or two: before and after. ``path``: file of the last one's
    plan, for commands; none are told if empty.
    """
    plan, folded = sides[-1].plan, headlines.is_folded(sides)
    said, worth = map(_bound, headlines.headline(sides))  # what terminals print first
    mood = "good" if headlines.gained(sides) > 0 or len(sides) == 1 else "plain"
    first = {"said": said, "worth": worth, "mood": mood}
    begins = _bound(headlines.lede(sides, headlines.homes(sides)))
    if folded:
        sides = [replace(sides[-1], name="your order")]
    maps, found = maps_of(sides), headlines.homes(sides)
    matching = match(sides[0].plan, plan) if len(sides) > 1 else None
    texts = _texts(sides, maps, found, matching, path)
    job, machine = plan.job.get("name"), plan.topology.get("name")
    page, document = map(_templates().get_template, ("page.html", "document.html"))
    body = page.render(folded=folded, headline=first, lede=begins, **texts)
    style = svg.page_style() + _asset("page.css") + bars.tier_style(plan)
    style += bars.widths(body)
    script = "\n".join(["", '"use strict";', *map(_asset, _SCRIPTS)])
    return document.render(
        digests={"style": _digest(style), "script": _digest(script)},
        title=f"{job} on {machine}: placement report",
        style=style,
        body=body.rstrip(),
        data=_json(_data(sides, maps, found, matching)),
        script=script,
    )


def _bound(text: str) -> str:
    """The text with numbers that stay with their unit."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _texts(
    sides: Sequence[Side],
    maps: Maps,
    found: Sequence[Home],
    matching: Matching | None,
    path: str,
) -> dict[str, Any]:
    """What stands in each place of the page."""
    plan = sides[-1].plan
    lines = [headlines.map_line(sides, side, found) for side in (0, -1)]
    old, new = ({"line": line, "mood": mood} for line, mood in lines)
    # As in the text of a search: what makes files for the launcher.
    commands = launch_commands(plan, path) if path else []
    names, left_out = sides[0].name, counted(maps.left_out, "node")
    if len(sides) > 1:
        names = f"before: {names}, after: {sides[1].name}"
    return {
        "plan": plan,
        "before": matching is not None,
        "world": counted(plan.world_size, "GPU"),
        "shape": _shape(plan),
        "names": names,
        "facts": [*headlines.facts(sides, found)],
        "groups_heading": headlines.groups_heading(sides, found),
        "group_rows": [*bars.group_rows(sides)],
        "tiers": bars.kinds_of_tiers(plan),
        "step_heading": headlines.step_heading(sides),
        "step_rows": [*bars.step_rows(sides)],
        "old": sides[0].name,
        "new": sides[-1].name,
        "map_old": old,
        "map_new": new,
        "shown": f"{left_out} in domains without ranks are not drawn."
        if maps.left_out
        else "",
        "size": maps.size,
        "ground": maps.ground(),
        "links_heading": bars.links_heading(sides),
        "link_tables": [*bars.link_tables(sides)],
        **bars.pipelines(sides),
        "certificate": [*_certificate(plan)],
        "commands": [join(["placer", *words]) for words in commands],
        "switch": _switch(sides, matching),
    }


def _shape(plan: Plan) -> str:
    times = "\N{MULTIPLICATION SIGN}"
    if plan.role_of_rank:
        return roles_text(plan, times)
    sizes = plan.job.get("parallelism") or {}
    shown = [
        f"{a} {sizes[a]}" for a in ("tp", "cp", "pp", "ep", "dp") if sizes.get(a, 1) > 1
    ]
    return f" {times} ".join(shown) or "one rank a replica"


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
    return f"{text}, on {counted(len(nodes), 'node')}."


def _data(
    sides: Sequence[Side],
    maps: Maps,
    found: Sequence[Home],
    matching: Matching | None,
) -> dict[str, Any]:
    """What the scripts read."""
    plan = sides[-1].plan
    scale_up = plan.topology.get("scale_up", 0)
    tiers = list(plan.topology.get("tiers", ()))
    inner = len(tiers) - len(plan.outer_tiers)
    levels = maps.view.levels[:-1]
    uplinks = min(max(scale_up - 1 - inner, 0), len(levels) - 1)
    axes = [_axes(side.plan) for side in sides]
    known = [{axis for axis, *_ in own} for own in axes]
    everywhere = [axis for axis, *_ in axes[-1] if all(axis in own for own in known)]
    return {
        "machine": maps.to_dict(),
        "level": max(uplinks, min(1, len(levels) - 1)),
        "tiers": bars.colours_of_tiers(plan),
        "modes": [*modes(maps.views, everywhere)],
        "homes": [[h.axis, h.level] for h in found],
        "partners": "" if matching is None else partners(matching, plan.world_size),
        "sides": [
            {
                "name": side.name,
                "world": side.plan.world_size,
                "axes": own,
                "roles": roles_of(side.plan),
                "seats": encoded(maps.seats(view)),
                **times_data(side, view, uplinks),
            }
            for side, view, own in zip(sides, maps.views, axes, strict=True)
        ],
        "uplinks": levels[uplinks],
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
