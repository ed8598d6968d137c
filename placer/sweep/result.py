"""What a sweep found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from placer.api.result import Result
from placer.assumed import all_assumed, assumed_entry
from placer.base.csv_rows import csv_text
from placer.base.units import format_seconds
from placer.draw.picture import Picture, ThemeName
from placer.job.fixed import fixed_share
from placer.report.assumed_text import assumed_lines, fixed_warning
from placer.report.columns import paragraphs
from placer.report.sweep_table import sweep_html, sweep_text
from placer.sweep.point import Row, Task


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
    rows: Sequence[Row]
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
        return sweep_html(self.rows, self.swept)

    @property
    def best(self) -> Row | None:
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
        from placer.sweep.plot import sweep_plot

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
