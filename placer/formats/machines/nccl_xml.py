"""NCCL's topology XML (``NCCL_TOPO_FILE``, ``NCCL_TOPO_DUMP_FILE``): one node.

``system > cpu > pci ... > gpu > nvlink`` and ``nic > net``. A PCI device with a ``gpu``
element is a GPU; without one its class tells (0x03, or 0x12 on AMD's accelerators), as
0x02 tells a NIC (NVIDIA/nccl and ROCm/rccl, ``src/graph/xml.cc`` and ``topo.cc``).

NCCL writes the links that it finds up, and nothing where there are none or where it
could not ask: a file without links does not tell whether there are any.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from placer.base.errors import Problem, refuse
from placer.formats.machines.findings import Findings, same_everywhere
from placer.formats.machines.nccl_links import joined
from placer.formats.machines.nccl_parser import parse
from placer.formats.machines.pcie import between_islands
from placer.topology.affinity import MAX_NUMA, Affinity, gpu_words
from placer.topology.model import MAX_GPUS_OF_NODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.formats.machines.nccl_parser import Device, Parsed


def read(text: str, source: str) -> Findings:
    """GPUs of a node, their islands, and the NUMA nodes and NICs near each.

    It holds for every node that other sources list.
    """
    parsed = parse(text, source)
    if not parsed.gpus:
        message = "no GPU in it"
        if parsed.unknown:
            message = f"its {parsed.unknown} devices have no class: no GPU can be told"
        refuse([Problem(message, source, hint="NCCL_TOPO_DUMP_FILE writes a full one")])
    counts = [len(gpus) for gpus in parsed.hosts.values()]
    if len(set(counts)) > 1 or max(counts) > MAX_GPUS_OF_NODE:
        listed = ", ".join(map(str, counts))[:80]
        refuse([Problem(f"its hosts have different numbers of GPUs: {listed}", source)])
    links = joined(parsed, source)
    hosts_words = f"hosts: {len(counts)}, each with " if len(counts) > 1 else ""
    words = links.kind if links.joins else f"{links.kind} not told"
    if links.islands:
        listed = "; ".join(map(gpu_words, links.islands))
        words = f"{len(links.islands)} {words} islands: {listed}"
    notes = [
        f"{hosts_words}GPUs: {counts[0]}, {words}, NICs: {_nics(parsed)}"
        f"{_near(parsed)}",
        *links.notes,
    ]
    gpus = next(iter(parsed.hosts.values()))
    paths = [gpu.path for gpu in gpus]
    nics = [nic.path for nic in parsed.nics if nic.host == gpus[0].host]
    findings = Findings(
        source,
        notes=notes,
        nvlink=links.joins,
        islands=links.islands,
        pcie=between_islands(paths, nics, parsed.lanes, links.islands),
        affinity=_affinity(parsed),
    )
    return same_everywhere(findings, counts[0])


def _affinity(parsed: Parsed) -> Affinity:
    """NUMA node and nearest NICs of each GPU, where they are the same on every host."""
    numa = {_numa_nodes(gpus) for gpus in parsed.hosts.values()}
    nics = {_nearest(gpus, parsed.ports) for gpus in parsed.hosts.values()}
    return Affinity(
        numa.pop() if len(numa) == 1 else (), nics.pop() if len(nics) == 1 else ()
    )


def _numa_nodes(gpus: Sequence[Device]) -> tuple[int, ...]:
    """NUMA node of each GPU; none where one is not told."""
    numa = tuple(
        gpu.numa for gpu in gpus if gpu.numa is not None and gpu.numa <= MAX_NUMA
    )
    return numa if len(numa) == len(gpus) else ()


def _nearest(
    gpus: Sequence[Device], ports: Sequence[Device]
) -> tuple[tuple[str, ...], ...]:
    """Names of the ports below the closest element above each GPU; none without any."""
    below: dict[int, dict[str, None]] = {}
    for port in ports:
        for element in port.path if port.host == gpus[0].host else ():
            below.setdefault(element, {})[port.name] = None
    if not below:
        return ()
    return tuple(
        tuple(
            next(below[element] for element in reversed(gpu.path) if element in below)
        )
        for gpu in gpus
    )


def _nics(parsed: Parsed) -> str:
    """NICs of a host, or the fewest and the most where hosts differ."""
    found = Counter(nic.host for nic in parsed.nics)
    counts = [found[host] for host in parsed.hosts]
    fewest, most = min(counts), max(counts)
    return str(most) if fewest == most else f"{fewest} to {most}"


def _near(parsed: Parsed) -> str:
    """How many NICs are nearest to a GPU: below the closest element above it."""
    if not parsed.nics:
        return ""
    below = Counter((nic.host, element) for nic in parsed.nics for element in nic.path)
    found: Counter[int] = Counter()
    for gpu in parsed.gpus:
        around = (below[gpu.host, element] for element in reversed(gpu.path))
        found[next(filter(None, around), 0)] += 1
    listed = ", ".join(f"{count} on {n} GPUs" for count, n in sorted(found.items()))
    return f"; NICs nearest to a GPU: {listed}"
