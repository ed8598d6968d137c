"""The nodes of several findings, joined by host name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from placer.base.errors import Problem, refuse
from placer.base.hostlist import name_problem
from placer.formats.machines.findings import Findings, Level, NodeFacts, some


def settled(findings: Sequence[Findings]) -> list[Findings]:
    """The findings, those that depend on the nodes of others completed.

    A source that lists no nodes by itself waits for one that does.
    """
    settled = _files_joined(findings)
    if not any(found.join for found in settled):
        return settled
    hosts = node_names(renamed([found for found in settled if not found.join]))
    aliases: dict[str, str] = {}
    for found in settled:
        aliases |= found.aliases
    for _ in range(2):
        for position, found in enumerate(settled):
            if found.join and (joined := found.join(aliases, hosts)).nodes:
                settled[position] = joined
                joined.format = found.format
                hosts = hosts or tuple(joined.nodes)
    return settled


def _files_joined(findings: Sequence[Findings]) -> list[Findings]:
    """The findings, partial ones of the same levels as one."""
    whole: dict[tuple[Level, ...], Findings] = {}
    files: Counter[tuple[Level, ...]] = Counter()
    joined = []
    problems = []
    for found in findings:
        first = whole.setdefault(found.levels, found) if found.partial else found
        files[found.levels] += found.partial
        if first is found:
            joined.append(found)
            continue
        twice = first.nodes.keys() & found.nodes.keys()
        problems += [Problem(f'"{n}" is in another file', found.source) for n in twice]
        first.nodes |= found.nodes
        first.ignored += found.ignored
        first.notes += found.notes
        first.assumed += [a for a in found.assumed if a not in first.assumed]
    refuse(problems)
    for levels, found in whole.items():
        if files[levels] > 1:
            found.source += f" and {files[levels] - 1} more"
    return joined


def node_names(findings: Sequence[Findings]) -> tuple[str, ...]:
    """Names of the nodes of all sources, each once."""
    return tuple(dict.fromkeys(name for found in findings for name in found.nodes))


def renamed(findings: Sequence[Findings]) -> list[Findings]:
    """The findings of every source, its nodes by host name."""
    aliases: dict[str, str] = {}
    problems = []
    for found in findings:
        for other, name in found.aliases.items():
            # What a source calls a node counts before its other name for another.
            if other in found.nodes:
                continue
            if aliases.setdefault(other, name) != name:
                message = f'"{other}" is "{aliases[other]}" elsewhere, "{name}" here'
                problems.append(Problem(message, found.source))
    renamed = []
    for found in findings:
        nodes: dict[str, NodeFacts] = {}
        for own, facts in found.nodes.items():
            name = aliases.get(own, own)
            if name in nodes:
                message = f'"{own}" and another of its nodes are both host "{name}"'
                problems.append(Problem(message, found.source))
            nodes[name] = facts
        renamed.append(replace(found, nodes=nodes))
    refuse(problems)
    return renamed


def check_nodes(findings: Sequence[Findings]) -> None:
    """Refuse nodes that cannot be joined; ``findings`` are by host name, as below."""
    problems = []
    seen: dict[str, None] = {}
    hint = "give the host names of instance ids with names:FILE"
    for found in findings:
        own = found.nodes
        bad = [name_problem(name) for name in own if name not in seen]
        problems += [Problem(why, found.source, hint=hint) for why in bad if why]
        if seen and own and not seen.keys() & own.keys():
            message = "it has no node in common with the sources before it"
            first = f"{next(iter(own))!r} here, {next(iter(seen))!r} there; {hint}"
            problems.append(Problem(message, found.source, hint=first))
        seen |= dict.fromkeys(own)
    if not seen:
        hint = "give one that lists the nodes too, such as hosts:FILE"
        problems.append(
            Problem("no source names a node", findings[0].source, hint=hint)
        )
    refuse(problems)


def counts(
    names: Sequence[str], findings: Sequence[Findings]
) -> tuple[list[int | None], dict[str, str]]:
    """GPUs of every node, and the unavailable nodes; the first source to tell counts.

    Among several GPU counts the smallest is what can be used.
    """
    gpus: dict[str, int] = {}
    unavailable: dict[str, str] = {}
    for name, node in (item for found in findings for item in found.nodes.items()):
        if node.gpus is not None:
            gpus[name] = min(node.gpus, gpus.get(name, node.gpus))
        if node.unavailable:
            unavailable.setdefault(name, node.unavailable)
    return [gpus.get(name) for name in names], unavailable


def remarks(names: Sequence[str], findings: Sequence[Findings]) -> Iterator[str]:
    """Notes on what sources do not say alike of the nodes, or not of all of them."""
    for found in findings:
        if found.numbers and all(name.isdecimal() for name in found.nodes):
            yield (
                f"{found.source}: its hosts are numbers: if they are tasks of srun -l, "
                "give their host names with names:FILE"
            )
    for found in filter(lambda found: found.nodes, findings):
        if missing := [name for name in names if name not in found.nodes]:
            yield (
                f"{len(missing)} of {len(names)} nodes are not in {found.source}: "
                f"{some(missing)}"
            )
    known: dict[str, int] = {}
    for found in findings:
        # Nodes without GPUs need not be of the kind that another source describes.
        counted = {name: f.gpus for name, f in found.nodes.items() if f.gpus}
        differ = [
            f"{name} ({gpus} here, {known[name]} there)"
            for name, gpus in counted.items()
            if known.get(name, gpus) != gpus
        ]
        if differ:
            yield (
                f"{found.source} counts other GPUs than the sources before it, "
                f"nodes: {len(differ)}; the fewer are used: {some(differ)}"
            )
        known |= {n: min(g, known.get(n, g)) for n, g in counted.items()}
