"""A search at work, as a few lines for a terminal: numbers, the gap over time, a clock.

The gap is drawn against the bound that is known now, so the curve only falls. Its scale
is logarithmic: a search gains per cents at first and hundredths of them later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import log
from typing import TYPE_CHECKING

from placer.report.words import NOUN, amount, gap_text

if TYPE_CHECKING:
    from placer.report.look import Look

_EIGHTHS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_INDENT = "  "
_LABEL = 8  # columns of the scale, left of the curve
_HEIGHT = 5
_WIDEST = 72  # columns of the curve
_LEAST_COLUMNS, _LEAST_ROWS = 40, 12
_LEAST_GAP = 1e-6  # what is less is drawn as nothing


@dataclass(frozen=True)
class Watched:
    """What is known of a search.

    Attributes
    ----------
    objective : str
    elapsed_s, limit_s : float, s
    found : sequence of (float, float)
        When each better placement was found, s, and its value; not empty.
    method : str
        What found the last.
    lower_bound : float
        0 while none is known.
    phase : str
        What the search is at; may be empty.
    rate : float, 1/s
        Placements tried lately.
    """

    objective: str
    elapsed_s: float
    limit_s: float
    found: Sequence[tuple[float, float]]
    method: str
    lower_bound: float
    phase: str = ""
    rate: float = 0.0


def search_view(watched: Watched, look: Look, rows: int) -> list[str]:
    """Lines that fit into ``look.width - 1`` columns and ``rows - 1`` lines."""
    room = look.width - 1
    if look.width < _LEAST_COLUMNS or rows < _LEAST_ROWS // 2:
        now = f"{_clock(watched.elapsed_s)} {_numbers(watched)}"
        return [now[:room]]
    is_tall = look.bars and rows >= _LEAST_ROWS and watched.lower_bound > 0
    curve = _curve(watched, look) if is_tall else ()
    return [
        look.paint(f"{_INDENT}{_numbers(watched)}"[:room], "title"),
        look.paint(f"{_INDENT}{_origin(watched)}"[:room], "quiet"),
        *curve,
        f"{_INDENT}{_work(watched)}"[:room],
        *_time(watched, look, room),
    ]


def _numbers(watched: Watched) -> str:
    """Value, bound and gap."""
    objective, value = watched.objective, watched.found[-1][1]
    text = f"{NOUN[objective]} {amount(objective, value)}"
    if watched.lower_bound <= 0:
        return f"{text}, no lower bound yet"
    bound = amount(objective, watched.lower_bound)
    return f"{text}, gap {gap_text(_gaps(watched)[-1])}, lower bound {bound}"


def _origin(watched: Watched) -> str:
    return f"found after {watched.found[-1][0]:.1f} s: {watched.method}"


def _work(watched: Watched) -> str:
    """What the search is at, and how fast."""
    now = f"now: {watched.phase or 'searching'}"
    if watched.rate < 1:
        return now
    return f"{now}, {float(f'{watched.rate:.2g}'):,.0f} placements a second"


def _time(watched: Watched, look: Look, room: int) -> Iterator[str]:
    """The clock, and a bar of the time."""
    share = watched.elapsed_s / watched.limit_s if watched.limit_s else 1.0
    text = f"{_clock(watched.elapsed_s)} of {_clock(watched.limit_s)} at most"
    width = min(_WIDEST // 2, room - len(_INDENT) - len(text) - 2)
    filled = look.bar(share, width) if look.bars else "#" * round(width * min(share, 1))
    yield f"{_INDENT}{look.paint(f'{filled:<{width}}', 'quiet')}  {text}"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


def _gaps(watched: Watched) -> list[float]:
    """The gap of each placement to the bound of now."""
    bound = watched.lower_bound
    return [max(value - bound, 0.0) / value for _, value in watched.found]


def _curve(watched: Watched, look: Look) -> Iterator[str]:
    """The gap over time, from the first placement to now."""
    gaps = _gaps(watched)
    top, least = max(gaps), max(gaps[-1], _LEAST_GAP)
    width = min(look.width - 1 - len(_INDENT) - _LABEL - 1, _WIDEST)
    heights = [_height(gap, top, least) for gap in _over_time(watched, gaps, width)]
    labels = {_HEIGHT - 1: _percent(top), 0: _percent(gaps[-1])}
    for row in reversed(range(_HEIGHT)):
        cells = [_EIGHTHS[min(max(height - 8 * row, 0), 8)] for height in heights]
        line = look.paint("".join(cells).rstrip(), "work")
        yield f"{_INDENT}{labels.get(row, ''):>{_LABEL}} {line}".rstrip()
    ends = f"{watched.found[0][0]:.0f} s", f"{watched.elapsed_s:.0f} s"
    space = " " * (len(_INDENT) + _LABEL + 1)
    yield look.paint(f"{space}{ends[0]}{ends[1]:>{width - len(ends[0])}}", "quiet")


def _over_time(watched: Watched, gaps: Sequence[float], width: int) -> Iterator[float]:
    """The gap at so many times, from the first placement to now."""
    times = [seconds for seconds, _ in watched.found]
    start, end = times[0], max(watched.elapsed_s, times[-1])
    for column in range(width):
        seconds = start + (end - start) * column / (width - 1)
        yield gaps[bisect_right(times, seconds) - 1]


def _height(gap: float, top: float, least: float) -> int:
    """Eighths of a row that a gap is high: all for the top, one for the least."""
    if gap < _LEAST_GAP:
        return 0
    share = log(gap / least) / log(top / least) if top > least else 0.0
    return 1 + round(share * (8 * _HEIGHT - 1))


def _percent(gap: float) -> str:
    return f"{100 * gap:.2g} %"
