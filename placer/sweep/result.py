"""What a sweep found: its rows as text, as a table and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from placer.api.result import Result
from placer.assumed import all_assumed, assumed_entry
from placer.base.csv_rows import csv_text
from placer.base.errors import InputError
from placer.base.units import format_bandwidth, format_seconds
from placer.documents import Section, open_document
from placer.documents.keys import number
from placer.draw.line_plot import Panel, Series, line_plot
from placer.draw.picture import Picture, ThemeName
from placer.job.fixed import fixed_share
from placer.report.assumed_text import assumed_lines, fixed_warning
from placer.report.columns import narrowed, paragraphs, wrapped
from placer.report.notebook import html_table
from placer.report.words import gap_text
from placer.sweep.grid import MAX_POINTS, NIC_RATE, OVERSUBSCRIPTION, SIZES
from placer.sweep.point import Task

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """The rows of a sweep.

    It shows itself in a notebook. ``pandas.DataFrame(found.rows)`` takes its rows.

    Attributes
    ----------
    task : Task
        What all points share.
    rows : list of dict
        One a point, in the order of the grid, as ``placer sweep --format json`` prints
        them.
    swept : tuple of str
        The keys that vary.
    points : int
        Of the grid; more than rows when the sweep was stopped.
    """

    task: Task
    rows: Sequence[dict[str, Any]]
    swept: Sequence[str]
    points: int

    def __repr__(self) -> str:
        best = self.best
        if best is None:
            return f"<placer.Sweep: {len(self.rows):,} rows, none with a placement>"
        at = ", ".join(f"{key} {best[key]:g}" for key in self.swept)
        step = best.get("step_time_s", 0.0)
        said = f", {format_seconds(step)} a step" if step else ""
        return f"<placer.Sweep: {len(self.rows):,} rows, best {at}{said}>"

    def _repr_html_(self) -> str:
        return html_table(_table(self.rows, self.swept))

    @property
    def best(self) -> dict[str, Any] | None:
        """The row of rank 1; None where no point has a placement."""
        return next((row for row in self.rows if row.get("rank") == 1), None)

    def place(self, row: Row) -> Result:
        """The placement of a row.

        Raises
        ------
        InputError, InfeasibleError
            If it has none.
        """
        return self.task.placed({key: row[key] for key in self.swept})

    def summary(self) -> str:
        """The rows as text for people."""
        lines = assumed_lines(self._assumed.get("assumed", ()))
        steps = [step for row in self.rows if (step := row.get("step_time_s"))]
        share = fixed_share(self.task.job, min(steps, default=0.0))
        warning = fixed_warning(share)
        return paragraphs([[sweep_text(self.rows, self.swept)], [*lines, *warning]])

    def draw(self, theme: ThemeName = "auto") -> Picture:
        """Step time and exposed time over the first key that varies, as a picture."""
        svg = sweep_plot(self.rows, self.swept, theme)
        return Picture(svg, lambda: list(self.rows))

    def to_dict(self) -> dict[str, Any]:
        """As ``placer sweep --format json`` prints it."""
        return {"rows": list(self.rows)} | self._assumed

    @property
    def _assumed(self) -> dict[str, Any]:
        """What is assumed and not swept, as the key of a document."""
        swept = {key.partition("_")[0] for key in self.swept}
        assumed = all_assumed(self.task.topology, self.task.job)
        return assumed_entry(each for each in assumed if each.key not in swept)

    def to_csv(self) -> str:
        """A header, then a line a row; numbers as in JSON."""
        return csv_text(self.rows)


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


_TIMES = ("step_time_s", "exposed_scale_out_s")
# Above zero: a value may lie on a logarithmic axis.
_LEAST = 1e-9


def read_rows(source: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows that ``placer sweep --format json`` printed, and the keys that it swept.

    Of a row only what a plot shows is kept.
    """
    document = open_document(source)
    hint = "this wants what `placer sweep --format json` prints"
    document.root.has("assumed")  # what is drawn does not show it
    if not document.root.has("rows"):
        raise InputError("no rows of a sweep", source, hint=hint)
    values = document.root.items("rows", required=True)
    if len(values) > MAX_POINTS:
        document.root.problem(f"{len(values):,} rows; at most {MAX_POINTS:,}", "rows")
    sections = [value.section() for value in values[:MAX_POINTS]]
    swept = _swept(sections[0]) if sections else []
    if not swept and not document.problems:
        document.root.problem("no rows of a sweep", "rows", hint)
    rows = [_row(section, swept) for section in sections]
    document.finish()
    return rows, swept


def _swept(section: Section) -> list[str]:
    """The keys of a point: they stand before what follows from them."""
    keys = (key for key, _ in section.entries())
    found = [*takewhile(lambda key: key != "world_size", keys)]
    fixed = [key for key in (*SIZES, NIC_RATE) if key in found]
    return fixed + [key for key in found if key.startswith(OVERSUBSCRIPTION)]


def _row(section: Section, swept: list[str]) -> dict[str, Any]:
    values = dict(section.entries())
    row: dict[str, Any] = {key: section.take(number(_LEAST), key) for key in swept}
    if "step_time_s" in values:
        return row | {key: section.take(number(), key) for key in _TIMES}
    error = values.get("error")
    return row | {"error": str(error.content) if error else "no placement"}


_PANELS = {"step_time_s": "step time", "exposed_scale_out_s": "exposed scale-out time"}


def sweep_plot(rows: Sequence[Row], swept: Sequence[str], theme: str = "auto") -> str:
    """SVG with a point a row in both panels; rows without a placement are crosses.

    ``swept``: keys that vary. The first with two values or more is the horizontal axis;
    every combination of the others is a line. ``theme``: ``auto``, ``light`` or
    ``dark``.
    """
    x_key = next((k for k in swept if len({row[k] for row in rows}) > 1), swept[0])
    others = [key for key in swept if key != x_key]
    lines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row[x_key]):
        name = ", ".join(f"{label(key)} {cell(row, key)}" for key in others)
        lines.setdefault(name, []).append(row)
    panels = []
    for key, title in _PANELS.items():
        series = []
        for name, line in lines.items():
            points = []
            for row in line:
                told = row["error"] if row.get(key) is None else cell(row, key)
                hover = f"{label(x_key)} {cell(row, x_key)}: {told}"
                points.append((row[x_key], row.get(key), hover))
            series.append(Series(name, tuple(points)))
        texts = format_seconds, label(x_key), lambda value: cell({x_key: value}, x_key)
        panels.append(Panel(title, tuple(series), *texts))
    return line_plot(panels, f"Best placement by {label(x_key)}", theme)
