"""The pipeline of the slowest replica over time, a stage a row, and what follows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from xml.etree import ElementTree as Xml

from placer.base.errors import InputError
from placer.base.units import counted, format_seconds
from placer.cost.pipeline_order import blocks
from placer.cost.schedule import PipelineWalk, Stages
from placer.cost.step import Step, StepModel, stages_of
from placer.draw import palette, svg
from placer.draw.line_plot import nice_step
from placer.draw.time_line import PART_COLOURS, Part, exposed_parts
from placer.job.model import Job
from placer.placement.build import placement_of_plan
from placer.placement.plan import Plan
from placer.topology.model import Topology

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


def step_of(plan: Plan, machine: Topology, job: Job) -> Step:
    """A step of a plan of this job on this machine.

    Of a workload that of the slowest instance of a role, the slowest of those with
    stages.
    """
    gpus = placement_of_plan(plan, machine).gpu_of_rank
    step = StepModel(machine, job).step(gpus)
    timed = [time for time in step.roles if time.role.job.model]
    if not timed:
        return step
    return max(timed, key=lambda time: time.seconds).slowest


@dataclass(frozen=True)
class Piece:
    """One chunk of one micro-batch on one stage, forward or backward."""

    stage: int
    work: int  # its kind, by number: `placer.cost.pipeline_order.Operation.work`
    is_forward: bool
    micro_batch: int
    chunk: int
    # start_s and end_s, s: from the start of the pipeline.
    start_s: float
    end_s: float


def timetable(
    stages: Stages, micro_batches: int, chunks: int, overlap: bool
) -> list[Piece]:
    """All pieces of a replica's pipeline, in an order in which they can run.

    `placer.cost.schedule` walks the same work, and only wants to know when all is done.

    ``overlap``: whether a rank computes on while its message travels.
    """
    num_stages = len(stages.forward)
    seconds = work_s(stages)
    walk = PipelineWalk[float](
        seconds, stages.hop * 2, overlap, max, [0.0] * num_stages
    )
    done: dict[tuple[int, bool], int] = {}
    items = _items(num_stages, micro_batches, chunks)
    pieces = []
    for operation in chain(*blocks(num_stages, micro_batches, chunks)):
        stage, work, source, *_ = operation
        start = max(walk.clock[stage], walk.arrived.get(source, 0.0))
        end = start + seconds[work]
        walk.do((operation,))
        ends = work >= 2 * num_stages  # of these every other one
        is_forward = work % 2 == 0 if ends else work < num_stages
        nth = done.get((stage, is_forward), 0)
        done[stage, is_forward] = nth + 1
        batch, chunk = items[nth]
        own = chunk if is_forward else chunks - 1 - chunk
        pieces.append(Piece(stage, work, is_forward, batch, own, start, end))
    return pieces


def work_s(stages: Stages) -> tuple[float, ...]:
    """Seconds of each kind of work, by its number."""
    return (*stages.forward, *stages.backward, *stages.ends)


def _items(num_stages: int, micro_batches: int, chunks: int) -> list[tuple[int, int]]:
    """Micro-batch and chunk of each forward of a rank, in order."""
    group = num_stages * chunks
    total = -(-micro_batches // num_stages) * group
    found = [
        (i // group * num_stages + i % num_stages, i % group // num_stages)
        for i in range(total)
    ]
    return [(batch, chunk) for batch, chunk in found if batch < micro_batches]


@dataclass(frozen=True)
class Run:
    """What the stages of the slowest replica do, and what a step takes after it.

    Of a job with very many micro-batches only the first are ``drawn``.
    """

    step: Step
    replica: int
    stages: list[int]  # those with a row of their own
    drawn: int
    pieces: list[Piece]  # of those stages
    exposed_s: tuple[float, ...]  # of each kind of work, by its number
    pipeline_s: float
    after: tuple[Part, ...]

    @property
    def total_s(self) -> float:
        """Seconds that are drawn."""
        return self.pipeline_s + sum(part.seconds for part in self.after)

    @property
    def left_out(self) -> str:
        """How many stages have no row; empty if none."""
        count = self.step.model.job.parallelism.pp - len(self.stages)
        return counted(count, "more stage") if count else ""

    @property
    def bands(self) -> list[list[int]]:
        """Stages side by side: all, or the first and the last of more."""
        if not self.left_out:
            return [self.stages]
        return [self.stages[:_ENDS], self.stages[_ENDS:]]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Names and colours, but for what is waiting."""
        inside = ", ".join(axis for axis in self.step.stage_times if axis != "pp")
        return [
            ("forward", _FORWARD),
            ("backward", _BACKWARD),
            *([(f"exposed {inside}", _EXPOSED)] if inside else []),
            *((part.name, part.colour) for part in self.after),
        ]


@dataclass(frozen=True)
class _Chart:
    """Where times and stages lie, in pixels."""

    pace: float
    row: float  # height of a stage
    y: dict[int, float]  # top of each stage with a row

    def x(self, seconds: float) -> float:
        return _LEFT + seconds * self.pace

    @property
    def bottom(self) -> float:
        return max(self.y.values()) + self.row


def slowest_run(step: Step) -> Run:
    """The work of the replica that sets the step."""
    job = step.model.job
    if job.model is None:
        who = "no role of the workload has a" if job.roles else "the job has no"
        raise InputError(f"{who} model, so no times", key="model")
    replica, axes = step.slowest_replica(), job.parallelism
    # Its times, and those without communication.
    stages, bare = (stages_of(step.patterns(a)[replica]) for a in (step.axes, ()))
    rows = [*range(axes.pp)]
    if axes.pp > 2 * _ENDS:
        rows = rows[:_ENDS] + rows[-_ENDS:]
    # All micro-batches, or whole groups of as many as there are stages.
    drawn = fitting = MOST_PIECES // (2 * axes.vp * len(rows))
    if job.micro_batches > fitting:
        drawn = max(fitting // axes.pp, 1) * axes.pp
    drawn = min(drawn, job.micro_batches)
    pieces = timetable(stages, drawn, axes.vp, job.overlap.pp)
    own = zip(work_s(stages), work_s(bare), strict=True)
    return Run(
        step,
        replica,
        rows,
        drawn,
        [piece for piece in pieces if piece.stage in rows],
        tuple(max(spent - alone, 0.0) for spent, alone in own),
        max(piece.end_s for piece in pieces if piece.stage == 0),
        tuple(_after(step)),
    )


def pipeline_rows(step: Step) -> list[dict[str, Any]]:
    """A row a piece of work that is drawn, with its ``start_s`` and ``end_s``."""
    return [
        {
            "stage": piece.stage,
            "direction": "forward" if piece.is_forward else "backward",
            "micro_batch": piece.micro_batch,
            "chunk": piece.chunk,
            "start_s": piece.start_s,
            "end_s": piece.end_s,
        }
        for piece in slowest_run(step).pieces
    ]


def pipeline_chart(step: Step, theme: str = "auto") -> str:
    """SVG of the work of every stage, when it runs, and what of it is communication.

    After the pipeline come the parts of the step that follow from other axes.
    """
    run = slowest_run(step)
    row = min(_ROW, _TALL / len(run.stages) - _ROW_GAP)
    pace = (_WIDTH - _MARGIN - _LEFT) / run.total_s
    rows = (
        (stage, place, _TOP + index * _BREAK)
        for index, own in enumerate(run.bands)
        for place, stage in enumerate(own, index * _ENDS)
    )
    y = {stage: top + place * (row + _ROW_GAP) for stage, place, top in rows}
    chart = _Chart(pace, row, y)
    root = svg.new_picture(_WIDTH, chart.bottom + 56, theme, _title(step))
    _draw_heading(root, run)
    _draw_legend(root, run)
    _draw_stages(root, chart, run)
    layer = svg.add(root, "g", class_="pieces", text_anchor="middle")
    for piece in run.pieces:
        _draw_piece(layer, chart, piece, run.exposed_s[piece.work])
    _draw_after(root, chart, run)
    _draw_times(root, chart, run.total_s)
    return svg.to_text(root)


# Width of a band in units of its own: a page stretches it to its room.
_BAND = 10_000
_HAIR = 4


def band(run: Run, stages: Sequence[int], longest_s: float) -> str:
    """SVG of the work of some stages for a page: a stage a unit high, without words.

    ``longest_s``: seconds of the whole width.
    """
    pace, high = _BAND / longest_s, len(stages)
    shapes: dict[str, list[str]] = {_FORWARD: [], _BACKWARD: [], _EXPOSED: []}
    row = {stage: index for index, stage in enumerate(stages)}
    for piece in run.pieces:
        if piece.stage not in row:
            continue
        left, end = round(piece.start_s * pace), round(piece.end_s * pace)
        end -= _HAIR * (end - left > 6 * _HAIR)
        tail = min(round(run.exposed_s[piece.work] * pace), end - left)
        kind = _FORWARD if piece.is_forward else _BACKWARD
        for colour, x, width in (
            (kind, left, end - left - tail),
            (_EXPOSED, end - tail, tail),
        ):
            if width:
                shape = f"M{x} {row[piece.stage]}h{width}v.9h-{width}z"
                shapes[colour].append(shape)
    told = f"When stages {stages[0]} to {stages[-1]} work"
    look = {"role": "img", "aria-label": told, "preserveAspectRatio": "none"}
    root = Xml.Element("svg", look, viewBox=f"0 0 {_BAND} {high}")
    idle = "".join(f"M0 {y}h{run.pipeline_s * pace:.0f}v.9H0z" for y in range(high))
    svg.add(root, "path", d=idle, class_="p-wait")
    for colour, drawn in shapes.items():
        svg.add(root, "path", d="".join(drawn), fill=colour)
    start = run.pipeline_s
    for part in run.after:
        box = {"x": start * pace, "width": max(part.seconds * pace, 8.0), "y": 0.0}
        svg.add(root, "rect", **box, height=high - 0.1, fill=part.colour)
        start += part.seconds
    return Xml.tostring(root, encoding="unicode")


def _title(step: Step) -> str:
    return f"The slowest pipeline: {step.model.job.name} on {step.model.topology.name}"


def _draw_heading(root: Xml.Element, run: Run) -> None:
    step = run.step
    axes = step.model.job.parallelism
    parts = (
        f"replica {run.replica}",
        counted(axes.pp, "stage") + f" of {axes.vp} chunks" * (axes.vp > 1),
        micro_batches_text(run),
        f"{format_seconds(step.step_time_s)} a step",
    )
    subtitle = f" {svg.DOT} ".join(parts)
    room = _WIDTH - 2 * _MARGIN
    svg.write_heading(root, _title(step), subtitle, _MARGIN, room, 20)


def micro_batches_text(run: Run) -> str:
    """How many micro-batches are drawn, of how many."""
    count = run.step.model.job.micro_batches
    few = "" if run.drawn == count else f"the first {run.drawn:,} of "
    return f"{few}{count:,} micro-batch{'es' * (count != 1)}"


def _after(step: Step) -> Iterator[Part]:
    """What the step takes beside the pipeline."""
    exposed = {"dp": step.exposed_data_parallel_s, **step.exposed_custom_s}
    yield from exposed_parts(exposed)
    if step.model.fixed_s > 0:
        yield Part("fixed", step.model.fixed_s, PART_COLOURS["fixed"], False)


def _draw_legend(root: Xml.Element, run: Run) -> None:
    """What the colours mean."""
    x, y = _MARGIN, 98.0
    entries = [(name, {"fill": colour}) for name, colour in run.legend]
    entries.append(("waiting: bubble and messages", {"class_": "p-panel"}))
    for name, look in entries:
        svg.swatch(root, x, y, rx=2.0, **look)
        svg.write(root, name, x + 20, y + 4.5, font_size=13)
        x += 20 + svg.text_width(name, 13) + 18


def _draw_stages(root: Xml.Element, chart: _Chart, run: Run) -> None:
    for stage, y in chart.y.items():
        box = {"x": _LEFT, "y": y, "height": chart.row}
        width = run.pipeline_s * chart.pace
        svg.add(root, "rect", **box, width=width, class_="p-panel")
        middle = y + chart.row / 2 + 4
        svg.write(root, f"stage {stage}", _MARGIN, middle, font_size=_FONT)
    if run.left_out:
        above = chart.y[run.stages[_ENDS]] - _ROW_GAP - _BREAK / 2 + 6
        svg.write(root, run.left_out, _LEFT, above, class_="p-soft", font_size=_FONT)


def _draw_piece(
    layer: Xml.Element, chart: _Chart, piece: Piece, exposed: float
) -> None:
    x, width = chart.x(piece.start_s), (piece.end_s - piece.start_s) * chart.pace
    box = {"y": chart.y[piece.stage], "height": chart.row}
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


def _draw_after(root: Xml.Element, chart: _Chart, run: Run) -> None:
    start = run.pipeline_s
    layer = svg.add(root, "g", class_="after")
    for part in run.after:
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
