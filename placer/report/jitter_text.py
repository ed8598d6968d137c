"""How the step time spreads from step to step, as plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placer.report.columns import columns, wrapped

_ROWS = {"step_time_s": "step time", "exposed_scale_out_s": "exposed scale-out"}
_COLUMNS = ("mean", "std", "p05", "p50", "p95")


def jitter_text(jitter: Mapping[str, Any], step_time_s: float) -> str:
    """A table of the spread, without a final newline.

    Parameters
    ----------
    jitter : mapping
        As ``placer.cost.jitter.jitter_score`` gives it.
    step_time_s : float, s
        Of a step in which nothing varies.
    """
    noise = ", ".join(
        f"{name} {100 * share:.4g}%" for name, share in jitter["noise"].items()
    )
    title = f"spread over {jitter['samples']:,} steps, noise {noise}, ms"
    rows: list[tuple[str, ...]] = [("", *_COLUMNS)]
    for key, name in _ROWS.items():
        values = (f"{jitter[key][column] * 1e3:,.3f}" for column in _COLUMNS)
        rows.append((f"  {name}", *values))
    step = jitter["step_time_s"]
    above = step["mean"] / step_time_s - 1
    words = (
        f"on average {above:z.3%} above the step without noise, standard deviation "
        f"{step['std'] / step['mean']:z.4%} of the step"
    )
    return "\n".join([*wrapped(title), *columns(rows), *wrapped(words)])
