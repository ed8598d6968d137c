"""``ibnetdiscover``: an InfiniBand fabric, joined with the list of nodes.

A host is the first word of ``host mlx5_0``, the description of its adapters. Adapters
without one are named by GUID through a names file. Where the adapters of a host lie on
different leaves (rails), the tier above the node is the set of these leaves; above it,
nodes share a tier when switches up to that height join their leaves.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

from placer.base.errors import InputError, Problem, refuse
from placer.formats.machines.adapters import hosts_of_adapters
from placer.formats.machines.findings import MAX_NODES, Findings, Known, NodeFacts, some
from placer.formats.machines.infiniband import Fabric, read_fabric
from placer.formats.machines.leaf_sets import Units, units_of_hosts
from placer.formats.machines.link_notes import link_notes
from placer.formats.machines.switch_heights import (
    joined_units,
    switch_graph,
    switch_heights,
)
from placer.formats.machines.switches import display_names, joined_names, switch_levels

_CHASSIS = re.compile(r"[^;]*;([^;:]+)(?::(.*))?")


def read(text: str, source: str) -> Findings:
    """The leaves or sets of leaves, and the spines, that hosts share.

    Raises
    ------
    InputError
        If the file is cut, or no switch is in it. When joined: if no host is on a
        switch, or hosts are on fabrics that nothing joins.
    """
    fabric = read_fabric(text, source)
    switches = [name for name in fabric.descriptions if name.startswith("S-")]
    if not switches:
        hint = "it reads what ibnetdiscover prints without --ports and other lists"
        refuse([Problem("no switch in it", source, hint=hint)])
    findings = Findings(source, ignored=fabric.ignored)

    return waiting(findings, fabric)


def waiting(findings: Findings, fabric: Fabric) -> Findings:
    """The findings of a fabric, complete once the nodes of the others are known."""

    def join(known: Known) -> Findings:
        own = replace(findings, notes=[], unused={})
        try:
            return _joined(own, fabric, known)
        except InputError:
            # They are of use where the parts of a fabric are not joined, too.
            findings.notes[:] = own.notes
            raise

    return replace(findings, join=join)


def _joined(findings: Findings, fabric: Fabric, known: Known) -> Findings:
    """The findings for the known hosts, or for all where none are known."""
    found = hosts_of_adapters(fabric, known.aliases)
    findings.notes += found.notes()
    if found.unnamed:
        findings.unused["adapter"] = len(found.unnamed)
    adapters = found.hosts
    hosts = dict.fromkeys(adapters.values())
    if known.hosts:
        others = [host for host in hosts if host not in set(known.hosts)]
        if others:
            findings.unused["host"] = len(others)
            findings.notes.append(
                f"hosts of the fabric that no other source lists, left out: "
                f"{len(others)}: {some(others)}"
            )
        hosts = {host: None for host in known.hosts if host in hosts}
    else:
        findings.notes.append(
            "no other source lists the nodes: every host of the fabric is taken for "
            f"one, {len(hosts)} in all"
        )
    leaves: dict[str, set[str]] = {host: set() for host in hosts}
    for link in fabric.links.values():
        host = adapters.get(link.other)
        if link.node.startswith("S-") and host in leaves:
            leaves[host].add(link.node)
    leaves = {host: found for host, found in leaves.items() if found}
    if not leaves:
        hint = "give host names of adapters with names:FILE, lines of GUID and host"
        message = "no listed host is on a switch"
        refuse([Problem(message, findings.source, hint=hint)])
    if len(leaves) > MAX_NODES:
        refuse([Problem(f"more than {MAX_NODES} nodes", findings.source)])
    units = units_of_hosts(leaves)
    _add_levels(findings, fabric, units, leaves)
    _add_notes(findings, fabric, adapters, leaves)
    return findings


def _shown(fabric: Fabric) -> dict[str, str]:
    """Name to show of every switch: what stands between ``;`` and ``:``."""
    switches = [name for name in fabric.descriptions if name.startswith("S-")]
    matches = {s: _CHASSIS.fullmatch(fabric.descriptions[s]) for s in switches}
    counts = Counter(match[1] for match in matches.values() if match)
    shown = {}
    for switch, match in matches.items():
        if match and match[1].isprintable():
            # The switches of a chassis share its name.
            several = counts[match[1]] > 1 and match[2]
            shown[switch] = f"{match[1]}:{match[2]}" if several else match[1]
    return display_names(switches, shown)


def _unit_names(fabric: Fabric, units: Units) -> list[str]:
    """A name of each set of leaves, none twice."""
    shown = _shown(fabric)
    return joined_names(
        [sorted(shown.get(leaf, leaf) for leaf in unit) for unit in units.leaves]
    )


def _add_levels(
    findings: Findings, fabric: Fabric, units: Units, leaves: Mapping[str, set[str]]
) -> None:
    names = _unit_names(fabric, units)
    graph = switch_graph(fabric, units.leaves)
    heights = switch_heights(graph, units.leaves)
    columns = []
    before = len(units.leaves)
    top = max(heights.values())
    # Without spines the leaves are cabled to each other.
    for height in range(min(1, top), top + 1):
        joined = joined_units(graph, units.leaves, heights, height)
        if len(set(joined)) < before:
            before = len(set(joined))
            columns.append(joined)
    _check_one(findings, columns[-1] if columns else list(range(before)), names)
    single = all(len(unit) == 1 for unit in units.leaves)
    first = replace(switch_levels(1)[0], name="leaf" if single else "rails")
    findings.levels = (first, *switch_levels(len(columns) + 1)[1:])
    for host in leaves:
        unit = units.of_host.get(host)
        domains = ("",) * len(findings.levels)
        if unit is not None:
            above = [
                f"{level.name}-{column[unit] + 1}"
                for level, column in zip(findings.levels[1:], columns, strict=True)
            ]
            domains = (names[unit], *above)
        findings.nodes[host] = NodeFacts(domains)
    findings.notes += units.notes


def _check_one(findings: Findings, column: list[int], names: list[str]) -> None:
    """Refuse fabrics that nothing joins."""
    if len(set(column)) < 2:
        return
    firsts = {domain: names[unit] for unit, domain in enumerate(column)}
    message = (
        f"{len(firsts)} fabrics that no switch joins: {some(list(firsts.values()))}"
    )
    hint = "give each its own file, or list the nodes of one of them"
    refuse([Problem(message, findings.source, hint=hint)])


def _add_notes(
    findings: Findings,
    fabric: Fabric,
    adapters: Mapping[str, str],
    leaves: Mapping[str, set[str]],
) -> None:
    """How many rails hosts have, and what the links carry."""
    rails: dict[int, list[str]] = defaultdict(list)
    for host, found in leaves.items():
        rails[len(found)].append(host)
    listed = "; ".join(
        f"{count} on {len(hosts)} hosts" + (f" ({some(hosts)})" if i else "")
        for i, (count, hosts) in enumerate(
            sorted(rails.items(), key=lambda pair: -len(pair[1]))
        )
    )
    findings.notes.append(f"leaves a host: {listed}")
    findings.notes += link_notes(fabric, adapters, leaves)
