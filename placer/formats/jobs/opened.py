"""Sources of a job as users write them: complete jobs, and texts of other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.documents import files, parse_document
from placer.documents.presets import preset_names
from placer.documents.recognise import Source, Text, open_text, perhaps_of_another
from placer.formats.jobs.findings import refuse_long
from placer.formats.jobs.registry import FORMATS
from placer.job.read import decode_job, read_job

if TYPE_CHECKING:
    from placer.job.model import Job


def open_source(source: Source) -> Job | Text:
    """A job as such, or a text with the format it is in.

    Raises
    ------
    InputError
        If there is no such file, preset or format, or the job is not valid.
    """
    if os.fspath(source) in preset_names("jobs"):
        return read_job(source)
    found = open_text(source, FORMATS)
    if found is None:
        return read_job(source)
    if not found.format:
        return _own(found.text, found.shown)
    if not FORMATS[found.format].logs:
        refuse_long(found.text, found.shown)
    return found


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
        hint = "say which: FORMAT:FILE; placer job formats lists what is read"
        raise InputError([Problem(message, shown, hint=hint)])
    with perhaps_of_another(text, "placer job formats"):
        return decode_job(parse_document(text, shown))
