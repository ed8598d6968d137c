"""Sources as users write them: which format each is in, and its text."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from placer import files
from placer.document import parse_document
from placer.errors import InputError, Problem
from placer.job.read import decode_job, read_job
from placer.presets import preset_names
from placer.sources.registry import FORMATS, NAMES, recognise

if TYPE_CHECKING:
    from placer.job.model import Job

Source = str | os.PathLike[str]

_OWN_FORMAT = re.compile(r"""\bformat["']?\s*:\s*["']?placer/""")
_OTHERS = "of another program? placer jobs formats lists what is read"
_PREFIXED = re.compile(r"([A-Za-z][A-Za-z0-9-]*):(.+)", re.DOTALL)


@dataclass(frozen=True)
class Text:
    """A source in another program's format.

    Attributes
    ----------
    format : str
        Its name in `placer.sources.registry.FORMATS`.
    text : str
    shown : str
        How messages call the source.
    """

    format: str
    text: str
    shown: str


def open_source(source: Source) -> Job | Text:
    """A job as such, or a text with the format it is in.

    Raises
    ------
    InputError
        If there is no such file, preset or format, or the job is not valid.
    """
    given = os.fspath(source)
    if given in preset_names("jobs"):
        return read_job(source)
    prefixed = _PREFIXED.fullmatch(given)
    if prefixed and prefixed[1] in NAMES:
        return _prefixed(prefixed[1], prefixed[2])
    if not (given == "-" or files.is_file(given)):
        if prefixed and not files.is_file(given):
            raise _unknown_format(prefixed[1])
        return read_job(source)
    text, shown = files.read_text(given), files.shown_name(given)
    formats = [] if _OWN_FORMAT.search(text, 0, 65536) else recognise(text)
    if len(formats) > 1:
        hint = f"say which: {formats[0]}:{given}"
        message = f"it looks like each of {', '.join(formats)}"
        raise InputError([Problem(message, shown, hint=hint)])
    return Text(formats[0], text, shown) if formats else _own(text, shown)


def include(source: str, name: str) -> tuple[str, str] | None:
    """Text and shown name of a file that a source names; None when there is none.

    It is looked for beside the source: by its path from there, then by its last part
    alone. Standard input has nothing beside it, and no other folder is looked at for a
    path from the root.
    """
    if source == "<stdin>" or not name:
        return None
    for relative in (name, Path(name).name):
        path = files.beside(source, relative)
        if relative and not Path(relative).is_absolute() and files.is_file(path):
            return files.read_text(path), path
    return None


def _own(text: str, shown: str) -> Job:
    """A text that shows no other format, as a job file."""
    if text.startswith("#!"):
        message = "its format does not show from its content"
        hint = "say which: FORMAT:FILE; placer jobs formats lists what is read"
        raise InputError([Problem(message, shown, hint=hint)])
    try:
        return decode_job(parse_document(text, shown))
    except InputError as error:
        first, *others = error.problems
        if '"format" is missing' not in first.message and _OWN_FORMAT.search(text):
            raise
        raise InputError([replace(first, hint=_OTHERS), *others]) from None


def _prefixed(name: str, path: str) -> Text:
    text, shown = files.read_text(path), files.shown_name(path)
    own = NAMES[name]
    formats = recognise(text)
    if formats and own.name not in formats and own.pattern:
        message = f"it is not of the format {name}"
        hint = f"it looks like {formats[0]}:{path}"
        raise InputError([Problem(message, shown, hint=hint)])
    return Text(own.name, text, shown)


def _unknown_format(name: str) -> InputError:
    near = get_close_matches(name, NAMES, n=1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    hint = f"{meant}formats: {', '.join(FORMATS)}"
    return InputError([Problem(f'there is no file and no format "{name}"', hint=hint)])
