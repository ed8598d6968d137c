"""What expansions make: outputs of plain commands, changed values, words of braces.

Of the conversions of ``printf`` (POSIX.1-2024) those of `_CONVERSION` are read, of
which ``%.0s`` prints nothing. Source of the rest: GNU Bash Reference Manual, Brace
Expansion and Shell Parameter Expansion.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.formats.jobs.findings import Place
from placer.formats.jobs.shell.syntax import Lexer
from placer.formats.jobs.shell.text import (
    Text,
    join,
    readable,
    text_at,
    text_of_file,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.shell.variables import Environment
from collections.abc import Callable, Iterable
from fnmatch import translate

from placer.formats.jobs.shell.text import known, opens, roots

_CONVERSION = re.compile(r"%([sd%]|\.0s)")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}
_MOST_TIMES, _MOST_WORDS, _MOST_NUMBERS = 10_000, 200, 10_000
_AWAY = r"(?:\s*(?:&>|[0-9]?>)\s*(?:&[0-9]|/dev/null))*"
_CD_PWD = re.compile(
    rf"\s*cd\s+(?:-[LPe-]+\s+)*(.*?){_AWAY}\s*(?:&&|;)\s*pwd(?:\s+-[LP])?{_AWAY}\s*",
    re.DOTALL,
)
_READ = re.compile(r"\s*(?:cat\s|<)\s*([^\s;|&<>()]+)\s*")
_SEQUENCE = re.compile(r"(?:-s\0?([^\0]*)\0)?((?:-?[0-9]{1,9}(?:\0|$)){1,3})")


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
                found += [value] if kind != ".0s" else []
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
    written = f"$({readable(command.text).strip()})"
    return _printed(command, place, environment) or unknown(written, place, written)


def _printed(command: Text, place: Place, environment: Environment) -> Text | None:
    if file := _READ.fullmatch(command.text):
        return _content(command.part(*file.span(1)), environment)
    if folder := _CD_PWD.fullmatch(command.text):
        words = _words(command.part(*folder.span(1)), environment)
        return words[0] if len(words) == 1 else None
    words = _words(command, environment)
    return printed_by(words, place, environment) if words else None


def printed_by(
    words: list[Text], place: Place, environment: Environment
) -> Text | None:
    """What a command of these words prints; None where that is not plain."""
    name, given = words[0].text, words[1:]
    if name == "pwd":
        return text_at(".", place)
    if name == "echo":
        plain = [word for word in given if word.text not in ("-n", "-e")]
        return join(plain, " ")
    if name == "printf":
        return formatted(given, place)
    if name == "expr":
        return environment.expander.number(join(given, " "), place)
    if name == "seq":
        return _sequence("\0".join(word.text for word in given), place)
    paths = [word for word in given if not word.text.startswith("-")]
    if name in ("realpath", "readlink") and paths:
        return paths[0]
    if not paths or any(path.is_open for path in paths):
        return None
    path, end = paths[0].text, "".join(word.text for word in paths[1:2])
    if name == "dirname":
        folder, slash, _ = path.rpartition("/")
        return text_at(folder or slash or ".", place)
    if name == "basename":
        found = path.rstrip("/").rpartition("/")[2]
        return text_at(found.removesuffix(end), place)
    return None


def _content(name: Text, environment: Environment) -> Text | None:
    """The text of a file that the script writes, or that lies beside it."""
    path = environment.expander.text(name)
    text = environment.state.files.get(path.text)
    if text is None and not path.is_open:
        included = environment.asked.include(environment.source, path.text)
        text = text_of_file(*included) if included else None
    if text is None:
        return None
    environment.spend(len(text.text))
    return text.part(0, len(text.text.rstrip("\n")))


def _sequence(given: str, place: Place) -> Text | None:
    """``seq first step last``, with ``-s`` what stands between."""
    match = _SEQUENCE.fullmatch(given)
    if match is None:
        return None
    numbers = [int(number) for number in match[2].strip("\0").split("\0")]
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) > 2 else 1
    found = range(first, numbers[-1] + (1 if step > 0 else -1), step or 1)
    if not step or len(found) > _MOST_NUMBERS:
        return None
    between = "\n" if match[1] is None else match[1]
    return text_at(between.join(map(str, found)), place)


def _words(command: Text, environment: Environment) -> list[Text]:
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
            words += environment.expander.words(lexer.word())
    except InputError:
        return []
    return []


_BRACES = re.compile(
    r"\{(?:(?P<first>-?[0-9]{1,6})\.\.(?P<last>-?[0-9]{1,6})(?:\.\.(?P<step>-?[0-9]{1,6}))?"
    r"|(?P<words>[^{}\s\"'\\$`<>]*,[^{}\s\"'\\$`<>]*))\}"
)
_QUOTES = re.compile(r"[\"'\\$`<]")
_OPERATION = re.compile(
    r"(?P<case>\^\^|,,)|(?P<end>##?|%%?)(?P<pattern>[\s\S]*)"
    r"|(?:/(?![#%])|//)(?P<old>[^*?\[\\/]+)(?:/(?P<new>[\s\S]*))?"
    r"|:\s*(?P<start>-?\d{1,9})(?::\s*(?P<length>\d{1,9}))?"
)
_MOST_BRACED, _MOST_PATTERN, _MOST_STARS = 10_000, 200, 4
_MOST_CUT, _MOST_REPLACED = 10_000, 1_000_000  # characters


def unbraced(raw: Text) -> list[Text]:
    """The words that the first braces make; none where they are not plain."""
    match = _BRACES.search(raw.text)
    if match is None or _QUOTES.search(raw.text):
        return []
    before, after = raw.part(0, match.start()), raw.part(match.end(), len(raw.text))
    place = raw.place_at(match.start())
    inside = list(_inside(match))
    if len(inside) > _MOST_BRACED:
        return []
    return [join([before, text_at(word, place), after]) for word in inside]


def _inside(match: re.Match[str]) -> Iterable[str]:
    if match["words"] is not None:
        return match["words"].split(",")
    first, last = int(match["first"]), int(match["last"])
    step = abs(int(match["step"] or 1)) or 1
    padded = any(re.match(r"-?0[0-9]", match[end]) for end in ("first", "last"))
    width = max(len(match["first"]), len(match["last"])) if padded else 0
    sign = 1 if last >= first else -1
    return (f"{n:0{width}d}" for n in range(first, last + sign, sign * step))


def changed(
    value: Text,
    operation: Text,
    written: str,
    place: Place,
    expand: Callable[[Text], Text],
) -> Text:
    """What ``${X%pattern}``, ``${X/old/new}``, ``${X:1:2}`` or ``${X^^}`` makes."""
    if value.is_open:
        if not known(value.text) and all(o.is_unset for o in opens(value.text)):
            return value
        return unknown(written, place, "", roots(value.text))
    match = _OPERATION.fullmatch(operation.text)
    not_followed = unknown(written, place, written)
    text = value.text
    if match is None:
        return not_followed
    if match["case"]:
        return text_at(text.upper() if match["case"] == "^^" else text.lower(), place)
    if match["end"]:
        pattern = expand(operation.part(*match.span("pattern")))
        if pattern.is_open:
            return unknown(written, place, "", roots(pattern.text))
        return _cut(value, match["end"], pattern.text) or not_followed
    if match["old"]:
        times = -1 if operation.text.startswith("//") else 1
        old, new = (
            expand(text_at(match[end] or "", place)).text for end in ("old", "new")
        )
        size = len(new) * (text.count(old) + 1) if old else 0
        if not old or roots(old + new) or size > _MOST_REPLACED:
            return not_followed
        return text_at(text.replace(old, new, times), place)
    start = int(match["start"])
    start = max(start + len(text), 0) if start < 0 else start
    end = start + int(match["length"]) if match["length"] else len(text)
    return text_at(text[start:end], place)


def _cut(value: Text, sign: str, pattern: str) -> Text | None:
    """The value without the shortest or longest match at one end."""
    text = value.text
    is_long = len(pattern) > _MOST_PATTERN or len(text) > _MOST_CUT
    if is_long or pattern.count("*") > _MOST_STARS:
        return None
    whole, is_start = re.compile(translate(pattern)), sign[0] == "#"
    at: Iterable[int] = range(len(text) + 1)
    if is_start != (len(sign) == 1):  # the longest start, the shortest end
        at = reversed(range(len(text) + 1))
    fits = (n for n in at if whole.match(text[:n] if is_start else text[n:]))
    found = next(fits, 0 if is_start else len(text))
    return value.part(found, len(text)) if is_start else value.part(0, found)
