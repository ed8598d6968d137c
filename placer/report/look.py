"""How text for people may look: its width, and on a terminal colours and bars."""

from __future__ import annotations

from dataclasses import dataclass

from placer.report.columns import WIDTH

# Colours of the terminal's own palette (ECMA-48, SGR), so that they fit any background.
_STYLES = {"title": 1, "quiet": 2, "bad": 31, "good": 32, "work": 34}
_EIGHTHS = ("", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589")
_FULL = "\u2588"


@dataclass(frozen=True)
class Look:
    """What a terminal, or a pipe, can show."""

    width: int = WIDTH  # columns at most
    colour: bool = False
    bars: bool = False  # whether block characters can be drawn

    def paint(self, text: str, style: str) -> str:
        """The text in a style (``title``, ``good``, ...), as it is without colours."""
        if not (self.colour and text):
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def bar(self, share: float, room: int) -> str:
        """A bar of ``share`` of ``room`` columns; empty where none can be drawn."""
        if not self.bars or room < 1:
            return ""
        eighths = round(min(max(share, 0.0), 1.0) * room * 8)
        return _FULL * (eighths // 8) + _EIGHTHS[eighths % 8]


PLAIN = Look()
