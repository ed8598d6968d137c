"""Findings as a job: a document, the job that it is, and its file with origins."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placer.assumed import RATE, Assumption
from placer.base.errors import InputError, Problem, refuse
from placer.documents import document_of
from placer.documents.records import entries
from placer.formats.jobs.findings import (
    DP_MULTIPLE,
    GLOBAL_BATCH,
    GPUS,
    Fact,
    Findings,
    Place,
    Value,
    one_line,
    shown,
)
from placer.job.read import decode_job

if TYPE_CHECKING:
    from placer.job.model import Job

_WIDE = 60  # a longer line has its origin close behind
_ORDER = (
    "parallelism",
    "model",
    "sequence",
    "micro_batch",
    "micro_batches",
    "bytes",
    "data_parallel",
    "overlap",
    "tensor_parallel",
    "context_parallel",
    "expert_parallel",
    "stages",
    "compute",
    "launcher",
)


def to_job(found: Findings, name: str, sources: Iterable[str]) -> Job:
    """The job that findings say, validated as a job file is.

    Raises
    ------
    InputError
        If it is no valid job; each problem is told where its value comes from.
    """
    content = to_document(found, name, sources)
    try:
        return decode_job(document_of(content, found.source))
    except InputError as error:
        refuse(_placed(problem, found) for problem in error.problems)
        raise


def to_document(found: Findings, name: str, sources: Iterable[str]) -> dict[str, Any]:
    """The findings as a job file."""
    head = {"format": "placer/job", "version": 1, "name": name}
    content: dict[str, Any] = head | {"sources": list(sources)}
    for key, fact in _facts_of_job(found):
        *sections, last = key.split(".")
        inside = content
        for section in sections:
            inside = inside.setdefault(section, {})
        inside[last] = fact.value
    return content


def to_text(found: Findings, name: str, sources: Iterable[str]) -> str:
    """The findings as a job file in YAML, the origin of each value behind it."""
    rows: list[tuple[str, str]] = [
        ("format: placer/job", ""),
        ("version: 1", ""),
        (f"name: {json.dumps(name)}", ""),
        (f"sources: {json.dumps(list(sources))}", ""),
    ]
    open_sections: list[str] = []
    for key, fact in _facts_of_job(found):
        *sections, last = key.split(".")
        for depth, section in enumerate(sections):
            if open_sections[depth : depth + 1] != [section]:
                rows.append((f"{'  ' * depth}{section}:", ""))
                open_sections = sections[: depth + 1]
        open_sections = sections
        line = f"{'  ' * len(sections)}{last}: {json.dumps(fact.value)}"
        rows.append((line, one_line(origin(fact))))
    width = max(len(line) for line, comment in rows if comment and len(line) < _WIDE)
    return "".join(
        f"{line:<{width}}  # {comment}\n" if comment else f"{line}\n"
        for line, comment in rows
    )


def assumptions(found: Findings) -> tuple[Assumption, ...]:
    """What is assumed of a job, each with the option that says it."""
    return tuple(
        Assumption(key, _told(fact.value), fact.origin, _option(key), fact.interval)
        for key, fact in _facts_of_job(found)
        if fact.kind == "assumed"
    )


def _told(value: Value) -> float | str:
    """A value as a number, or in words."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return ", ".join(value) if isinstance(value, list) else shown(value)


def _option(key: str) -> str:
    return "--tflops RATE" if key == RATE else f"--set job.{key}=VALUE"


def origin(fact: Fact) -> str:
    """Where a value comes from, with its kind where it is not read."""
    return (
        fact.origin if fact.kind in ("read", "given") else f"{fact.kind}: {fact.origin}"
    )


def _facts_of_job(found: Findings) -> list[tuple[str, Fact]]:
    """The facts that are keys of a job, in the order of a job file."""
    facts = [
        (key, fact)
        for key, fact in found.facts.items()
        if key not in (GPUS, GLOBAL_BATCH, DP_MULTIPLE)
    ]
    if found.started is not None:
        place = Place(found.started.source, found.started.line)
        said = entries(found.started)
        for name, value in said.pop("environment", {}).items():
            said[f"environment.{name}"] = value
        for key, value in said.items():
            facts.append((f"launcher.{key}", Fact(value, "read", str(place), place)))
    return sorted(facts, key=lambda row: _rank(row[0].partition(".")[0]))


def _rank(section: str) -> int:
    """Where a section stands in a job file; those not listed come last."""
    return _ORDER.index(section) if section in _ORDER else len(_ORDER)


def _placed(problem: Problem, found: Findings) -> Problem:
    """A problem of the document, at the place where its value comes from."""
    fact = found.facts.get(problem.key)
    if fact is None:
        return problem
    source, line, column = fact.place
    return replace(problem, source=source, line=line, column=column)
