"""What a command substitution prints, for the few commands that only shape a text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placer.errors import InputError
from placer.sources.shell.lexer import Lexer
from placer.sources.shell.text import Text, join, readable, text_at, unknown

if TYPE_CHECKING:
    from placer.sources.findings import Place
    from placer.sources.shell.expand import Expander

_MOST_WORDS = 200
_CD_PWD = re.compile(
    r"\s*cd\s+(.*?)(?:\s*>\s*/dev/null)?(?:\s+2>&1)?\s*(?:&&|;)\s*pwd(?:\s+-P)?\s*",
    re.DOTALL,
)


def printed(command: Text, place: Place, expander: Expander) -> Text:
    """What a command prints; unknown, by its own words, where that is not plain."""
    nowhere = unknown(f"$({readable(command.text).strip()})", place)
    folder = _CD_PWD.fullmatch(command.text)
    if folder:
        words = _words(command.part(*folder.span(1)), expander)
        return words[0] if words and len(words) == 1 else nowhere
    words = _words(command, expander)
    if not words:
        return nowhere
    name, given = words[0].text, words[1:]
    if name == "pwd":
        return text_at(".", place)
    if name == "expr":
        return expander.number(_spaced(given, place), place)
    if name == "echo":
        return _spaced([w for w in given if w.text not in ("-n", "-e")], place)
    paths = [word for word in given if not word.text.startswith("-")]
    if len(paths) < 1:
        return nowhere
    path = paths[0]
    if name in ("realpath", "readlink"):
        return path
    if name == "dirname" and not path.is_open:
        folder_name, slash, _ = path.text.rpartition("/")
        return text_at(folder_name or (slash or "."), place)
    if name == "basename" and not path.is_open:
        return text_at(path.text.rstrip("/").rpartition("/")[2], place)
    return nowhere


def _words(command: Text, expander: Expander) -> list[Text]:
    """The words of one plain command; none of anything else."""
    lexer = Lexer(command)
    words: list[Text] = []
    try:
        while len(words) < _MOST_WORDS:
            lexer.skip_blanks(lines=True)
            if lexer.at >= len(lexer.raw):
                return words
            if lexer.operator():
                return []
            words += expander.words(lexer.word())
    except InputError:
        return []
    return []


def _spaced(words: list[Text], place: Place) -> Text:
    blank = text_at(" ", place)
    return join([part for word in words for part in (word, blank)][:-1])
