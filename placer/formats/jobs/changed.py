"""A complete job with some of its keys set: a preset or a job file, changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError, Problem, refuse
from placer.base.naming import entry, named
from placer.documents import document_of, open_document, parse_document
from placer.documents.presets import find_file, preset_names
from placer.documents.recognise import Source, open_text
from placer.formats.jobs.findings import Scalar, one_line
from placer.formats.jobs.registry import FORMATS
from placer.job.read import decode_job

if TYPE_CHECKING:
    from placer.documents import Document
    from placer.job.model import Job

# Ways to say how long the work takes: one takes the place of another.
_PACE = ("micro_batch_time", "tflops_per_gpu", "log")


def changed_job(source: Source, keys: Mapping[str, Scalar]) -> Job:
    """The job of a preset or a job file with values set by their key paths.

    What the file leaves to defaults follows the new values.

    Raises
    ------
    InputError
        If a key leads into what is no mapping, or the job cannot be so.
    """
    document = _document(source)
    content, problems = dict(document.top.content), []
    for key, value in keys.items():
        if problem := _set(content, key, value):
            problems.append(problem)
    refuse(problems)
    said = [f"changed: {one_line(f'{k}={v}')}" for k, v in keys.items() if k != "name"]
    content["sources"] = [*content.get("sources", ()), *said]
    try:
        return decode_job(document_of(content, document.source))
    except InputError as error:
        raise InputError(_placed(problem, keys) for problem in error.problems) from None


def _document(source: Source) -> Document:
    given = os.fspath(source)
    found = None if given in preset_names("jobs") else open_text(source, FORMATS)
    if found is None:
        return open_document(find_file("jobs", given))
    return parse_document(found.text, found.shown)


def _set(content: dict[str, Any], key: str, value: Scalar) -> Problem | None:
    """Set a value in a mapping, which is changed; what is wrong with its key."""
    *sections, last = key.split(".")
    inside = content
    for depth, name in enumerate(sections):
        section = inside.get(name, {})
        if not isinstance(section, dict):
            held = ".".join(sections[: depth + 1])
            message = f"{held} is no mapping in the job, so nothing in it can be set"
            return Problem(message, _option(key))
        inside[name] = inside = dict(section)
    if sections == ["compute"] and last in _PACE:
        for other in _PACE:
            inside.pop(other, None)
    inside[last] = value
    return None


def _placed(problem: Problem, keys: Mapping[str, Scalar]) -> Problem:
    """A problem of what was set, told of the option that did."""
    if problem.key in keys:
        return replace(problem, source=_option(problem.key))
    return problem


def _option(key: str) -> str:
    return named(key) if key == "name" else entry("settings", f"job.{one_line(key)}")
