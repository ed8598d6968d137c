"""The block of arguments that Megatron-LM prints when it starts."""

from __future__ import annotations

import re

from placer.formats.jobs.findings import Place
from placer.formats.jobs.megatron.arguments import Argument
from placer.formats.jobs.shell.text import text_at

_MOST_ROWS = 20_000  # of a block, and of those of other hosts between
BEGINS = r"-{6,} arguments -{6,}"
_ENDS = re.compile(r"-{6,} end of arguments -{6,}")
_ROW = re.compile(r"(?:^|[\s:>\]])  ([A-Za-z]\w*) \.* ?(\S.*)$")
_PADDED = re.compile(
    r"padded vocab \(size: [0-9]{1,9}\) with [0-9]+ dummy tokens "
    r"\(new size: ([0-9]{1,9})\)"
)


def arguments_of_log(text: str, source: str) -> tuple[list[Argument], int]:
    """The arguments of the first block, and the padded vocabulary, 0 if not told.

    Where lines of several hosts mingle, those of the one whose block it is.
    """
    lines = text.split("\n")
    rows: list[tuple[str, Argument]] = []
    prefix = None
    for number, line in enumerate(lines, start=1):
        begins = re.search(BEGINS, line)
        if prefix is None and begins:
            prefix = line[: begins.start()]
        elif prefix is not None and (_ENDS.search(line) or len(rows) == _MOST_ROWS):
            break
        elif prefix is not None and (match := _ROW.search(line)):
            value = text_at(match[2].strip(), Place(source, number, match.start(2) + 1))
            place = Place(source, number, match.start(1) + 1)
            rows.append((line, Argument(match[1], (value,), place)))
    own = [argument for line, argument in rows if line.startswith(prefix or "")]
    padded = _PADDED.search(text)
    few = 2 * len(own) < len(rows)  # times stand before each line
    found = [argument for _, argument in rows] if few and len(own) < 9 else own
    return found, int(padded[1]) if padded else 0
