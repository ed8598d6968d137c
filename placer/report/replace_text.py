"""A placement after failures: the proof, the cost, and the trade between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from placer.base.hostlist import expand
from placer.base.units import plural
from placer.report.columns import WIDTH, columns, paragraphs, told
from placer.report.words import NOUN, amount, hosts_text

if TYPE_CHECKING:
    from placer.placement.plan import Plan

# Rows of the curve that are shown.
MOST_ROWS = 12


def replace_text(plan: Plan, width: int = WIDTH) -> str:
    """What a failure moves and costs, no wider than ``width``, no final newline."""
    about = plan.previous
    texts = told((*_moves(plan, about), *_cost(plan, about)), width)
    return paragraphs((texts, _curve(plan, about)))


def _moves(plan: Plan, about: Mapping[str, Any]) -> Iterator[str]:
    if failed := expand(",".join(about["failed"])):
        yield f"failed: {hosts_text(failed)}"
    if added := expand(",".join(about.get("added", ()))):
        used = len({*added} & {*plan.nodes})
        count = "all" if used == len(added) else f"{used:,} of {len(added):,}"
        yield f"added: {hosts_text(added)}, {count if used else 'none'} used"
    if had := expand(",".join(about.get("had", ()))):
        yield f"not added, in the allocation before: {hosts_text(had)}"
    if given_up := about.get("given_up"):
        dp = plan.job["parallelism"]["dp"]
        names = ", ".join(map(str, given_up[:20])) + ", ..." * (len(given_up) > 20)
        yield (
            f"dp {dp + len(given_up)} -> {dp}: {plural('replica', len(given_up))} "
            f"{names} given up, those after take their numbers"
        )
    moved, fewest = about["moved"], about["fewest"]
    if moved:
        proof = "proved the fewest" if moved == fewest else f"at least {fewest:,} must"
        yield f"{proof} move: {about['argument']}"


def _cost(plan: Plan, about: Mapping[str, Any]) -> Iterator[str]:
    objective, after = plan.bound["objective"], plan.bound["value"]
    before = about.get("value_before", after)
    than = {
        "before": "the cost before the failure",
        "lower-bound": "the lower bound of any placement",
        "best-known": "the cheapest placement known",
    }[about["reference"]]
    if before != after:
        yield (
            f"{NOUN[objective]} {amount(objective, before)} -> "
            f"{amount(objective, after)}{_change(before, after)}"
        )
    if about["moved"]:
        word = "within" if after <= about["budget"] * (1 + 1e-9) else "not within"
        yield f"{word} {about['within'] * 100:.6g} % of {than}"


def _curve(plan: Plan, about: Mapping[str, Any]) -> Iterator[str]:
    """The trade-off: what more moves would save."""
    points = about["curve"]
    if len(points) < 2:
        return
    objective = plan.bound["objective"]
    reference = about.get("value_before", points[-1]["value"])
    rows = [("moves", NOUN[objective], "change", "", "")]
    for point in _shown(points, about["moved"]):
        moves, value = point["moves"], point["value"]
        change = value - reference
        more = f"{change * 1e3:+,.3f} ms" if objective == "time" else f"{change:+,.12g}"
        share = _change(reference, value).strip(" ()")
        mark = "this plan" if moves == about["moved"] else ""
        cells = amount(objective, value), more if change else "none", share, mark
        rows.append((f"{moves:,}", *cells))
    yield from columns(rows)


def _shown(points: list[Any], moved: int) -> list[Any]:
    """The chosen point, the ends and as many others as there is room for."""
    if len(points) <= MOST_ROWS:
        return points
    at = next(i for i, point in enumerate(points) if point["moves"] == moved)
    step = (len(points) - 1) / (MOST_ROWS - 2)
    kept = {at, *(round(i * step) for i in range(MOST_ROWS - 1))}
    return [points[i] for i in sorted(kept)]


def _change(before: float, after: float) -> str:
    return f" ({(after - before) / before:+z.3%})" if before and before != after else ""
