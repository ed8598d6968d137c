"""Colours that readers without red or green cones tell apart as well.

Few values have the colours of Okabe and Ito (2008, *Color Universal Design*) but for
black, which one of the two backgrounds would swallow. Values in an order have a scale
through viridis (N. Smith and S. van der Walt 2015, matplotlib, CC0), whose lightness
rises evenly; it starts a tenth of the way up, as its darkest part would vanish on a
dark background.
"""

from __future__ import annotations

import math
from functools import lru_cache

# Of what is not data, by theme.
LIGHT = {
    "page": "#ffffff",
    "panel": "#f1f3f5",
    "ink": "#16191d",
    "soft": "#59616b",
    "line": "#d3d8de",
    "mixed": "#c9d0d8",
}
DARK = {
    "page": "#14171b",
    "panel": "#23282f",
    "ink": "#f2f4f6",
    "soft": "#a3acb8",
    "line": "#3d4550",
    "mixed": "#4b545f",
}
DISTINCT = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")

_VIRIDIS = (
    "#482475",
    "#414487",
    "#355f8d",
    "#2a788e",
    "#21918c",
    "#22a884",
    "#44bf70",
    "#7ad151",
    "#bddf26",
    "#fde725",
)
# Tiers: those that NVLink joins, those of the network, the whole machine. All differ by
# as much as `DISTINCT` do; a deeper machine has the ordered scale.
_JOINED = ("#0072b2", "#56b4e9", "#009e73")
_APART = ("#e69f00", "#cc79a7", "#5b6570")
_WHOLE = "#d55e00"
# Shades of the ordered scale: as many as neighbours need to differ visibly.
SHADES = 32


def distinct(index: int) -> str:
    """Colour of value ``index`` where the order of values means nothing.

    Colours repeat after the seventh.
    """
    return DISTINCT[index % len(DISTINCT)]


def of_tiers(count: int, scale_up: int) -> tuple[str, ...]:
    """A colour of its own for each of ``count`` tiers, the innermost first.

    ``scale_up``: how many of them NVLink joins.
    """
    apart = max(count - scale_up - 1, 0)
    if scale_up > len(_JOINED) or apart > len(_APART):
        return tuple(ordered(index, count) for index in range(count))
    return (*_JOINED[:scale_up], *_APART[:apart], _WHOLE)[:count]


@lru_cache(maxsize=4096)
def along(share: float) -> str:
    """Colour of the ordered scale at ``share``, from 0 (dark) to 1 (light)."""
    place = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    index = min(int(place), len(_VIRIDIS) - 2)
    ends = zip(_channels(_VIRIDIS[index]), _channels(_VIRIDIS[index + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - index)):02x}" for a, b in ends)


def shade(index: int, count: int) -> int:
    """Shade of value ``index`` of ``count`` in an order, at most `SHADES` of them."""
    return index if count <= SHADES else index * SHADES // count


def ordered(index: int, count: int) -> str:
    """Colour of value ``index`` of ``count`` in an order."""
    last = min(count, SHADES) - 1
    return along(shade(index, count) / last if last > 0 else 0.5)


@lru_cache(maxsize=4096)
def ink_on(colour: str) -> str:
    """Black or white, whichever stands out more on ``colour``.

    By the contrast ratio of WCAG 2.2, ``(L1 + 0.05) / (L2 + 0.05)``: the two are equal
    at a luminance of ``sqrt(1.05 x 0.05) - 0.05``.
    """
    return "#000000" if luminance(colour) > math.sqrt(1.05 * 0.05) - 0.05 else "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance of a colour by WCAG 2.2: 0 is black, 1 white."""
    red, green, blue = (_linear(value / 255) for value in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _linear(value: float) -> float:
    """Light of one channel of sRGB."""
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
