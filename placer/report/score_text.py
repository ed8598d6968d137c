"""A score as plain text: where the time goes, what crosses which tier, what is busy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from placer.base.units import format_bytes, format_seconds, plural
from placer.placement.plan import period_of
from placer.report.columns import PLAIN, Look, columns, paragraphs, seen, table, wrapped
from placer.report.words import (
    hop_cost,
    lacks_memory,
    largest_island,
    link_cells,
    slowest_host,
)

# Parts that are told apart from the smallest share of the total on.
_WORTH_TELLING = 0.05
_HELD = ("parameters", "gradients", "optimizer", "activations", "other")


def misfit(score: Mapping[str, Any]) -> str:
    """By how much the fullest stage does not fit, and why; empty when it fits.

    Also empty when the score says nothing of the memory needed, or of that of a GPU.
    """
    if not lacks_memory(score):
        return ""
    needs, limit = score["memory_bytes"], score["memory_limit_bytes"]
    total = needs["total"]
    parts = ", ".join(
        f"{part} {format_bytes(needs[part])}"
        for part in sorted(_HELD, key=lambda part: -needs[part])
        if needs[part] >= _WORTH_TELLING * total
    )
    role = f" of {needs['role']}" if "role" in needs else ""
    where = f"stage {needs['stage']}{role}"
    return (
        f"does not fit: {where} needs {format_bytes(total)} of memory, "
        f"{format_bytes(total - limit)} more than a GPU has ({parts})"
    )


_SHOWN_LINKS = 3
_PARTS = {"compute_s": "compute", "bubble_s": "pipeline bubble", "fixed_s": "fixed"}
_STYLE = {
    "compute": "work",
    "slowest role": "work",
    "pipeline bubble": "quiet",
    "fixed": "quiet",
}
_LEAST_ROOM, _MOST_ROOM = 10, 50  # columns of a bar that is worth drawing


def score_text(
    score: Mapping[str, Any], tiers: Sequence[str], scale_up: int, look: Look = PLAIN
) -> str:
    """The score as a few small tables, without a final newline.

    ``score``: as ``placer.explain.score.score`` gives it. ``tiers``: tier names,
    innermost first. ``scale_up``: how many of the tiers are NVLink tiers. ``look``: how
    wide lines may be, and whether the parts of the step are drawn.
    """
    island = largest_island(tiers, scale_up)
    head = ("busiest links", f"bytes a {period_of(score)}", "busy")
    links = [
        (f"  {name}", *cells)
        for name, *cells in map(link_cells, score.get("hottest_links", ()))
    ][:_SHOWN_LINKS]
    blocks: tuple[Iterable[str], ...] = (
        (*_step(score, island, look), *_meaning(score, island, look.width)),
        _roles(score.get("roles", {}), look.width),
        wrapped(slowest_host(score.get("slowest_host")), "  ", look.width),
        _crossings(score.get("crossings", {}), tiers, look.width),
        table(links, head, look.width) if links else (),
        wrapped(misfit(score), "  ", look.width),
    )
    return paragraphs(blocks)


def _step(score: Mapping[str, Any], island: str, look: Look) -> Iterator[str]:
    """Where the step's time goes; ``island`` is the largest NVLink domain."""
    step = score.get("step_time_s", 0.0)
    parts = [(label, score.get(key, 0.0)) for key, label in _PARTS.items()]
    roles = score.get("roles", {}).values()
    slowest = max((role["seconds"] for role in roles), default=0.0)
    parts.append(("slowest role", slowest))
    parts += [
        (f"exposed {axis}", seconds)
        for axis, seconds in score.get("exposed_s", {}).items()
    ]
    parts = [(label, seconds) for label, seconds in parts if seconds] if step else []
    rows: list[tuple[str, ...]] = []
    if step:
        sure = score.get("step_time_interval_s")
        likely = [f"+-{sure[1] / step - 1:z.1%}"] if sure else []
        rows.append(("step time", format_seconds(step), *likely))
        rows += [_part(f"  {label}", seconds, step) for label, seconds in parts]
        across = score.get("exposed_scale_out_s", 0.0)
        rows.append(_part(f"exposed cross-{island}", across, step))
    if "hop_cost" in score:
        rows.append(("hop cost", hop_cost(score["hop_cost"])))
    lines = list(columns(rows))
    widest = max(map(seen, lines), default=0)
    if widest > look.width:
        for row in rows:
            yield from wrapped(" ".join(row), "    ", look.width)
        return
    bars = _bars(parts, step, min(look.width - widest - 2, _MOST_ROOM), look)
    for number, line in enumerate(lines):
        bar = bars[number - 1] if 1 <= number <= len(bars) else ""
        yield f"{line:<{widest}}  {bar}" if bar else line


def _meaning(score: Mapping[str, Any], island: str, width: int) -> list[str]:
    """What is exposed, where anything is."""
    if not (score.get("step_time_s") and any(score.get("exposed_s", {}).values())):
        return []
    text = (
        f"exposed: communication that compute does not hide; cross-{island}: what free "
        f"links between {plural(island, 2)} would save"
    )
    return wrapped(text, "  ", width)


def _bars(
    parts: Sequence[tuple[str, float]], step: float, room: int, look: Look
) -> list[str]:
    """Each part as a bar that begins where the one before ends; none without room."""
    if not look.bars or room < _LEAST_ROOM:
        return []
    found, before = [], 0.0
    for label, seconds in parts:
        start = min(int(before / step * room), room - 1)
        bar = look.bar(seconds / step, room)[: room - start]
        found.append(" " * start + look.paint(bar, _STYLE.get(label, "bad")))
        before += seconds
    return [bar if bar.strip() else "" for bar in found]


def _part(label: str, seconds: float, step: float) -> tuple[str, str, str]:
    return label, format_seconds(seconds), f"{seconds / step:z.1%}"


def _roles(roles: Mapping[str, Mapping[str, Any]], width: int) -> Iterator[str]:
    """What each role of a workload takes in a cycle, and what it waits for most."""
    if not roles:
        return
    rows: list[tuple[str, ...]] = []
    has_memory = any("memory_bytes" in role for role in roles.values())
    for name, role in roles.items():
        exposed = role["exposed_s"]
        most = max(exposed, key=lambda axis: exposed[axis], default="")
        waits = f"{most} {format_seconds(exposed[most])}" if most else "-"
        row = (f"  {name}", format_seconds(role["seconds"]), waits)
        needs = role.get("memory_bytes")
        memory = format_bytes(needs["total"]) if needs else "-"
        rows.append((*row, memory) if has_memory else row)
    heads = ("roles", "a cycle", "waits most for", "GPU memory")
    yield from table(rows, heads[: 3 + has_memory], width)


def _crossings(
    crossings: Mapping[str, Mapping[str, int]], tiers: Sequence[str], width: int
) -> Iterator[str]:
    """Groups of each axis by the tier of their lowest common domain."""
    used = [tier for tier in tiers if any(tier in row for row in crossings.values())]
    if used:
        rows = [
            (f"  {axis}", *(f"{row[t]:,}" if t in row else "-" for t in used))
            for axis, row in crossings.items()
        ]
        yield from table(rows, ("groups inside one", *used), width)
