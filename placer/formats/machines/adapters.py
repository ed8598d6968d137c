"""Which host every adapter of an InfiniBand fabric is in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.base.hostlist import name_problem
from placer.formats.machines.findings import some

if TYPE_CHECKING:
    from placer.formats.machines.infiniband import Fabric

_HOST = re.compile(r"(\S+) (\S+)")
_SHARP = "Aggregation Node"
_DEFAULTS = {"localhost", "localhost.localdomain", "ubuntu", "none", "unknown"}


@dataclass
class Adapters:
    """Adapters with and without a host.

    Attributes
    ----------
    hosts : dict of str to str
        Host of each adapter that has one, by the adapter's id.
    unnamed : list of str
        Ids of the others, without those of switches.
    sharp : int
        Aggregation nodes, which sit in switches.
    shared : set of str
        Names of hosts that several hosts have.
    """

    hosts: dict[str, str] = field(default_factory=dict)
    unnamed: list[str] = field(default_factory=list)
    sharp: int = 0
    shared: set[str] = field(default_factory=set)

    def notes(self) -> list[str]:
        """How many adapters have no host, and how to name them."""
        notes = []
        if self.sharp:
            notes.append(f"aggregation nodes (SHARP) inside switches: {self.sharp}")
        if self.unnamed:
            total = len(self.unnamed) + len(self.hosts)
            guids = some([name[2:] for name in self.unnamed])
            notes.append(
                f"adapters whose host cannot be told: {len(self.unnamed)} of {total}; "
                f"names:FILE with lines of GUID and host names them: {guids}"
            )
        if self.shared:
            listed = some(sorted(self.shared))
            notes.append(f"host names that several hosts have, not used: {listed}")
        return notes


def hosts_of_adapters(fabric: Fabric, aliases: Mapping[str, str]) -> Adapters:
    """The host of every adapter: by its GUID in ``aliases``, else by its description.

    A name that two adapters share with the device (``gpu1 mlx5_0``) is that of several
    hosts, and tells none.
    """
    found = Adapters()
    described: dict[str, tuple[str, str]] = {}
    for name, description in fabric.descriptions.items():
        if not name.startswith("H-"):
            continue
        guid = name[2:].lower()
        if _SHARP in description:
            found.sharp += 1
        elif host := aliases.get(guid) or aliases.get(f"0x{guid}", ""):
            found.hosts[name] = host
        elif words := _host_and_device(description):
            described[name] = words
        else:
            found.unnamed.append(name)
    counts = Counter(described.values())
    found.shared = {host for (host, _), count in counts.items() if count > 1}
    for name, (host, _) in described.items():
        if host in found.shared:
            found.unnamed.append(name)
        else:
            found.hosts[name] = aliases.get(host, host)
    return found


def _host_and_device(description: str) -> tuple[str, str] | None:
    """The words of ``host mlx5_0``; None for the description of a card."""
    match = _HOST.fullmatch(description.strip())
    if not match or name_problem(match[1]) or match[1].lower() in _DEFAULTS:
        return None
    return match[1], match[2]
