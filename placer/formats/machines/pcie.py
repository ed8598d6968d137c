"""How fast GPUs of different islands reach each other over PCIe.

Every PCI device has a link to the one above it, of so many lanes. PCIe codes 8 bits as
10 up to 5 GT/s, 128 as 130 up to 32 GT/s; at 64 GT/s 14 of 256 bytes are check bytes
(PCI-SIG, PCI Express Base Specification). NCCL counts with less, 24 GB/s of 16 lanes at
16 GT/s (NVIDIA/nccl, ``src/graph/topo.cc``, ``kvDictPciGen``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placer.base.units import format_bandwidth

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

    Parameters
    ----------
    paths : sequence of tuple of int
        The elements above each GPU of a node, outermost first, and its own.
    nics : iterable of tuple of int
        The same for each NIC.
    lanes : mapping of int to tuple of (float, int)
        GT/s and lanes of the link above an element.
    islands : sequence of sequence of int
        GPUs of each island.
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
