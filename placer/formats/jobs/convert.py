"""Findings as a job, its file with origins and in words; a job with keys changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from placer.assumed import RATE, Assumption
from placer.base.errors import InputError, Problem, refuse
from placer.base.naming import entry, named
from placer.documents import Document, document_of, open_document, parse_document
from placer.documents.presets import find_file, preset_names
from placer.documents.recognise import Source, open_text
from placer.documents.records import entries
from placer.formats.jobs.findings import (
    DP_MULTIPLE,
    GLOBAL_BATCH,
    GPUS,
    Fact,
    Findings,
    Kind,
    Place,
    Remark,
    Scalar,
    Value,
    one_line,
    shown,
)
from placer.formats.jobs.registry import FORMATS
from placer.job.model import Job
from placer.job.read import decode_job

_WIDE = 60  # a longer line has its origin close behind
_ORDER = (
    *("parallelism", "model", "sequence", "micro_batch", "micro_batches", "bytes"),
    *("data_parallel", "overlap", "tensor_parallel", "context_parallel"),
    *("expert_parallel", "stages", "compute", "launcher"),
)
# Ways to say how long the work takes: one takes the place of another.
_PACE = ("micro_batch_time", "tflops_per_gpu", "log")


def to_job(found: Findings, name: str, sources: Iterable[str]) -> Job:
    """The job that findings say, validated as a job file is."""
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
    said = fact.kind in ("read", "given")
    return fact.origin if said else f"{fact.kind}: {fact.origin}"


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
    rank = {section: number for number, section in enumerate(_ORDER)}
    return sorted(facts, key=lambda row: rank.get(row[0].partition(".")[0], len(rank)))


def _placed(problem: Problem, found: Findings) -> Problem:
    """A problem of the document, at the place where its value comes from."""
    fact = found.facts.get(problem.key)
    if fact is None:
        return problem
    source, line, column = fact.place
    return replace(problem, source=source, line=line, column=column)


def changed_job(source: Source, keys: Mapping[str, Scalar]) -> Job:
    """The job of a preset or a job file with values set by their key paths.

    What the file leaves to defaults follows the new values.
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
        raise InputError(  # what was set is told of the option that did
            replace(one, source=_setting_of(one.key)) if one.key in keys else one
            for one in error.problems
        ) from None


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
            return Problem(message, _setting_of(key))
        inside[name] = inside = dict(section)
    if sections == ["compute"] and last in _PACE:
        for other in _PACE:
            inside.pop(other, None)
    inside[last] = value
    return None


def _setting_of(key: str) -> str:
    return named(key) if key == "name" else entry("settings", f"job.{one_line(key)}")


_MOST = 4


def summary(found: Findings) -> str:
    """One line: how much of each kind, with what is not plainly read.

    ``read 24, derived 7 (dp 64 = 1,024 GPUs / (tp 8 x pp 2)), assumed 2 (...), ...``
    """
    parts = []
    for kind in ("given", "read", "derived", "assumed"):
        facts = _of_kind(found, kind)
        if not facts:
            continue
        told = []
        for key, fact in facts:
            if kind == "assumed":
                told.append(f"{key} {shown(fact.value)}: {fact.origin}")
            elif kind == "derived" and key == "parallelism.dp":
                told.append(f"dp {shown(fact.value)} = {fact.origin}")
        parts.append(_counted(kind, len(facts), told))
    if found.not_modelled:
        told = [_remark(remark) for remark in found.not_modelled]
        parts.append(_counted("not modelled", len(told), told))
    if found.ignored:
        parts.append(_counted("ignored", len(found.ignored), []))
    return one_line(", ".join(parts))


def origins(found: Findings) -> Iterator[str]:
    """A line for each key: what it is and where it comes from."""
    for key, fact in found.facts.items():
        yield one_line(f"{key}: {shown(fact.value)}: {origin(fact)}")
    for words, remarks in (
        ("not modelled", found.not_modelled),
        ("ignored", found.ignored),
    ):
        for remark in remarks:
            yield one_line(f"{words}: {_remark(remark)}: {remark.place}")


def doubts(found: Findings) -> list[Problem]:
    """What is assumed and what is not modelled, each as a problem."""
    problems = [
        Problem(f"assumed {shown(fact.value)}: {fact.origin}", *fact.place, key)
        for key, fact in _of_kind(found, "assumed")
    ]
    problems += [
        Problem(f"not modelled: {_remark(remark)}", *remark.place)
        for remark in found.not_modelled
    ]
    return problems


def _of_kind(found: Findings, kind: Kind) -> list[tuple[str, Fact]]:
    return [(key, fact) for key, fact in found.facts.items() if fact.kind == kind]


def _remark(remark: Remark) -> str:
    return f"{remark.key}, {remark.reason}" if remark.reason else remark.key


def _counted(words: str, count: int, told: Sequence[str]) -> str:
    """So many of a kind, with the first of them in brackets."""
    if not told:
        return f"{words} {count}"
    more = f"; {len(told) - _MOST} more" if len(told) > _MOST else ""
    return f"{words} {count} ({'; '.join(told[:_MOST])}{more})"
