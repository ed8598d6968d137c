"""Hosts grouped by the set of leaf switches that their adapters lie on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from placer.formats.machines.findings import some


@dataclass
class Units:
    """Sets of leaves, and the set of each host.

    Attributes
    ----------
    leaves : list of frozenset of str
    of_host : dict of str to int
        No entry for a host whose leaves are part of several sets.
    notes : list of str
    """

    leaves: list[frozenset[str]] = field(default_factory=list)
    of_host: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def units_of_hosts(leaves_of_host: Mapping[str, set[str]]) -> Units:
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
    return _in_order(found, unclear, leaves_of_host, by_leaf)


def _in_order(
    found: list[tuple[frozenset[str], list[str]]],
    unclear: list[str],
    leaves_of_host: Mapping[str, set[str]],
    by_leaf: Mapping[str, set[int]],
) -> Units:
    """The sets in the order of their first hosts."""
    position = {host: at for at, host in enumerate(leaves_of_host)}
    found = sorted(found, key=lambda pair: min(position[host] for host in pair[1]))
    units = Units([leaves for leaves, _ in found])
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
