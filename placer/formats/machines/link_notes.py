"""What the links of an InfiniBand fabric carry, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from placer.formats.machines.findings import some

if TYPE_CHECKING:
    from placer.formats.machines.infiniband import Fabric


def link_notes(
    fabric: Fabric, adapters: Mapping[str, str], leaves: Mapping[str, set[str]]
) -> list[str]:
    """Rates of the hosts' links, and the sums of the leaves' links down and up.

    Parameters
    ----------
    fabric : Fabric
    adapters : mapping of str to str
        Host of each adapter.
    leaves : mapping of str to set of str
        Leaves of each host that counts.
    """
    low = set().union(*leaves.values())
    rates: Counter[float] = Counter()
    down: Counter[str] = Counter()
    up: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for link in fabric.links.values():
        if link.node not in low:
            continue
        if adapters.get(link.other) in leaves:
            rates[link.rate] += 1
            down[link.node] += int(link.rate)
        elif link.other.startswith("S-"):
            up[link.node] += int(link.rate)
            pairs[link.node, link.other] += 1
    listed = ", ".join(
        f"{count} at {rate:g} Gb/s" if rate else f"{count} without a rate"
        for rate, count in rates.most_common()
    )
    notes = [f"links of the hosts: {listed}"]
    if up and any(rates):
        worst = max(down, key=lambda leaf: down[leaf] / max(1, up[leaf]))
        notes.append(
            f"the fullest leaf has {down[worst]} Gb/s to its hosts and {up[worst]} "
            "Gb/s to other switches, parallel links summed"
        )
    return notes + _uneven(pairs, fabric)


def _uneven(pairs: Counter[tuple[str, str]], fabric: Fabric) -> list[str]:
    """Pairs of a leaf and a switch above it with fewer links than most pairs."""
    if not pairs:
        return []
    usual = Counter(pairs.values()).most_common(1)[0][0]
    fewer = sorted(pair for pair, count in pairs.items() if count < usual)
    if not fewer:
        return []
    names = fabric.descriptions
    listed = some([f'"{names[a]}" to "{names[b]}"' for a, b in fewer])
    return [
        f"pairs of a leaf and a switch with fewer than the usual {usual} links: "
        f"{len(fewer)} of {len(pairs)}: {listed}"
    ]
