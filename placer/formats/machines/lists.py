"""Lists that people write: nodes as host lists, and host names of instance ids."""

from __future__ import annotations

from placer.base.errors import Problem, refuse
from placer.base.hostlist import HostLists
from placer.formats.machines.findings import MAX_NODES, Findings, NodeFacts


def read_hosts(text: str, source: str) -> Findings:
    """The nodes of host lists in Slurm's syntax; ``#`` starts a comment."""
    findings = Findings(source)
    problems = []
    lists = HostLists(2 * MAX_NODES)
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            names = lists.expand(line.partition("#")[0])
        except ValueError as error:
            problems.append(Problem(str(error), source, number, 1))
            continue
        for name in names:
            if name in findings.nodes:
                message = f'"{name}" is listed twice'
                problems.append(Problem(message, source, number, 1))
            findings.nodes[name] = NodeFacts(())
        if len(findings.nodes) > MAX_NODES:
            problems.append(Problem(f"more than {MAX_NODES} nodes", source, number))
            break
    if not (findings.nodes or problems):
        problems.append(Problem("no node in it", source))
    refuse(problems)
    return findings


def read_names(text: str, source: str) -> Findings:
    """The host name of every id, ``i-0a17 gpu-3`` a line; ``#`` starts a comment."""
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
