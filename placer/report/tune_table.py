"""The rows of a search over degrees as a table for people, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from placer.cost.noise import DIFFERENCE
from placer.report.columns import columns, wrapped
from placer.units import format_bytes, format_seconds

Row = Mapping[str, Any]

_AXES = ("tp", "cp", "ep", "etp", "pp", "vp", "dp")
_HEAD = ("batch", "recompute", "sharding", "step", "behind", "memory", "exposed")


def tune_text(found: Mapping[str, Any], *, explain: bool = False) -> str:
    """The verdict, a table with a line a row, what was left out and what is proved.

    Parameters
    ----------
    found : mapping
        As `placer.degrees.tuning.Tuning.to_dict` gives it.
    explain : bool
        Also say what the best row and the next are made of.
    """
    rows = found["rows"]
    best = rows[0]
    axes = [axis for axis in _AXES if any(_tells(row, axis) for row in rows)]
    table = [[*axes, *_HEAD], *(_cells(row, axes, best) for row in rows)]
    lines = [*wrapped(_verdict(best), ""), "", *columns(table)]
    ties = _ties(rows)
    if ties:
        lines += ["", *wrapped(ties, "")]
    if explain and len(rows) > 1:
        lines += ["", *_explained(rows)]
    lines += ["", *wrapped(_left_out(found), ""), *wrapped(found["proof"] + ".", "")]
    return "\n".join(lines)


def tune_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV: a header, then a line a row; numbers as in JSON."""
    flat = [
        {
            **row["parallelism"],
            **{k: v for k, v in row.items() if k not in ("parallelism", "parts_s")},
        }
        for row in rows
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(flat[0]), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _verdict(best: Row) -> str:
    sizes = best["parallelism"]
    degrees = ", ".join(f"{a} {n}" for a, n in sizes.items() if _tells(best, a))
    return (
        f"{degrees or 'data parallelism alone'} on {best['gpus']:,} GPUs: "
        f"{format_seconds(best['step_time_s'])} a step, "
        f"{best['tokens_per_s_per_gpu']:,.0f} tokens a second and GPU."
    )


def _tells(row: Row, axis: str) -> bool:
    """Whether an axis is worth a column for this row."""
    sizes = row["parallelism"]
    usual = sizes["tp"] if axis == "etp" and sizes["ep"] == 1 else 1
    return bool(sizes[axis] != usual)


def _cells(row: Row, axes: Sequence[str], best: Row) -> list[str]:
    step = row["step_time_s"]
    behind = step / best["step_time_s"] - 1
    sharding = row["sharding"]
    if row["shard_size"]:
        sharding += f" {row['shard_size']}"
    return [
        *(str(row["parallelism"][axis]) for axis in axes),
        f"{row['micro_batch']} x {row['micro_batches']}",
        row["recompute"],
        sharding,
        format_seconds(step),
        f"+{behind:z.2%}" if behind else "",
        format_bytes(row["memory_bytes"]),
        f"{row['exposed_scale_out_s'] / step:z.1%}",
    ]


def _ties(rows: Sequence[Row]) -> str:
    """Which rows the model cannot tell from the best, and what does."""
    best = rows[0]["step_time_s"]
    near = [row for row in rows if row["step_time_s"] <= best * (1 + DIFFERENCE)]
    if len(near) < 2:
        return ""
    smallest = min(near, key=lambda row: row["memory_bytes"])
    fewest = min(near, key=lambda row: row["scale_up_domains"])
    return (
        f"Rows 1 to {len(near)} are within the noise of the model ({DIFFERENCE:z.0%}). "
        f"Row {rows.index(smallest) + 1} needs the least memory "
        f"({format_bytes(smallest['memory_bytes'])}), row {rows.index(fewest) + 1} the "
        f"fewest scale-up domains ({fewest['scale_up_domains']:,})."
    )


def _explained(rows: Sequence[Row]) -> list[str]:
    """What the best row and the next spend their step on."""
    first, second = rows[:2]
    parts = list(dict.fromkeys((*first["parts_s"], *second["parts_s"])))
    table = [["", "row 1", "row 2", "difference"]]
    for part in parts:
        one, two = (row["parts_s"].get(part, 0.0) for row in (first, second))
        if max(one, two) > 1e-9:
            change = format_seconds(abs(two - one))
            sign = "+" if two > one else "-"
            table.append(
                [part, format_seconds(one), format_seconds(two), sign + change]
            )
    return list(columns(table))


def _left_out(found: Mapping[str, Any]) -> str:
    pruned = found["pruned"]
    reasons = sorted(found["refused"].items(), key=lambda item: -item[1])[:2]
    why = "; ".join(f"{reason} {count:,}" for reason, count in reasons)
    refused = f" ({why})" if why else ""
    return (
        f"Of {found['considered']:,} choices, {pruned['rules']:,} break a rule of "
        f"{found['framework']}{refused}, {pruned['memory']:,} do not fit into memory, "
        f"{pruned['bound']:,} have a lower bound above the best."
    )
