"""A score as plain text: where the time goes, what crosses which tier, what is busy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placer.report.columns import columns
from placer.units import format_bytes, format_seconds

_SHOWN_LINKS = 3
_PARTS = {"compute_s": "compute", "bubble_s": "pipeline bubble", "fixed_s": "fixed"}


def score_text(score: Mapping[str, Any], tiers: Sequence[str], scale_up: int) -> str:
    """The score as a few small tables, without a final newline.

    Parameters
    ----------
    score : mapping
        As ``placer.cost.score.score`` gives it.
    tiers : sequence of str
        Tier names, innermost first.
    scale_up : int
        How many of the tiers are NVLink tiers.
    """
    blocks = (
        list(_step(score, tiers[scale_up - 1] if scale_up else "GPU")),
        list(_crossings(score.get("crossings", {}), tiers)),
        list(_links(score.get("hottest_links", ()))),
    )
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def _step(score: Mapping[str, Any], island: str) -> Iterator[str]:
    """Where the step's time goes; ``island`` is the largest NVLink domain."""
    step = score.get("step_time_s", 0.0)
    parts = [(label, score.get(key, 0.0)) for key, label in _PARTS.items()]
    parts += [
        (f"exposed {axis}", seconds)
        for axis, seconds in score.get("exposed_s", {}).items()
    ]
    rows: list[tuple[str, ...]] = []
    if step:
        rows.append(("step time", format_seconds(step)))
        rows += [_part(f"  {label}", value, step) for label, value in parts if value]
        across = score.get("exposed_scale_out_s", 0.0)
        rows.append(_part(f"exposed cross-{island}", across, step))
    if "hop_cost" in score:
        rows.append(("hop cost", f"{score['hop_cost']:,.12g}"))
    yield from columns(rows)


def _part(label: str, seconds: float, step: float) -> tuple[str, str, str]:
    return label, format_seconds(seconds), f"{seconds / step:.1%}"


def _crossings(
    crossings: Mapping[str, Mapping[str, int]], tiers: Sequence[str]
) -> Iterator[str]:
    """Groups of each axis by the tier of their lowest common domain."""
    used = [tier for tier in tiers if any(tier in row for row in crossings.values())]
    if used:
        yield from columns(
            [
                ("groups inside one", *used),
                *(
                    (f"  {axis}", *(f"{row[t]:,}" if t in row else "-" for t in used))
                    for axis, row in crossings.items()
                ),
            ]
        )


def _links(links: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not links:
        return
    rows = [
        (
            f"  {link['domain']} {link['direction']}, {link['tier']} tier",
            format_bytes(link["bytes"]),
            format_seconds(link["busy_s"]),
        )
        for link in links[:_SHOWN_LINKS]
    ]
    yield from columns([("busiest links", "a step", "busy"), *rows])
