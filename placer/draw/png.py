"""SVG as PNG, through resvg: an optional extra."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from placer.base.errors import InputError, OutputError

if TYPE_CHECKING:
    from types import ModuleType

# Pixels across, at least: smaller pictures are enlarged.
LEAST_WIDTH = 1600

# What systems call their sans-serif font. resvg draws nothing, without a word, where it
# has none of the family it is told.
_FAMILIES = (
    "Helvetica Neue",
    "Helvetica",
    "Arial",
    "Liberation Sans",
    "DejaVu Sans",
    "Noto Sans",
    "Segoe UI",
    "Roboto",
    "Ubuntu",
    "Open Sans",
    "Cantarell",
    "FreeSans",
    "Nimbus Sans",
    "Verdana",
)
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20">{}</svg>'


def png(picture: str) -> bytes:
    """The picture as PNG, 1,600 pixels wide or more.

    ``picture``: SVG of this package in the ``light`` or ``dark`` theme. Raises
    `OutputError` if there is no font to draw its texts with, or it cannot be drawn.
    """
    resvg = _resvg()
    family = _family(resvg)
    found = re.search(r' width="([0-9.]+)"', picture)
    width = float(found[1]) if found else LEAST_WIDTH
    zoom = max(1.0, LEAST_WIDTH / width)
    try:
        drawn = resvg.svg_to_bytes(
            svg_string=picture, sans_serif_family=family, zoom=zoom
        )
    except ValueError as error:
        raise OutputError(f"the picture cannot be drawn as PNG: {error}") from None
    return bytes(drawn)


def check_png() -> None:
    """Refuse to go on where `png` could not draw.

    Raises `OutputError` if there is no font.
    """
    _family(_resvg())


def _resvg() -> ModuleType:
    try:
        import resvg_py
    except ImportError:
        hint = "pip install 'placer[png]', or write SVG"
        raise InputError("PNG needs the package resvg-py", hint=hint) from None
    return resvg_py


@cache
def _family(resvg: ModuleType) -> str:
    """The first font family that leaves a mark."""
    blank = bytes(resvg.svg_to_bytes(svg_string=_PROBE.format("")))
    for family in _FAMILIES:
        text = f'<text y="16" font-family="{family}">Ag</text>'
        if bytes(resvg.svg_to_bytes(svg_string=_PROBE.format(text))) != blank:
            return family
    raise OutputError(
        "no font was found to write the picture's text with; install one, such as the "
        "package fonts-dejavu-core, or write SVG"
    )
