"""A plan, a machine and a job as tables, for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from placer.base.units import counted, format_seconds
from placer.job.model import Job
from placer.placement.plan import OBJECTIVES, Plan
from placer.report.machine_text import facts, parts, tier_rows
from placer.report.machine_text import title as job_title
from placer.report.words import NOUN, amount
from placer.topology.model import Topology

_TABLE = "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums"
_CELL = "padding:.15em .8em .15em 0;border:0;vertical-align:top"
_HEAD = f"{_CELL};font-weight:600;border-bottom:1px solid"
_ONE_LINE = f"{_CELL};white-space:nowrap"


def html_table(rows: Sequence[Sequence[str]], above: str = "", below: str = "") -> str:
    """Rows under their head, the first, with a sentence above and one below.

    A column is aligned to the right where its cells begin with digits.
    """
    head, *body = rows
    sides = [_side([row[i] for row in body if i < len(row)]) for i in range(len(head))]
    lines = [_line("th", head, sides, _HEAD)]
    lines += [_line("td", row, sides, _ONE_LINE) for row in body]
    return f"{_sentence(above, bold=True)}{_table(lines)}{_sentence(below)}"


def _table(lines: Sequence[str]) -> str:
    return f'<table style="{_TABLE}">{"".join(lines)}</table>'


def _line(tag: str, cells: Sequence[str], sides: Sequence[str], style: str) -> str:
    inside = "".join(
        f'<{tag} style="{style};text-align:{side}">{escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=False)
    )
    return f"<tr>{inside}</tr>"


def _side(cells: Sequence[str]) -> str:
    """Where the cells of a column are aligned."""
    texts = [cell for cell in cells if cell not in ("", "-")]
    is_numeric = texts and all(cell.lstrip("+-")[:1].isdigit() for cell in texts)
    return "right" if is_numeric else "left"


def _sentence(text: str, bold: bool = False) -> str:
    inside = f"<strong>{escape(text)}</strong>" if bold else escape(text)
    return f"<p>{inside}</p>" if text else ""


def plan_html(plan: Plan) -> str:
    """What the plan is worth, where its groups lie and what other orders cost."""
    tables = (list(_groups(plan)), list(_orders(plan)))
    above = (plan.verdict.get("text") or plan_title(plan), "")
    return "".join(map(html_table, tables, above))


def plan_title(plan: Plan) -> str:
    """``64 ranks on 8 nodes, 1.272 s a step``."""
    nodes = counted(len(plan.nodes), "node")
    size = f"{plan.world_size:,} ranks on {nodes}"
    if step := plan.score.get("step_time_s"):
        return f"{size}, {format_seconds(step)} a step"
    cost = plan.score.get("hop_cost")
    return size if cost is None else f"{size}, hop cost {cost:,.12g}"


def _groups(plan: Plan) -> Iterator[list[str]]:
    """A head, and for each axis its exposed time and its groups by tier."""
    crossings = plan.score.get("crossings", {})
    exposed = plan.score.get("exposed_s", {})
    tiers = [
        tier
        for tier in plan.topology.get("tiers", ())
        if any(tier in row for row in crossings.values())
    ]
    yield ["axis", "exposed", *(f"groups in one {tier}" for tier in tiers)]
    for axis in {**crossings, **exposed}:
        seconds, counts = exposed.get(axis), crossings.get(axis, {})
        if not (seconds or counts):
            continue
        cells = [f"{counts[tier]:,}" if counts.get(tier) else "" for tier in tiers]
        yield [axis, "" if seconds is None else format_seconds(seconds), *cells]


def _orders(plan: Plan) -> Iterator[list[str]]:
    """A head, the plan's own cost, and that of the baselines."""
    objective = plan.bound.get("objective", "time")
    key = OBJECTIVES[objective]
    own = plan.score.get(key)
    yield ["order", NOUN[objective], "beside the plan"]
    if own is not None:
        yield ["this plan", amount(objective, own), ""]
    for name, baseline in plan.baselines.items():
        if (other := baseline.get(key)) is not None:
            more = (
                "equal" if other == own else f"{other / own - 1:+z.2%}" if own else ""
            )
            broken = " (breaks rules)" * bool(baseline.get("violates"))
            yield [name, amount(objective, other), more + broken]


def title(shown: Topology | Job | Plan) -> str:
    """What follows the name of the type: `` quickstart: 16 ranks, tp 8 dp 2``."""
    if isinstance(shown, Plan):
        return f": {plan_title(shown)}"
    words = parts(shown) if isinstance(shown, Topology) else job_title(shown)
    return f" {shown.name}: {words}"


def html(shown: Topology | Job | Plan) -> str:
    """A table of it."""
    if isinstance(shown, Plan):
        return plan_html(shown)
    if isinstance(shown, Topology):
        return html_table(tier_rows(shown), title(shown).lstrip())
    lines = [
        _line("td", (name, value), ("left", "left"), _CELL)
        for name, value in facts(shown).items()
        if value and name != "sha256"
    ]
    return f"{_sentence(title(shown).lstrip(), bold=True)}{_table(lines)}"
