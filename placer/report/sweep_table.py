"""The rows of a sweep as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placer.base.units import format_bandwidth, format_seconds
from placer.report.columns import narrowed, wrapped
from placer.report.notebook import html_table
from placer.report.words import gap_text

Row = Mapping[str, Any]

_LABELS = {
    "nic_rate_bytes_per_s": "NIC rate",
    "micro_batches": "micro-batches",
    "world_size": "GPUs",
    "gpus": "GPUs",
    "global_batch": "batch",
    "step_time_s": "step time",
    "exposed_scale_out_s": "exposed",
    "hop_cost": "hop cost",
    "weak_scaling_efficiency": "efficiency",
    "gap": "gap",
    "rank": "rank",
    "status": "status",
}

# What may be said once for all rows, instead of in each of them.
_SAID_ONCE = ("status", "efficiency", "hop cost", "GPUs", "batch", "gap")


def sweep_text(rows: Sequence[Row], swept: Sequence[str]) -> str:
    """A table with a line a row, then what was wrong, without a final newline.

    ``swept``: keys that vary from row to row; they come first.
    """
    lines = list(narrowed(_table(rows, swept), _SAID_ONCE))
    without: dict[str, list[Row]] = {}
    for row in rows:
        if "error" in row:
            without.setdefault(row["error"], []).append(row)
    for error, same in without.items():
        first = ", ".join(f"{label(key)} {cell(same[0], key)}" for key in swept)
        more = f" and {len(same) - 1:,} more" if len(same) > 1 else ""
        lines += ["", *wrapped(f"{first}{more}: {error}", "  ")]
    return "\n".join(lines)


def sweep_html(rows: Sequence[Row], swept: Sequence[str]) -> str:
    """The table for a notebook."""
    return html_table(_table(rows, swept))


def _table(rows: Sequence[Row], swept: Sequence[str]) -> list[list[str]]:
    """A head, and a line a row."""
    labels = {label(key) for key in swept}  # GPUs that are swept are the world size
    shown = [key for key in _LABELS if label(key) not in labels]
    keys = [*swept, *(key for key in shown if any(row.get(key) for row in rows))]
    head = [label(key) for key in keys]
    return [head, *([cell(row, key) for key in keys] for row in rows)]


def label(key: str) -> str:
    """What people call a key."""
    name, _, tier = key.partition("_")
    if name == "oversubscription":
        return f"{tier} {name}".strip()
    return _LABELS.get(key, key)


def cell(row: Row, key: str) -> str:
    """One value as the table shows it; empty when the row has none."""
    value = row.get(key)
    if value is None:
        return "" if key == "status" else "-"
    if key.endswith("_bytes_per_s"):
        return format_bandwidth(value)
    if key == "exposed_scale_out_s" and row["step_time_s"]:
        return f"{format_seconds(value)} ({value / row['step_time_s']:z.1%})"
    if key.endswith("_s"):
        return f"{value:.5g} s" if value >= 1 else format_seconds(value)
    if key == "weak_scaling_efficiency":
        return f"{value:z.2%}"
    if key == "gap":
        return gap_text(value)
    return value if isinstance(value, str) else f"{value:,.12g}"
