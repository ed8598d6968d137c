"""Several sources of one job: each fills the gaps of those before it."""

from __future__ import annotations

from collections.abc import Sequence

from placer.base.errors import Problem, refuse
from placer.base.naming import named
from placer.formats.jobs.findings import Fact, Findings, Kind, shown

_WORTH: dict[Kind, int] = {"given": 0, "read": 1, "derived": 2, "assumed": 3}


def join(findings: Sequence[Findings]) -> Findings:
    """All that the sources say, each key from the first that says it best.

    A value that is read counts more than one that is derived, and that more than one
    that is assumed.

    Raises
    ------
    InputError
        If two sources say different things in so many words; all of them at once.
    """
    joined = Findings(findings[0].source if findings else "")
    problems: list[Problem] = []
    for found in findings:
        for key, fact in found.facts.items():
            before = joined.facts.get(key)
            if before is None or _WORTH[fact.kind] < _WORTH[before.kind]:
                joined.facts[key] = fact
            elif before.kind == fact.kind == "read" and before.value != fact.value:
                problems.append(_contradiction(key, before, fact))
        for name in (
            "asked",
            "not_modelled",
            "ignored",
            "missing",
            "notes",
            "problems",
            "rules",
        ):
            getattr(joined, name).extend(getattr(found, name))
        joined.unsure |= found.unsure
        joined.started = joined.started or found.started
    refuse(problems)
    return joined


def _contradiction(key: str, first: Fact, second: Fact) -> Problem:
    message = f"{shown(second.value)} here, {shown(first.value)} in {first.origin}"
    holds = named("settings", {f"job.{key}": shown(second.value)})
    hint = f"correct one, or say which holds: {holds}"
    return Problem(message, *second.place, key, hint)
