"""What a command substitution prints, for the few commands that only shape a text.

Of the conversions of ``printf`` (POSIX.1-2024) those of `_CONVERSION` are read, of
which ``%.0s`` prints nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.formats.jobs.shell.lexer import Lexer
from placer.formats.jobs.shell.text import (
    Text,
    join,
    readable,
    text_at,
    text_of_file,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place
    from placer.formats.jobs.shell.expand import Expander
    from placer.formats.jobs.shell.variables import Environment

_CONVERSION = re.compile(r"%([sd%]|\.0s)")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}
_MOST_TIMES = 10_000
_MOST_WORDS, _MOST_NUMBERS = 200, 10_000
_AWAY = r"(?:\s*(?:&>|[0-9]?>)\s*(?:&[0-9]|/dev/null))*"
_CD_PWD = re.compile(
    rf"\s*cd\s+(?:-[LPe-]+\s+)*(.*?){_AWAY}\s*(?:&&|;)\s*pwd(?:\s+-[LP])?{_AWAY}\s*",
    re.DOTALL,
)
_READ = re.compile(r"\s*(?:cat\s|<)\s*([^\s;|&<>()]+)\s*")


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


def printed(command: Text, place: Place, environment: Environment) -> Text:
    """What a command prints; unknown, by its own words, where that is not plain."""
    expander = environment.expander
    written = f"$({readable(command.text).strip()})"
    nowhere = unknown(written, place, written)
    folder = _CD_PWD.fullmatch(command.text)
    if folder:
        words = _words(command.part(*folder.span(1)), expander)
        return words[0] if words and len(words) == 1 else nowhere
    if file := _READ.fullmatch(command.text):
        path = expander.text(command.part(*file.span(1)))
        return _content(path, environment) or nowhere
    words = _words(command, expander)
    if not words:
        return nowhere
    name, given = words[0].text, words[1:]
    if name == "expr":
        return expander.number(_spaced(given, place), place)
    if does := _PRINT.get(name):
        return does(given, place) or nowhere
    return _of_path(name, given, place) or nowhere


def _of_path(name: str, given: list[Text], place: Place) -> Text | None:
    """What commands print that take a path apart."""
    paths = [word for word in given if not word.text.startswith("-")]
    if len(paths) < 1:
        return None
    path = paths[0]
    if name in ("realpath", "readlink"):
        return path
    if name == "dirname" and not path.is_open:
        folder_name, slash, _ = path.text.rpartition("/")
        return text_at(folder_name or (slash or "."), place)
    if name == "basename" and not path.is_open:
        found = path.text.rstrip("/").rpartition("/")[2]
        end = paths[1].text if len(paths) == 2 and not paths[1].is_open else ""
        return text_at(found.removesuffix(end) if len(paths) < 3 else found, place)
    return None


def _content(name: Text, environment: Environment) -> Text | None:
    """The text of a file that the script writes, or that lies beside it."""
    text = environment.state.files.get(name.text)
    if text is None and not name.is_open:
        included = environment.asked.include(environment.source, name.text)
        text = text_of_file(*included) if included else None
    if text is None:
        return None
    environment.spend(len(text.text))
    return text.part(0, len(text.text.rstrip("\n")))


def _sequence(given: list[Text], place: Place) -> Text | None:
    """``seq first step last``."""
    between, numbers = "\n", [word.text for word in given]
    if numbers and numbers[0] == "-s" and len(numbers) > 2:
        between, numbers = numbers[1], numbers[2:]
    elif numbers and numbers[0].startswith("-s"):
        between, numbers = numbers[0][2:], numbers[1:]
    if not 1 <= len(numbers) <= 3 or not all(
        re.fullmatch(r"-?[0-9]{1,9}", number) for number in numbers
    ):
        return None
    first = int(numbers[0]) if len(numbers) > 1 else 1
    step = int(numbers[1]) if len(numbers) > 2 else 1
    if not step:
        return None
    found = range(first, int(numbers[-1]) + (1 if step > 0 else -1), step)
    if len(found) > _MOST_NUMBERS:
        return None
    return text_at(between.join(map(str, found)), place)


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


def _echo(given: list[Text], place: Place) -> Text:
    return _spaced([word for word in given if word.text not in ("-n", "-e")], place)


_PRINT: dict[str, Callable[[list[Text], Place], Text | None]] = {
    "pwd": lambda _given, place: text_at(".", place),
    "echo": _echo,
    "printf": formatted,
    "seq": _sequence,
}
