"""A placement after failures: the proof, the cost, and the trade between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from placer.base.hostlist import expand
from placer.base.units import plural
from placer.report.columns import WIDTH, columns, wrapped
from placer.report.words import NOUN, amount, hosts_text

if TYPE_CHECKING:
    from placer.placement.plan import Plan

# Rows of the curve that are shown.
MOST_ROWS = 12


def replace_text(plan: Plan, width: int = WIDTH) -> str:
    """What a failure moves and costs, no wider than ``width``, no final newline."""
    about = plan.previous
    blocks = (
        "\n".join((*_moves(plan, about, width), *_cost(plan, about, width))),
        "\n".join(_curve(plan, about)),
    )
    return "\n\n".join(block for block in blocks if block)


def _moves(plan: Plan, about: Mapping[str, Any], width: int) -> Iterator[str]:
    failed = expand(",".join(about["failed"]))
    if failed:
        yield from wrapped(f"failed: {hosts_text(failed)}", "  ", width)
    added = expand(",".join(about.get("added", ())))
    if added:
        used = len({*added} & {*plan.nodes})
        count = "all" if used == len(added) else f"{used:,} of {len(added):,}"
        text = f"added: {hosts_text(added)}, {count if used else 'none'} used"
        yield from wrapped(text, "  ", width)
    if had := expand(",".join(about.get("had", ()))):
        text = f"not added, in the allocation before: {hosts_text(had)}"
        yield from wrapped(text, "  ", width)
    if given_up := about.get("given_up"):
        dp = plan.job["parallelism"]["dp"]
        names = ", ".join(map(str, given_up[:20])) + ", ..." * (len(given_up) > 20)
        yield from wrapped(
            f"dp {dp + len(given_up)} -> {dp}: {plural('replica', len(given_up))} "
            f"{names} given up, those after take their numbers",
            "  ",
            width,
        )
    moved, fewest = about["moved"], about["fewest"]
    if moved:
        proof = "proved the fewest" if moved == fewest else f"at least {fewest:,} must"
        yield from wrapped(f"{proof} move: {about['argument']}", "  ", width)


def _cost(plan: Plan, about: Mapping[str, Any], width: int) -> Iterator[str]:
    objective = plan.bound["objective"]
    after = plan.bound["value"]
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
        yield from wrapped(f"{word} {_share(about['within'])} of {than}", "  ", width)


def _curve(plan: Plan, about: Mapping[str, Any]) -> Iterator[str]:
    """The trade-off: what more moves would save."""
    points = about["curve"]
    if len(points) < 2:
        return
    objective = plan.bound["objective"]
    reference = about.get("value_before", points[-1]["value"])
    rows = [("moves", NOUN[objective], "change", "", "")]
    rows += [
        (
            f"{point['moves']:,}",
            amount(objective, point["value"]),
            _more(objective, point["value"] - reference),
            _change(reference, point["value"]).strip(" ()"),
            "this plan" if point["moves"] == about["moved"] else "",
        )
        for point in _shown(points, about["moved"])
    ]
    yield from columns(rows)


def _shown(points: list[Any], moved: int) -> list[Any]:
    """The chosen point, the ends and as many others as there is room for."""
    if len(points) <= MOST_ROWS:
        return points
    at = next(i for i, point in enumerate(points) if point["moves"] == moved)
    step = (len(points) - 1) / (MOST_ROWS - 2)
    kept = {at, *(round(i * step) for i in range(MOST_ROWS - 1))}
    return [points[i] for i in sorted(kept)]


def _more(objective: str, change: float) -> str:
    """A change with its sign: milliseconds, or hop cost."""
    if not change:
        return "none"
    return f"{change * 1e3:+,.3f} ms" if objective == "time" else f"{change:+,.12g}"


def _change(before: float, after: float) -> str:
    return f" ({(after - before) / before:+z.3%})" if before and before != after else ""


def _share(share: float) -> str:
    return f"{share * 100:.6g} %"
