"""Islands: the GPUs of a node that NVLink or XGMI joins.

Two GPUs are of one island when links lead from one to the other, over other GPUs or a
switch where need be. So a ring or a mesh is one island although some of its pairs have
no link of their own.

PCIe leads from island to island: every PCI device has a link to the one above it, of so
many lanes. PCIe codes 8 bits as 10 up to 5 GT/s, 128 as 130 up to 32 GT/s; at 64 GT/s
14 of 256 bytes are check bytes (PCI-SIG, PCI Express Base Specification). NCCL counts
with less, 24 GB/s of 16 lanes at 16 GT/s (NVIDIA/nccl, ``src/graph/topo.cc``,
``kvDictPciGen``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placer.base.errors import InputError, Problem, refuse
from placer.base.hostlist import compress
from placer.base.naming import named
from placer.base.units import format_bandwidth
from placer.formats.machines.findings import some

Parts = tuple[tuple[int, ...], ...]


def islands(count: int, links: Iterable[tuple[int, int]]) -> Parts:
    """The islands of GPUs 0 to ``count - 1``, by their first GPU."""
    island = {gpu: {gpu} for gpu in range(count)}
    for a, b in links:
        if island[a] is not island[b]:
            island[a] |= island[b]
            island |= dict.fromkeys(island[b], island[a])
    return tuple(
        tuple(sorted(gpus)) for first, gpus in island.items() if first == min(gpus)
    )


def island_words(names: Sequence[str], found: Sequence[Sequence[int]]) -> str:
    """The GPUs of every island: ``GPU[0-3]; GPU[4-7]``."""
    shown = [
        compress(sorted((names[gpu] for gpu in gpus), key=lambda n: (len(n), n)))
        for gpus in found
    ]
    return some(shown, 8, "; ")


def usual_islands(
    source: str, hosts: Mapping[str, tuple[Sequence[str], Parts]], link: str
) -> Parts:
    """The islands of a node whose links are all up.

    Those of other hosts lie inside them: they have lost links, or miss GPUs.

    ``hosts``: by the name of each host, ``""`` for every node: its GPUs, and its
    islands by position among them. ``link``: ``NVLink`` or ``XGMI``.
    """
    first = max(hosts, key=lambda host: (len(hosts[host][0]), -len(hosts[host][1])))
    names, usual = hosts[first]
    sizes = {len(island) for island in usual}
    hint = (
        f"to place on it as if it had no {link}, leave this source out and give "
        f"{named('gpus_per_node', str(len(names)))} and {named('hardware', 'FILE')}, "
        "whose node is not scale_up"
    )
    if len(usual) > 1 and (len(sizes) > 1 or sizes == {1}):
        if 1 in sizes:
            hint = f"a GPU that is alone may have lost its links; {hint}"
        sort = "of one GPU each" if sizes == {1} else "of different sizes"
        message = (
            f"the {len(names)} GPUs{of_host(first)} are {link} islands {sort}: "
            f"{island_words(names, usual)}"
        )
        raise InputError(message, source, hint=hint)
    island_of = {gpu: island for island in usual for gpu in island}
    problems = []
    for host, (gpus, found) in hosts.items():
        across = [part for part in found if len({island_of[g] for g in part}) > 1]
        if across and len(gpus) == len(names):
            message = (
                f"hosts have different {link} islands: {island_words(names, usual)} "
                f'on "{first}", {island_words(gpus, found)} on "{host}"'
            )
            problems.append(Problem(message, source, hint=hint))
    refuse(problems[:1])
    return usual


def of_host(host: str) -> str:
    """``of "n1"``; empty for what holds of every host."""
    return f' of "{host}"' if host else ""


# GT/s of a lane: what coding leaves of it, how that is called, and the B/s with which
# NCCL counts.
_SPEEDS = {
    2.5: (8 / 10, "8b/10b", 15e8 / 8),
    5.0: (8 / 10, "8b/10b", 30e8 / 8),
    8.0: (128 / 130, "128b/130b", 60e8 / 8),
    16.0: (128 / 130, "128b/130b", 120e8 / 8),
    32.0: (128 / 130, "128b/130b", 240e8 / 8),
    64.0: (242 / 256, "flits", 480e8 / 8),
}
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)


@dataclass(frozen=True)
class Pcie:
    """What leads from an island to the others of its node."""

    bandwidth: float  # B/s: what one GPU can send, one way
    efficiency: float  # share of it that NCCL counts with
    # What its GPUs could send, over what the links that they share carry.
    oversubscription: float
    words: str  # the links, and where the figures are from


def between_islands(
    paths: Sequence[tuple[int, ...]],
    nics: Iterable[tuple[int, ...]],
    lanes: Mapping[int, tuple[float, int]],
    islands: Sequence[Sequence[int]],
) -> Pcie | None:
    """Figures of the links between islands; None without islands or told lanes.

    A link counts below the place where all GPUs meet, and is shared by those below it.
    What an island's way out carries limits its traffic with other nodes too; where a
    link has a NIC below it, that goes another way, so its GPUs are not taken to share.

    ``paths``: the elements above each GPU of a node, outermost first, and its own.
    ``nics``: the same for each NIC. ``lanes``: GT/s and lanes of the link above an
    element. ``islands``: GPUs of each.
    """
    if not islands:
        return None
    below = Counter(element for path in paths for element in path)
    above_nics = {element for path in nics for element in path}
    told = {e: at for e, at in lanes.items() if at[0] in _SPEEDS and at[1] in _WIDTHS}
    alone, shared = [], []
    for path in paths:
        links = [e for e in path if e in told and below[e] < len(paths)]
        if not links or path[-1] not in told:
            return None
        alone.append(min(links, key=lambda e: _bandwidth(*told[e])))
        shared.append(
            min(
                _bandwidth(*told[e]) / (1 if e in above_nics else below[e])
                for e in links
            )
        )
    slowest = min(alone, key=lambda e: _bandwidth(*told[e]))
    speed, width = told[slowest]
    bandwidth = _bandwidth(speed, width)
    together = min(sum(shared[gpu] for gpu in island) for island in islands)
    _, coding, lane = _SPEEDS[speed]
    counted = width * lane
    words = (
        f"PCIe {speed:g} GT/s x{width} with {coding}, {format_bandwidth(bandwidth)} "
        f"(PCI-SIG), of which NCCL counts with {format_bandwidth(counted)} (topo.cc)"
    )
    oversubscription = max(1.0, len(islands[0]) * bandwidth / together)
    return Pcie(bandwidth, counted / bandwidth, oversubscription, words)


def _bandwidth(speed: float, width: int) -> float:
    """B/s one way."""
    return speed * 1e9 / 8 * width * _SPEEDS[speed][0]
