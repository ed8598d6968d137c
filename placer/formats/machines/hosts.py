"""A plain list of nodes: host lists in Slurm's syntax, ``#`` starts a comment."""

from __future__ import annotations

from placer.base.errors import Problem, refuse
from placer.base.hostlist import expand
from placer.formats.machines.findings import MAX_NODES, Findings, NodeFacts


def read(text: str, source: str) -> Findings:
    """The nodes, and nothing else about them."""
    findings = Findings(source)
    problems = []
    left = 2 * MAX_NODES
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            names = expand(line.partition("#")[0])
        except ValueError as error:
            problems.append(Problem(str(error), source, number, 1))
            continue
        left -= len(names)
        for name in names:
            if name in findings.nodes:
                message = f'"{name}" is listed twice'
                problems.append(Problem(message, source, number, 1))
            findings.nodes[name] = NodeFacts(())
        if left < 0 or len(findings.nodes) > MAX_NODES:
            problems.append(Problem(f"more than {MAX_NODES} nodes", source, number))
            break
    if not (findings.nodes or problems):
        problems.append(Problem("no node in it", source))
    refuse(problems)
    return findings
