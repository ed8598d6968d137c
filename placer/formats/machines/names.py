"""Host names for the instance ids of a cloud: ``i-0a17 gpu-3``, one node a line."""

from __future__ import annotations

from placer.base.errors import Problem, refuse
from placer.formats.machines.findings import Findings


def read(text: str, source: str) -> Findings:
    """The host name of every id; ``#`` starts a comment."""
    findings = Findings(source)
    problems = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            message = "expected an id and a host name"
            problems.append(Problem(message, source, number, 1))
        elif findings.aliases.setdefault(words[0], words[1]) != words[1]:
            message = f'"{words[0][:80]}" comes twice, with two names'
            problems.append(Problem(message, source, number, 1))
    if not (findings.aliases or problems):
        problems.append(Problem("no id in it", source))
    refuse(problems)
    return findings
