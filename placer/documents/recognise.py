"""Files of other programs: which format each is in, by its content or its prefix.

A machine and a job are read alike: ``FORMAT:FILE`` says the format, a file alone shows
it by its content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from placer.base.errors import InputError, refuse
from placer.base.naming import named
from placer.documents import files
from placer.documents.scalars import CONTROL, visible

Source = str | os.PathLike[str]

_OWN_FORMAT = re.compile(r"""\bformat["']?\s*:\s*["']?placer/(?!probe)""")
_PREFIXED = re.compile(r"([A-Za-z][A-Za-z0-9-]*):(.+)", re.DOTALL)
# A file of placer, and a file of a format, shows it in so many characters.
_OWN_HEAD, _HEAD = 65_536, 2_000_000


@dataclass(frozen=True)
class Format:
    """One format."""

    name: str  # what stands before the colon in ``name:FILE``
    description: str
    # Regular expression (multi-line) that is found in files of this format and in no
    # others; empty when the content does not show the format.
    pattern: str
    also: tuple[str, ...] = ()  # other names that people call it by
    # Formats whose pattern is found in files of this one too.
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """A source that is a file."""

    format: str  # its name; empty where neither the prefix nor the content says it
    text: str
    shown: str  # how messages call the source
    shows: bool = True  # whether the content shows a format

    @property
    def stem(self) -> str:
        """What is called after it: its file's name, or its format."""
        return visible(Path(self.shown.strip("<>")).stem) or self.format


def checked_name(name: str) -> str:
    """A name that a user gives to what is read; refused where nobody could read it."""
    if CONTROL.search(name) or not name.strip():
        raise InputError(f'"{visible(name)}" is no name', key="name")
    return name


def recognise(text: str, formats: Iterable[Format]) -> list[str]:
    """Names of the formats that the content shows, in its first part if it is long."""
    head = text[:_HEAD]
    found = [
        row
        for row in formats
        if row.pattern and re.search(row.pattern, head, re.MULTILINE)
    ]
    hidden = {name for row in found for name in row.before}
    return [row.name for row in found if row.name not in hidden]


def is_own(text: str) -> bool:
    """Whether a text says that it is a file of placer."""
    return _OWN_FORMAT.search(text, 0, _OWN_HEAD) is not None


def open_text(source: Source, formats: Mapping[str, Format]) -> Text | None:
    """The text that ``FORMAT:FILE`` or ``FILE`` names; None without such a file."""
    given = os.fspath(source)
    names = {name: row for row in formats.values() for name in (row.name, *row.also)}
    prefixed = _PREFIXED.fullmatch(given)
    if prefixed and prefixed[1] in names:
        return _prefixed(names[prefixed[1]], prefixed[1], prefixed[2], formats)
    if not (given == "-" or files.is_file(given)):
        if prefixed:
            raise _unknown(prefixed[1], names, formats)
        return None
    text, shown = files.read_text(given), files.shown_name(given)
    found = [] if is_own(text) else recognise(text, formats.values())
    if len(found) > 1:
        hint = f"say which: {found[0]}:{given}"
        message = f"it looks like each of {', '.join(found)}"
        raise InputError(message, shown, hint=hint)
    return Text(found[0] if found else "", text, shown, bool(found))


def _prefixed(row: Format, name: str, path: str, formats: Mapping[str, Format]) -> Text:
    text, shown = files.read_text(path), files.shown_name(path)
    found = recognise(text, formats.values())
    if found and row.name not in found and row.pattern:
        message = f"it is not of the format {name}"
        hint = f"it looks like {found[0]}:{path}"
        raise InputError(message, shown, hint=hint)
    return Text(row.name, text, shown, bool(found))


def _unknown(name: str, names: Iterable[str], formats: Iterable[str]) -> InputError:
    near = get_close_matches(name, names, n=1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    hint = f"{meant}formats: {', '.join(formats)}"
    return InputError(f'there is no file and no format "{name}"', hint=hint)


def refuse_other(
    text: str, shown: str, formats: Mapping[str, Format], option: str
) -> None:
    """Refuse a text in one of the formats that another option takes."""
    found = [] if is_own(text) else recognise(text, formats.values())
    if found:
        message = f"it is no {option}: it looks like {found[0]}"
        hint = f"give it as {named(option, f'{found[0]}:{shown}')}"
        raise InputError(message, shown, hint=hint)


@contextmanager
def perhaps_of_another(text: str, command: str) -> Iterator[None]:
    """Where a text that is taken for placer's own is wrong, say that it may not be.

    ``command`` lists the formats that are read.
    """
    try:
        yield
    except InputError as error:
        first, *others = error.problems
        if '"format" is missing' not in first.message and is_own(text):
            raise
        hint = f"of another program? {command} lists what is read"
        refuse([replace(first, hint=hint), *others])
