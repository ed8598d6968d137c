"""An allocation: the hosts of a job, in launch order, out of a whole machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from placer.base.errors import InputError, Problem, refuse
from placer.base.hostlist import HostLists, compress, expand
from placer.documents import files
from placer.topology.model import Topology
from placer.topology.suggest import Suggester

# Why a host of the machine must not be used that nobody excluded.
OUTSIDE = "outside the allocation"
# Tables that Slurm prints: the column of nodes, and what all rows must share for the
# nodes to be one answer, with the option that makes it so.
_NODES = "NODELIST"
_KINDS = {"JOBID": "keep one: squeue -j JOBID", "STATE": "keep one: sinfo -t idle"}
_MOST_PARTS = 3
_SLOTS = re.compile(r"(?:\s+(?:max_)?slots=[0-9]+)+$")


def allocate(
    topology: Topology,
    hosts: Sequence[str] | str | None = None,
    exclude: Sequence[str] | str = (),
) -> Topology:
    """The machine with only ``hosts``, in that order, without those of ``exclude``.

    Its other nodes are unavailable, each with the reason.

    ``hosts``: the allocation in launch order, as names or as `parse_hosts` reads them;
    every usable node when None. ``exclude``: hosts not to use, in any order; they need
    not be among ``hosts``.
    """
    machine = _selected(topology, hosts, exclude)
    refuse(_apart(machine))
    return machine


def _selected(
    topology: Topology, hosts: Sequence[str] | str | None, exclude: Sequence[str] | str
) -> Topology:
    """The machine with only these hosts, wherever they lie."""
    hosts = None if hosts is None else host_names(hosts)
    exclude = host_names(exclude, "exclude")
    if hosts is None and not exclude:
        return topology
    node_of_name = {name: node for node, name in enumerate(topology.node_names)}
    excluded = set(exclude)
    suggester = Suggester(topology.node_names)
    problems = [
        _unknown(host, "exclude", suggester)
        for host in dict.fromkeys(exclude)
        if host not in node_of_name and host not in topology.unavailable
    ]
    chosen = topology.node_names if hosts is None else hosts
    if hosts is not None:
        problems += _host_problems(topology, hosts, excluded, suggester)
    left = [host for host in chosen if host not in excluded]
    if not problems and not left:
        what = "every host is excluded" if chosen else "the allocation names no host"
        problems.append(Problem(what, key="exclude" if chosen else "hosts"))
    refuse(problems)
    there = set(left)
    out = {
        name: "excluded" if name in excluded else OUTSIDE
        for name in topology.node_names
        if name not in there
    }
    return replace(
        topology.select(np.array([node_of_name[h] for h in left], dtype=np.int64)),
        unavailable={**topology.unavailable, **out},
    )


def _apart_domains(topology: Topology) -> list[tuple[str, list[str]]]:
    """Hosts of every domain of the first tier that nothing joins; none without one."""
    for t, tier in enumerate(topology.tiers):
        if not tier.apart:
            continue
        found: dict[int, list[str]] = {}
        for node, domain in enumerate(topology.domain_of_node[t].tolist()):
            found.setdefault(domain, []).append(topology.node_names[node])
        if len(found) > 1:
            names = topology.domain_names[t]
            return [(names[domain], hosts) for domain, hosts in found.items()]
    return []


def _apart(topology: Topology) -> Iterator[Problem]:
    """A problem of hosts that no job can have together."""
    if parts := _apart_domains(topology):
        message = f"in {len(parts)} parts that nothing joins: a job lies in one"
        listed = [f"{name}: {compress(hosts)}" for name, hosts in parts]
        hint = f"give the hosts of one, {'; '.join(listed[:_MOST_PARTS])}"
        yield Problem(message, key="hosts", hint=hint)


def host_names(hosts: Sequence[str] | str, key: str = "hosts") -> Sequence[str]:
    """Hosts that are given as names, or as a text that `parse_hosts` reads."""
    return parse_hosts(hosts, key) if isinstance(hosts, str) else hosts


def parse_hosts(text: str, key: str = "hosts") -> list[str]:
    """Hosts of a host list, or of the file that ``@file`` names, in order.

    A file holds one host or host list a line; ``#`` starts a comment. ``slots=4`` after
    a host is ignored, and in a file a repeated host (as with a line for every task)
    counts once, where it first stands, since an allocation is made of hosts. A table
    that ``sinfo`` or ``squeue`` prints gives the nodes of its rows, where all are of
    one state, or one job.
    """
    if text.startswith("@"):
        return _read_file(text[1:])
    try:
        return expand(text)
    except ValueError as error:
        raise InputError(str(error), key=key, hint=_at(text)) from None


def _read_file(source: str) -> list[str]:
    hosts: dict[str, None] = {}
    problems = []
    lists = HostLists()
    shown = files.shown_name(source)
    try:
        lines = list(_lines(files.read_text(source)))
    except ValueError as error:
        raise InputError(str(error), shown) from None
    for number, column, line in lines:
        try:
            hosts.update(dict.fromkeys(lists.expand(line)))
        except ValueError as error:
            problems.append(Problem(str(error), shown, number, column))
    refuse(problems)
    return list(hosts)


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Line number, column and host list of every line that holds one.

    Raises `ValueError` if it is a table of Slurm whose rows are of different states, or
    jobs.
    """
    lines = text.split("\n")
    if table := _table(lines):
        yield from table
        return
    for number, line in enumerate(lines, start=1):
        content = line.partition("#")[0].rstrip()
        listed = content.lstrip()
        if not listed:
            continue
        listed = _SLOTS.sub("", listed)
        yield number, len(content) - len(content.lstrip()) + 1, listed


def _table(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """The node lists under a header of ``sinfo`` or ``squeue``; empty without one."""
    rows: list[tuple[int, int, str]] = []
    kinds: dict[str, None] = {}
    place, kind, kind_at = None, "", 0
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if any(field.startswith(_NODES) for field in fields):
            at = [field.startswith(_NODES) for field in fields].index(True)
            # Names of jobs may hold blanks, so the last column counts from the right.
            place = at - len(fields) if at else 0
            kind = next((name for name in _KINDS if name in fields), "")
            kind_at = fields.index(kind) if kind else 0
        elif place is not None and len(fields) > max(kind_at, -place - 1):
            listed = fields[place]
            if not listed.startswith("(") and listed != "n/a":  # why a job waits
                rows.append((number, line.rindex(listed) + 1, listed))
                kinds[fields[kind_at] if kind else ""] = None
    if len(kinds) > 1:
        few = ", ".join([*kinds][:5]) + (", ..." if len(kinds) > 5 else "")
        raise ValueError(f"its nodes are of several: {kind} {few}; {_KINDS[kind]}")
    return rows


def _host_problems(
    topology: Topology, hosts: Sequence[str], excluded: set[str], suggester: Suggester
) -> Iterator[Problem]:
    known = set(topology.node_names)
    seen: set[str] = set()
    for host in hosts:
        if host in seen:
            hint = "name every host once"
            yield Problem(f'host "{host}" is given twice', key="hosts", hint=hint)
        elif host in topology.unavailable:
            if host not in excluded:
                reason = topology.unavailable[host]
                hint = f"exclude {host}, or take it out of the topology's unavailable"
                message = f'host "{host}" is unavailable: {reason}'
                yield Problem(message, key="hosts", hint=hint)
        elif host not in known:
            yield _unknown(host, "hosts", suggester)
        seen.add(host)


def _unknown(host: str, key: str, suggester: Suggester) -> Problem:
    message = f'the topology has no host "{host}"'
    # A look for a file takes longer than all else about a host.
    hint = "" if suggester.has_ended else _at(host) or suggester.hint(host)
    return Problem(message, key=key, hint=hint)


def _at(text: str) -> str:
    """Hint at ``@`` where the text is a file's name; else empty."""
    return f'"@{text}" reads the hosts in that file' if files.is_file(text) else ""
