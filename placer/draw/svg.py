"""A small SVG writer: escaped text, hover text, light and dark.

Colours of data are written on the elements, as they serve on both backgrounds. All else
has a class of `_RULES`, so that one style sheet holds both themes: a reader that knows
no ``prefers-color-scheme`` gets the light one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as Xml

from placer.draw import palette

THEMES = ("auto", "light", "dark")
FONTS = "Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"

# Class of an element: what is coloured, and by which colour of the theme.
_RULES = {
    "p-page": ("fill", "page"),
    "p-panel": ("fill", "panel"),
    "p-mixed": ("fill", "mixed"),
    "p-ink": ("fill", "ink"),
    "p-soft": ("fill", "soft"),
    "p-line": ("stroke", "line"),
    "p-rule": ("stroke", "soft"),
    "p-out": ("stroke", "ink"),
    "p-halo": ("stroke", "page"),
}
DOT = "\N{MIDDLE DOT}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
SWATCH = 14.0

# Pictures follow the width of their page; small ones grow no wider than this.
_FULL = 1200.0

# What XML 1.0 cannot hold, even escaped (section 2.2, Char).
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Mean advance of a character, in font sizes: that of the widest font of FONTS, figures
# and small letters.
_ADVANCE = 0.62


def new_picture(
    width: float, height: float, theme: str, name: str, font_size: float = 12
) -> Xml.Element:
    """An empty picture on the background of a theme.

    ``theme``: one of `THEMES`; ``auto`` follows what the reader prefers. ``name``: what
    the picture shows, for those who cannot see it.
    """
    root = Xml.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "width": number(width),
            "height": number(height),
            "viewBox": f"0 0 {number(width)} {number(height)}",
            "style": f"width:100%;max-width:{max(width, _FULL):.0f}px;height:auto",
            "font-family": FONTS,
            "font-size": number(font_size),
            "role": "img",
            "aria-label": _clean(name),
        },
    )
    Xml.SubElement(root, "style").text = _style(theme)
    add(root, "rect", width=width, height=height, class_="p-page")
    return root


def add(
    parent: Xml.Element, tag: str, title: str = "", /, **attributes: str | float
) -> Xml.Element:
    """A new child; ``stroke_width`` stands for ``stroke-width``.

    ``title``: text on hover; none when empty.
    """
    child = Xml.SubElement(
        parent,
        tag,
        {
            key.rstrip("_").replace("_", "-"): _clean(value)
            if isinstance(value, str)
            else number(value)
            for key, value in attributes.items()
        },
    )
    if title:
        Xml.SubElement(child, "title").text = _clean(title)
    return child


def write(
    parent: Xml.Element,
    text: str,
    x: float,
    y: float,
    title: str = "",
    /,
    **attributes: str | float,
) -> Xml.Element:
    """Text with its baseline at ``y``, in the ink of the theme unless told otherwise.

    ``title``: text on hover; none when empty. ``**attributes``: among them
    ``text_anchor``; ``class_`` or ``fill`` instead of the ink.
    """
    coloured = "class_" in attributes or "fill" in attributes
    ink = {} if coloured else {"class_": "p-ink"}
    child = add(parent, "text", title, x=x, y=y, **attributes, **ink)
    child.text = _clean(text)
    return child


def swatch(parent: Xml.Element, x: float, y: float, /, **look: str | float) -> None:
    """A small square of a legend around the height ``y``."""
    add(parent, "rect", x=x, y=y - SWATCH / 2, width=SWATCH, height=SWATCH, **look)


def scale(
    parent: Xml.Element,
    colours: Sequence[str],
    x: float,
    y: float,
    width: float,
    height: float,
) -> None:
    """Colours from left to right, with nothing of the background between them."""
    step = width / len(colours)
    for index, colour in enumerate(colours):
        box = {"x": x + index * width / len(colours), "y": y, "height": height}
        add(parent, "rect", **box, width=step + 0.3, fill=colour)


def write_heading(
    root: Xml.Element, title: str, subtitle: str, left: float, width: float, size: float
) -> None:
    """A title at the top and a line below it, cut to fit into ``width``."""
    top = 2 * size + 4
    shown = shortened(title, width, size)
    write(root, shown, left, top, font_size=size, font_weight="600")
    shown = shortened(subtitle, width, 13)
    write(root, shown, left, size + 46, class_="p-soft", font_size=13)


def text_width(text: str, font_size: float) -> float:
    """About how many pixels a text takes, rather too many than too few."""
    return len(text) * font_size * _ADVANCE


def shortened(text: str, width: float, font_size: float) -> str:
    """The text, cut to fit into so many pixels."""
    most = int(width / (font_size * _ADVANCE))
    return text if len(text) <= most else text[: max(most - 1, 0)] + ELLIPSIS


def number(value: float) -> str:
    """A length, to a hundredth of a pixel."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def to_text(root: Xml.Element) -> str:
    """The picture as an SVG document."""
    return Xml.tostring(root, encoding="unicode") + "\n"


def _style(theme: str) -> str:
    light, dark = _sheet(palette.LIGHT), _sheet(palette.DARK)
    auto = f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return {"light": light, "dark": dark}.get(theme, auto)


def _sheet(colours: Mapping[str, str]) -> str:
    return "".join(
        f".{name}{{{what}:{colours[colour]}}}"
        for name, (what, colour) in _RULES.items()
    )


def page_style() -> str:
    """Style rules of a page: the colours of both themes as variables, and the classes.

    ``--ink`` is the colour of texts.
    """
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in theme.items())
        for theme in (palette.LIGHT, palette.DARK)
    )
    rules = _sheet({name: f"var(--{name})" for name in palette.LIGHT})
    media = "@media screen and (prefers-color-scheme:dark)"
    return f":root{{{light}}}{media}{{:root{{{dark}}}}}{rules}"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
