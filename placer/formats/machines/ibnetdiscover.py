"""``ibnetdiscover``: an InfiniBand fabric, joined with the list of nodes.

A host is the first word of ``host mlx5_0``, the description of its adapters. Adapters
without one are named by GUID through a names file. Where the adapters of a host lie on
different leaves (rails), the tier above the node is the set of these leaves; above it,
nodes share a tier when switches up to that height join their leaves.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import networkx as nx

from placer.base.errors import InputError
from placer.formats.machines.findings import MAX_NODES, Findings, NodeFacts, some
from placer.formats.machines.infiniband import (
    Fabric,
    hosts_of_adapters,
    link_notes,
    read_fabric,
)
from placer.formats.machines.switches import (
    MAX_HEIGHT,
    display_names,
    joined_names,
    switch_levels,
)

_CHASSIS = re.compile(r"[^;]*;([^;:]+)(?::(.*))?")


def read(text: str, source: str) -> Findings:
    """The leaves or sets of leaves, and the spines, that hosts share."""
    fabric = read_fabric(text, source)
    switches = [name for name in fabric.descriptions if name.startswith("S-")]
    if not switches:
        hint = "it reads what ibnetdiscover prints without --ports and other lists"
        raise InputError("no switch in it", source, hint=hint)
    findings = Findings(source, ignored=fabric.ignored)

    return waiting(findings, fabric)


def waiting(findings: Findings, fabric: Fabric) -> Findings:
    """The findings of a fabric, complete once the nodes of the others are known."""

    def join(aliases: Mapping[str, str], hosts: Sequence[str]) -> Findings:
        own = replace(findings, notes=[], unused={})
        try:
            return _joined(own, fabric, aliases, hosts)
        except InputError:
            # They are of use where the parts of a fabric are not joined, too.
            findings.notes[:] = own.notes
            raise

    return replace(findings, join=join)


def _joined(
    findings: Findings,
    fabric: Fabric,
    aliases: Mapping[str, str],
    listed: Sequence[str],
) -> Findings:
    """The findings for the known hosts, or for all where none are known."""
    found = hosts_of_adapters(fabric, aliases)
    findings.notes += found.notes()
    if found.unnamed:
        findings.unused["adapter"] = len(found.unnamed)
    adapters = found.hosts
    hosts = dict.fromkeys(adapters.values())
    if listed:
        others = [host for host in hosts if host not in set(listed)]
        if others:
            findings.unused["host"] = len(others)
            findings.notes.append(
                f"hosts of the fabric that no other source lists, left out: "
                f"{len(others)}: {some(others)}"
            )
        hosts = {host: None for host in listed if host in hosts}
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
        raise InputError("no listed host is on a switch", findings.source, hint=hint)
    if len(leaves) > MAX_NODES:
        raise InputError(f"more than {MAX_NODES} nodes", findings.source)
    units = units_of_hosts(leaves)
    _add_levels(findings, fabric, units, leaves)
    _add_notes(findings, fabric, adapters, leaves)
    return findings


def _unit_names(fabric: Fabric, units: LeafSets) -> list[str]:
    """A name of each set of leaves, none twice.

    Of a switch that is what stands between ``;`` and ``:``.
    """
    switches = [name for name in fabric.descriptions if name.startswith("S-")]
    matches = {s: _CHASSIS.fullmatch(fabric.descriptions[s]) for s in switches}
    counts = Counter(match[1] for match in matches.values() if match)
    shown = {}
    for switch, match in matches.items():
        if match and match[1].isprintable():
            # The switches of a chassis share its name.
            several = counts[match[1]] > 1 and match[2]
            shown[switch] = f"{match[1]}:{match[2]}" if several else match[1]
    shown = display_names(switches, shown)
    return joined_names(
        [sorted(shown.get(leaf, leaf) for leaf in unit) for unit in units.leaves]
    )


def _add_levels(
    findings: Findings, fabric: Fabric, units: LeafSets, leaves: Mapping[str, set[str]]
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
    raise InputError(message, findings.source, hint=hint)


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


def switch_graph(fabric: Fabric, units: Sequence[frozenset[str]]) -> nx.Graph:
    """Every switch that is linked to another; the leaves of a unit are a path.

    Its hosts join the leaves of a unit.
    """
    graph = nx.Graph(
        (link.node, link.other)
        for link in fabric.links.values()
        if link.node.startswith("S-") and link.other.startswith("S-")
    )
    for leaves in units:
        nx.add_path(graph, leaves)
    return graph


def switch_heights(graph: nx.Graph, units: Sequence[frozenset[str]]) -> dict[str, int]:
    """Hops from the closest leaf, of every switch that can be reached."""
    layers = islice(nx.bfs_layers(graph, set().union(*units)), MAX_HEIGHT)
    return {switch: height for height, layer in enumerate(layers) for switch in layer}


def joined_units(
    graph: nx.Graph,
    units: Sequence[frozenset[str]],
    heights: Mapping[str, int],
    height: int,
) -> list[int]:
    """Number of the group of each unit that switches up to ``height`` join."""
    low = graph.subgraph(switch for switch, h in heights.items() if h <= height)
    parts = enumerate(nx.connected_components(low))
    part_of = {switch: number for number, part in parts for switch in part}
    group: dict[int, int] = {}
    return [group.setdefault(part_of[min(unit)], len(group)) for unit in units]


@dataclass
class LeafSets:
    """Sets of leaves, and the set of each host."""

    leaves: list[frozenset[str]] = field(default_factory=list)
    # No entry for a host whose leaves are part of several sets.
    of_host: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def units_of_hosts(leaves_of_host: Mapping[str, set[str]]) -> LeafSets:
    """The largest sets of leaves that hosts have, and the one that holds each host.

    A host with fewer adapters (one may be down) belongs to the one set that holds all
    its leaves.
    """
    hosts_of: dict[frozenset[str], list[str]] = defaultdict(list)
    for host, own in leaves_of_host.items():
        hosts_of[frozenset(own)].append(host)
    by_leaf: dict[str, set[int]] = defaultdict(set)
    found: list[tuple[frozenset[str], list[str]]] = []
    unclear: list[str] = []
    for leaves in sorted(hosts_of, key=lambda leaves: (-len(leaves), sorted(leaves))):
        around = set.intersection(*(by_leaf[leaf] for leaf in leaves))
        if not around:
            for leaf in leaves:
                by_leaf[leaf].add(len(found))
            found.append((leaves, hosts_of[leaves]))
        elif len(around) == 1:
            found[around.pop()][1].extend(hosts_of[leaves])
        else:
            unclear += hosts_of[leaves]
    position = {host: at for at, host in enumerate(leaves_of_host)}
    found = sorted(found, key=lambda pair: min(position[host] for host in pair[1]))
    units = LeafSets([leaves for leaves, _ in found])
    for number, (_, hosts) in enumerate(found):
        units.of_host |= dict.fromkeys(hosts, number)
    shared = [leaf for leaf, sets in by_leaf.items() if len(sets) > 1]
    if shared:
        units.notes.append(
            f"leaves in several sets of rails: {len(shared)}: cabling or adapters of "
            "some hosts differ"
        )
    if unclear:
        units.notes.append(
            f"hosts whose few adapters fit several sets of rails: {len(unclear)}: "
            f"{some(unclear)}"
        )
    return units
