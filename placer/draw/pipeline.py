"""The pipeline of the slowest replica over time, a stage a row, and what follows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.base.units import format_seconds
from placer.draw import palette, svg
from placer.draw.line_plot import nice_step
from placer.draw.time_line import PART_COLOURS, Part, exposed_parts
from placer.draw.timetable import Piece, slowest_pipeline, timetable, work_s

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

    from placer.cost.step import Step

# Of more stages the first and the last are drawn, as many of each.
_ENDS = 8
# More pieces than that would be thinner than a pixel: then fewer micro-batches.
MOST_PIECES = 6000

_WIDTH, _MARGIN, _LEFT = 1600.0, 24.0, 84.0
_TOP = 128.0
_ROW, _ROW_GAP, _TALL, _BREAK = 28.0, 4.0, 420.0, 26.0
_FONT = 12.0
_WIDE_ENOUGH = 13.0  # for the number of a micro-batch
_FORWARD, _BACKWARD, _EXPOSED = "#56b4e9", "#0072b2", "#f0e442"


def shown_stages(num_stages: int) -> list[int]:
    """Stages with a row of their own: all, or the first and last eight."""
    every = list(range(num_stages))
    return every if num_stages <= 2 * _ENDS else every[:_ENDS] + every[-_ENDS:]


@dataclass(frozen=True)
class _Chart:
    """Where times and stages lie, in pixels."""

    pace: float
    row: float
    stages: list[int]
    num_stages: int

    def x(self, seconds: float) -> float:
        return _LEFT + seconds * self.pace

    def y(self, stage: int) -> float:
        left_out = self.num_stages - len(self.stages)
        after_break = left_out > 0 and stage >= _ENDS
        row = stage - left_out if after_break else stage
        return _TOP + row * (self.row + _ROW_GAP) + after_break * _BREAK

    @property
    def bottom(self) -> float:
        return self.y(self.num_stages) - _ROW_GAP


def pipeline_chart(step: Step, theme: str = "auto") -> str:
    """SVG of the work of every stage, when it runs, and what of it is communication.

    After the pipeline come the parts of the step that follow from other axes. Of a job
    with very many micro-batches only the first are drawn.
    """
    job = step.model.job
    if job.model is None:
        raise InputError("the job has no model, so no times", key="model")
    replica, stages, bare = slowest_pipeline(step)
    axes = job.parallelism
    rows = shown_stages(axes.pp)
    drawn = _drawn(job.micro_batches, axes.pp, axes.vp * len(rows))
    pieces = timetable(stages, drawn, axes.vp, job.overlap.pp)
    pipeline = max(piece.end_s for piece in pieces if piece.stage == 0)
    after = list(_after(step))
    total = pipeline + sum(part.seconds for part in after)
    row = min(_ROW, _TALL / len(rows) - _ROW_GAP)
    chart = _Chart((_WIDTH - _MARGIN - _LEFT) / total, row, rows, axes.pp)
    root = svg.new_picture(_WIDTH, chart.bottom + 56, theme, _title(step))
    _draw_heading(root, step, replica, drawn)
    inside = ", ".join(axis for axis in step.stage_times if axis != "pp")
    _draw_legend(root, inside, after)
    _draw_stages(root, chart, pipeline)
    layer = svg.add(root, "g", class_="pieces", text_anchor="middle")
    spent, alone = work_s(stages), work_s(bare)
    for piece in (piece for piece in pieces if piece.stage in rows):
        exposed = spent[piece.work] - alone[piece.work]
        _draw_piece(layer, chart, piece, max(exposed, 0.0))
    _draw_after(root, chart, after, pipeline)
    _draw_times(root, chart, total)
    return svg.to_text(root)


def _title(step: Step) -> str:
    return f"The slowest pipeline: {step.model.job.name} on {step.model.topology.name}"


def _draw_heading(root: Xml.Element, step: Step, replica: int, drawn: int) -> None:
    job = step.model.job
    axes = job.parallelism
    few = "" if drawn == job.micro_batches else f"the first {drawn:,} of "
    parts = (
        f"replica {replica}",
        f"{axes.pp} stage{'s' * (axes.pp != 1)}"
        + f" of {axes.vp} chunks" * (axes.vp > 1),
        f"{few}{job.micro_batches:,} micro-batch{'es' * (job.micro_batches != 1)}",
        f"{format_seconds(step.step_time_s)} a step",
    )
    subtitle = f" {svg.DOT} ".join(parts)
    room = _WIDTH - 2 * _MARGIN
    svg.write_heading(root, _title(step), subtitle, _MARGIN, room, 20)


def _drawn(micro_batches: int, num_stages: int, chunks: int) -> int:
    """Micro-batches to draw: all, or whole groups of as many as there are stages.

    ``chunks`` are those of all stages that are drawn.
    """
    fitting = MOST_PIECES // (2 * chunks)
    if micro_batches <= fitting:
        return micro_batches
    return min(max(fitting // num_stages, 1) * num_stages, micro_batches)


def _after(step: Step) -> Iterator[Part]:
    """What the step takes beside the pipeline."""
    exposed = {"dp": step.exposed_data_parallel_s, **step.exposed_custom_s}
    yield from exposed_parts(exposed)
    if step.model.fixed_s > 0:
        yield Part("fixed", step.model.fixed_s, PART_COLOURS["fixed"], False)


def _draw_legend(root: Xml.Element, inside: str, after: Sequence[Part]) -> None:
    """What the colours mean; ``inside`` names the axes exposed within the work."""
    entries = [
        ("forward", _FORWARD),
        ("backward", _BACKWARD),
        *([(f"exposed {inside}", _EXPOSED)] if inside else []),
        *((part.name, part.colour) for part in after),
    ]
    x, y = _MARGIN, 98.0
    for name, colour in entries:
        box = {"x": x, "y": y - 7, "width": 14.0, "height": 14.0, "rx": 2.0}
        svg.add(root, "rect", **box, fill=colour)
        svg.write(root, name, x + 20, y + 4.5, font_size=13)
        x += 20 + svg.text_width(name, 13) + 18
    box = {"x": x, "y": y - 7, "width": 14.0, "height": 14.0, "rx": 2.0}
    svg.add(root, "rect", **box, class_="p-panel")
    svg.write(root, "waiting: bubble and messages", x + 20, y + 4.5, font_size=13)


def _draw_stages(root: Xml.Element, chart: _Chart, pipeline: float) -> None:
    for stage in chart.stages:
        y = chart.y(stage)
        box = {"x": _LEFT, "y": y, "height": chart.row}
        svg.add(root, "rect", **box, width=pipeline * chart.pace, class_="p-panel")
        middle = y + chart.row / 2 + 4
        svg.write(root, f"stage {stage}", _MARGIN, middle, font_size=_FONT)
    if left_out := chart.num_stages - len(chart.stages):
        text = f"{left_out:,} more stage{'s' * (left_out != 1)}"
        above = chart.y(chart.stages[_ENDS]) - _ROW_GAP - _BREAK / 2 + 6
        svg.write(root, text, _LEFT, above, class_="p-soft", font_size=_FONT)


def _draw_piece(
    layer: Xml.Element, chart: _Chart, piece: Piece, exposed: float
) -> None:
    x, width = chart.x(piece.start_s), (piece.end_s - piece.start_s) * chart.pace
    box = {"y": chart.y(piece.stage), "height": chart.row}
    # A hair of background tells a piece from the next.
    shown = width - 0.7 if width > 3 else width
    kind = "forward" if piece.is_forward else "backward"
    colour = _FORWARD if piece.is_forward else _BACKWARD
    hover = (
        f"stage {piece.stage}: {kind} of micro-batch {piece.micro_batch}, chunk "
        f"{piece.chunk}\n{format_seconds(piece.start_s)} to "
        f"{format_seconds(piece.end_s)}, {format_seconds(exposed)} of it exposed"
    )
    look = {"fill": colour, "class_": f"piece {kind}"}
    svg.add(layer, "rect", hover, x=x, width=shown, **box, **look)
    tail = min(exposed * chart.pace, shown)
    if tail >= 0.25:
        at = {"x": x + shown - tail, "width": tail}
        svg.add(layer, "rect", **at, **box, fill=_EXPOSED, pointer_events="none")
    if shown - tail >= _WIDE_ENOUGH and chart.row >= _FONT:
        place = x + (shown - tail) / 2, box["y"] + chart.row / 2 + 3.5
        ink = {"fill": palette.ink_on(colour), "pointer_events": "none"}
        svg.write(layer, str(piece.micro_batch), *place, font_size=9.5, **ink)


def _draw_after(
    root: Xml.Element, chart: _Chart, after: Sequence[Part], pipeline: float
) -> None:
    start = pipeline
    layer = svg.add(root, "g", class_="after")
    for part in after:
        box = {"x": chart.x(start), "width": part.seconds * chart.pace, "y": _TOP}
        look = {"fill": part.colour, "data_seconds": repr(part.seconds)}
        hover = f"{part.name}: {format_seconds(part.seconds)}"
        svg.add(layer, "rect", hover, **box, height=chart.bottom - _TOP, **look)
        start += part.seconds


def _draw_times(root: Xml.Element, chart: _Chart, total: float) -> None:
    """The axis of time under the chart."""
    y = chart.bottom + 8
    line = {"x1": _LEFT, "x2": chart.x(total), "y1": y, "y2": y}
    svg.add(root, "line", **line, class_="p-rule")
    step = nice_step(total)
    for tick in range(int(total / step) + 1):
        x = chart.x(tick * step)
        svg.add(root, "line", x1=x, x2=x, y1=y, y2=y + 5, class_="p-rule")
        words = {"text_anchor": "middle" if tick else "start", "class_": "p-soft"}
        svg.write(root, format_seconds(tick * step), x, y + 20, **words)
