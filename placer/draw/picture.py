"""Pictures of a plan as objects, for notebooks and files."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape, unescape
from typing import TYPE_CHECKING, Any, Literal, get_args

from placer.base.arguments import takes
from placer.base.csv_rows import csv_text
from placer.base.errors import Problem, refuse
from placer.placement.plan_file import PlanLike, plan_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan

PictureName = Literal["map", "traffic", "timeline", "pipeline"]
ColourName = Literal["role", "dp", "pp", "ep", "tp"]
ThemeName = Literal["auto", "light", "dark"]

_NAME = re.compile(r'aria-label="([^"]*)"')


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture; it shows itself in a notebook, and its text is the SVG.

    ``pandas.DataFrame(picture.rows)`` takes what it shows.

    Attributes
    ----------
    svg : str
    content : callable
        Returns the rows.
    """

    svg: str
    content: Callable[[], list[dict[str, Any]]] = field(compare=False)

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<placer.Picture: {self.name}>"

    def _repr_html_(self) -> str:
        # An image keeps the style sheet of the picture from the page, and its scripts.
        data = b64encode(self.svg.encode()).decode()
        source = f"data:image/svg+xml;base64,{data}"
        alt = escape(self.name)
        return f'<img alt="{alt}" style="max-width:100%" src="{source}">'

    @property
    def name(self) -> str:
        """What it shows."""
        found = _NAME.search(self.svg)
        return unescape(found[1]) if found else "a picture"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What it shows: a plain mapping a rank, cell, part, piece of work or point."""
        return self.content()

    def to_dict(self) -> dict[str, Any]:
        """Its name and its rows, ready for JSON."""
        return {"name": self.name, "rows": self.rows}

    def to_csv(self) -> str:
        """The rows as CSV: a header, then a line a row; numbers as in JSON."""
        return csv_text(self.rows)

    @takes()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it, atomically: as PNG where the path ends in ``.png``, else as SVG.

        Raises
        ------
        InputError
            If it is a PNG and the extra ``png`` is not installed.
        OutputError
            If it cannot be written.
        """
        from placer.documents.files import write_bytes, write_text

        target = os.fspath(path)
        if target.lower().endswith(".png"):
            from placer.draw.png import png

            write_bytes(target, png(self.svg))
        else:
            write_text(target, self.svg)


@takes()
def draw(
    plan: PlanLike,
    picture: PictureName = "map",
    *,
    colour: ColourName | None = None,
    zoom: str | None = None,
    theme: ThemeName = "auto",
) -> Picture:
    """A picture of a plan.

    Parameters
    ----------
    plan : Plan, Result, path or dict
    picture : str
        ``map`` (where the ranks are), ``traffic`` (bytes by tier), ``timeline`` (of a
        step) or ``pipeline`` (when the stages of the slowest replica work; of a
        workload in its slowest role with a model).
    colour : str, optional
        Of the map: ``role`` (of a workload), ``dp`` (replicas), ``pp`` (stages), ``ep``
        or ``tp`` (groups); by default the first of them that has members.
    zoom : str, optional
        Of the map: the one domain to show, such as ``r012`` or ``rack=r012``.
    theme : str
        ``light``, ``dark``, or ``auto``, which follows what the reader prefers.

    Returns
    -------
    Picture
        SVG that a notebook shows; `save` writes it.

    Raises
    ------
    InputError
        If an argument is wrong, the plan does not give its axes, or the pipeline is
        asked for of a plan that keeps no inputs.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> placer.draw(plan, "traffic").save("traffic.svg")
    """
    refuse(_problems(picture, colour, zoom, theme))
    plan = plan_of(plan)
    if picture == "pipeline":
        from placer.draw.pipeline import pipeline_chart, pipeline_rows, step_of
        from placer.placement.inputs import inputs_of

        inputs = inputs_of(plan)
        step = step_of(plan, inputs.machine, inputs.job)
        return Picture(pipeline_chart(step, theme), lambda: pipeline_rows(step))
    svg = drawn(plan, picture, colour, zoom, theme)
    return Picture(svg, lambda: _rows(plan, picture, zoom))


def drawn(
    plan: Plan, picture: str, colour: str | None, zoom: str | None, theme: str
) -> str:
    """SVG of a picture that needs no more than the plan; `draw` has the arguments."""
    if picture == "traffic":
        from placer.draw.heat_map import traffic_map

        return traffic_map(plan, theme)
    if picture == "timeline":
        from placer.draw.time_line import time_line

        return time_line(plan, theme)
    from placer.draw.placement_map import placement_map

    return placement_map(plan, colour, zoom, theme)


def _rows(plan: Plan, picture: str, zoom: str | None) -> list[dict[str, Any]]:
    if picture == "traffic":
        from placer.draw.heat_map import traffic_rows

        return traffic_rows(plan)
    if picture == "timeline":
        from placer.draw.time_line import time_rows

        return time_rows(plan)
    from placer.draw.placement_map import map_rows

    return map_rows(plan, zoom)


def _problems(
    picture: str, colour: str | None, zoom: str | None, theme: str
) -> Iterator[Problem]:
    for key, value, names in (
        ("picture", picture, get_args(PictureName)),
        ("colour", colour, (None, *get_args(ColourName))),
        ("theme", theme, get_args(ThemeName)),
    ):
        if value not in names:
            known = f"known: {', '.join(filter(None, names))}"
            yield Problem(f'there is no {key} "{value}"', key=key, hint=known)
    if picture != "map" and (colour or zoom):
        yield Problem("colour and zoom are for the map", key="picture")
