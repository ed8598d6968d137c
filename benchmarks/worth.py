"""What placer saves of a step: by kind of job and by how fragmented the machine is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.cluster_jobs import KINDS
from placer.draw import palette, svg

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

    from benchmarks.drawn import Outcome

# Upper ends of the share of GPUs that the machine's leaves lack, and what to call them.
DEGREES = (
    (0.005, "none missing"),
    (0.1, "under 10 %"),
    (0.4, "10 to 40 %"),
    (1.0, "over 40 %"),
)
NOTHING = 5e-4  # a saving that is printed as 0
TOP_COLOUR = 0.3  # of a step, and more

_LEFT, _TOP, _WIDE, _HIGH = 130, 62, 120, 34


@dataclass(frozen=True)
class Cell:
    """Machines of one degree with one kind of job.

    Attributes
    ----------
    kind, degree : str
    saved : list of float
        Share of the step of the best simple order that placer saves, on each.
    """

    kind: str
    degree: str
    saved: list[float]

    @property
    def middle(self) -> float:
        """Median."""
        return median(self.saved)

    @property
    def most(self) -> float:
        """Largest."""
        return max(self.saved)


def saved(one: Outcome) -> float | None:
    """Share of the step of the best simple order that placer saves, if one fits."""
    order = one.order_value()
    return None if order is None else 1 - one.value / order


def cells(outcomes: Sequence[Outcome]) -> list[list[Cell]]:
    """A row for each kind of job, a cell for each degree of fragmentation."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in outcomes:
        share = saved(one)
        if share is not None:
            degree = next(name for most, name in DEGREES if one.missing <= most)
            found.setdefault((one.kind, degree), []).append(share)
    return [
        [Cell(kind, degree, found.get((kind, degree), [])) for _, degree in DEGREES]
        for kind in KINDS
    ]


def worth_table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Median and most that is saved, and on how many machines."""
    yield f"| job | {' | '.join(name for _, name in DEGREES)} |"
    yield f"|---|{'--:|' * len(DEGREES)}"
    for row in cells(outcomes):
        shown = [_text(cell) for cell in row]
        yield f"| {row[0].kind} | {' | '.join(shown)} |"


def _text(cell: Cell) -> str:
    if not cell.saved:
        return ""
    words = percent(cell.middle)
    if len(cell.saved) > 1:
        words += f", most {percent(cell.most)}"
    return f"{words} ({len(cell.saved)})"


def percent(share: float) -> str:
    """A share that is saved; 0 for nothing to speak of."""
    return "0" if abs(share) < NOTHING else f"{share:.1%}".replace("%", " %")


def picture(outcomes: Sequence[Outcome]) -> str:
    """The medians as a heat map, an SVG document."""
    rows = cells(outcomes)
    width = _LEFT + _WIDE * len(DEGREES) + 20
    height = _TOP + _HIGH * len(rows) + 50
    name = "Step time saved against the best of six orders"
    root = svg.new_picture(width, height, "auto", name)
    svg.write(root, name, 16, 24, font_size=15, font_weight="600")
    for column, (_, degree) in enumerate(DEGREES):
        middle = _LEFT + (column + 0.5) * _WIDE
        svg.write(root, degree, middle, _TOP - 10, text_anchor="middle")
    for index, row in enumerate(rows):
        y = _TOP + index * _HIGH
        svg.write(root, row[0].kind, 16, y + _HIGH / 2 + 4)
        for column, cell in enumerate(row):
            _draw(root, cell, _LEFT + column * _WIDE, y)
    note = "GPUs that the machine's leaves lack; median (most) of the machines"
    svg.write(root, note, 16, height - 18, class_="p-soft")
    return svg.to_text(root)


def _draw(root: Xml.Element, cell: Cell, x: float, y: float) -> None:
    box = {"x": x + 2, "y": y + 2, "width": _WIDE - 4.0, "height": _HIGH - 4.0}
    middle = x + _WIDE / 2
    if not cell.saved:
        hover = f"{cell.kind}, {cell.degree}: no machine"
        svg.add(root, "rect", hover, **box, class_="p-panel")
        svg.write(root, "-", middle, y + 21, text_anchor="middle", class_="p-soft")
        return
    hover = f"{cell.kind}, {cell.degree}: {len(cell.saved)} machines"
    words = f"{percent(cell.middle)} ({percent(cell.most)})"
    if cell.most < NOTHING:
        svg.add(root, "rect", hover, **box, class_="p-panel")
        svg.write(root, "0", middle, y + 21, text_anchor="middle", class_="p-soft")
        return
    colour = palette.along(min(1.0, cell.middle / TOP_COLOUR))
    svg.add(root, "rect", hover, **box, fill=colour)
    ink = palette.ink_on(colour)
    svg.write(root, words, middle, y + 21, text_anchor="middle", fill=ink)
