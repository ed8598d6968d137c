"""The printed answer of ``ibnetdiscover``: switches, adapters, hosts and links.

Blocks of ``Switch``, ``Ca`` and ``Rt``; every link stands at both of its ends
(linux-rdma/rdma-core, ``infiniband-diags/ibnetdiscover.c``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from placer.base.errors import MOST_PROBLEMS, Problem, refuse
from placer.base.hostlist import name_problem
from placer.formats.machines.findings import some

_ID = r'"([SHR]-[0-9A-Fa-f]{1,16})"'
_BLOCK = re.compile(rf'(?:Switch|Ca|Rt)\s+[0-9]+\s+{_ID}\s*(?:#\s*"([^"]*)".*)?')
_PORT = re.compile(
    rf"\[([0-9]{{1,4}})\](?:\[ext [0-9]+\])?(?:\([0-9A-Fa-f]+\))?\s+{_ID}"
    rf"\[([0-9]{{1,4}})\](?:\(([0-9A-Fa-f]+)\))?(?:\[ext [0-9]+\])?\s*(?:#(.*))?"
)
_RATE = re.compile(r"([0-9]{1,2})x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\s*")
_OTHER = re.compile(r"#.*|\w+=.*|\s*")

# Gb/s a lane (InfiniBand Trade Association, roadmap).
_LANE = {
    "SDR": 2.0,
    "DDR": 4.0,
    "QDR": 8.0,
    "FDR10": 10.0,
    "FDR": 13.6,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
_HOST = re.compile(r"(\S+) (\S+)")
_SHARP = "Aggregation Node"
_DEFAULTS = {"localhost", "localhost.localdomain", "ubuntu", "none", "unknown"}


@dataclass(slots=True)
class Link:
    """One end of a link."""

    node: str
    port: int
    # other and other_port: the other end.
    other: str
    other_port: int
    rate: float  # gb/s: 0 where it is not printed
    line: int


@dataclass
class Fabric:
    """Everything that was found."""

    # Description of every switch, adapter and router by its id (``S-``, ``H-``).
    descriptions: dict[str, str] = field(default_factory=dict)
    # By node and port; each link twice.
    links: dict[tuple[str, int], Link] = field(default_factory=dict)
    ignored: list[Problem] = field(default_factory=list)


def read_fabric(text: str, source: str) -> Fabric:
    """The fabric."""
    fabric = Fabric()
    problems: list[Problem] = []
    current = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("[") and (match := _PORT.match(line)):
            if message := _add_link(fabric, current, match, number):
                problems.append(Problem(message, source, number, 1))
        elif match := _BLOCK.match(line):
            current = match[1]
            if current in fabric.descriptions:
                message = f"{current} comes twice: two answers in one file?"
                problems.append(Problem(message, source, number, 1))
            fabric.descriptions[current] = match[2] or ""
        elif not _OTHER.fullmatch(line):
            fabric.ignored.append(Problem("not a line of it", source, number, 1))
    refuse(problems)
    _check_ends(fabric, source)
    return fabric


def _add_link(fabric: Fabric, current: str, match: re.Match[str], number: int) -> str:
    """Add the link of a line; why it cannot be, empty when it can."""
    port, other, other_port, comment = int(match[1]), match[2], int(match[3]), match[5]
    if not current:
        return "a port before the first block: cut?"
    if (current, port) in fabric.links:
        return f"port {port} of {current} comes twice"
    # The rate is the last word, where it is printed at all.
    rate = _rate((comment or "").rpartition(" ")[2])
    fabric.links[current, port] = Link(current, port, other, other_port, rate, number)
    return ""


@lru_cache(maxsize=256)
def _rate(word: str) -> float:
    """Gb/s of ``4xNDR``: the width times a lane's rate; 0 for any other word."""
    match = _RATE.fullmatch(word)
    return int(match[1]) * _LANE[match[2]] if match else 0.0


def _check_ends(fabric: Fabric, source: str) -> None:
    """Refuse a file that was cut: every link has two ends."""
    problems = []
    hint = "is the file cut, or were some lines filtered?"
    for link in fabric.links.values():
        back = fabric.links.get((link.other, link.other_port))
        if back and back.other == link.node and back.other_port == link.port:
            continue
        message = (
            f"the link from port {link.port} of {link.node} to port "
            f"{link.other_port} of {link.other} is shown at one end only"
        )
        if link.other not in fabric.descriptions:
            message = f"{link.other} is linked to {link.node}, but has no block"
        problems.append(Problem(message, source, link.line, 1, hint=hint))
        if len(problems) > 4 * MOST_PROBLEMS:
            break
    refuse(problems)


@dataclass
class Adapters:
    """Adapters with and without a host."""

    # Host of each adapter that has one, by the adapter's id.
    hosts: dict[str, str] = field(default_factory=dict)
    # Ids of the others, without those of switches.
    unnamed: list[str] = field(default_factory=list)
    sharp: int = 0  # aggregation nodes, which sit in switches
    # Names of hosts that several hosts have.
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


def link_notes(
    fabric: Fabric, adapters: Mapping[str, str], leaves: Mapping[str, set[str]]
) -> list[str]:
    """Rates of the hosts' links, and the sums of the leaves' links down and up.

    ``adapters``: host of each adapter. ``leaves``: leaves of each host that counts.
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
