"""``{1..24}`` and ``{a,b}`` in a word that is written plainly.

Source: GNU Bash Reference Manual, Brace Expansion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from placer.formats.jobs.shell.text import Text, join, text_at

_BRACES = re.compile(
    r"\{(?:(?P<first>-?[0-9]{1,6})\.\.(?P<last>-?[0-9]{1,6})(?:\.\.(?P<step>-?[0-9]{1,6}))?"
    r"|(?P<words>[^{}\s\"'\\$`<>]*,[^{}\s\"'\\$`<>]*))\}"
)
_QUOTES = re.compile(r"[\"'\\$`<]")
_MOST = 10_000


def unbraced(raw: Text) -> list[Text]:
    """The words that the first braces make; none where they are not plain."""
    match = _BRACES.search(raw.text)
    if match is None or _QUOTES.search(raw.text):
        return []
    before, after = raw.part(0, match.start()), raw.part(match.end(), len(raw.text))
    place = raw.place_at(match.start())
    inside = list(_inside(match))
    if len(inside) > _MOST:
        return []
    return [join([before, text_at(word, place), after]) for word in inside]


def _inside(match: re.Match[str]) -> Iterator[str]:
    if match["words"] is not None:
        yield from match["words"].split(",")
        return
    first, last = int(match["first"]), int(match["last"])
    step = abs(int(match["step"] or 1)) or 1
    padded = any(re.match(r"-?0[0-9]", match[end]) for end in ("first", "last"))
    width = max(len(match["first"]), len(match["last"])) if padded else 0
    sign = 1 if last >= first else -1
    for number in range(first, last + sign, sign * step):
        yield f"{number:0{width}d}"
