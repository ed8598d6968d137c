"""What ``printf`` prints.

Source: POSIX.1-2024, printf; of its conversions, ``%s``, ``%d``, ``%%`` and ``%.0s``,
which prints nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.text import Text, join, text_at

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place

_CONVERSION = re.compile(r"%([sd%]|\.0s)")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}
_MOST_TIMES = 10_000


def formatted(words: Sequence[Text], place: Place) -> Text | None:
    """What is printed of a format and its arguments; None where that is not plain.

    The format is used again as long as there are arguments.
    """
    if not words:
        return None
    form, *given = words[words[0].text == "--" :] if len(words) > 1 else words
    pieces = [] if form.is_open else _pieces(form.text)
    if not pieces:
        return None
    each = sum(kind != "%" for kind in pieces[1::2])
    times = -(-len(given) // each) if each and given else 1
    if times > _MOST_TIMES:
        return None
    found: list[Text] = []
    for _ in range(times):
        for text, kind in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
            found.append(text_at(text, place))
            if kind == "%":
                found.append(text_at("%", place))
            elif kind:
                empty = text_at("0" if kind == "d" else "", place)
                value = given.pop(0) if given else empty
                if kind != ".0s":
                    found.append(value)
    return join(found)


def _pieces(form: str) -> list[str]:
    """Texts and the conversions between them; none where these are not plain."""
    pieces = _CONVERSION.split(form)
    texts = [re.sub(r"\\[nt\\]", lambda m: _ESCAPES[m[0]], t) for t in pieces[::2]]
    if any("\\" in text or "%" in text for text in texts):
        return []
    pieces[::2] = texts
    return pieces
