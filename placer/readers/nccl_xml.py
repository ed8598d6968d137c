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

from placer.errors import Problem, refuse
from placer.readers.nccl_links import joined
from placer.readers.nccl_parser import parse
from placer.readers.one_node import same_everywhere
from placer.topology.build import MAX_GPUS_OF_NODE

if TYPE_CHECKING:
    from placer.readers.findings import Findings
    from placer.readers.nccl_parser import Parsed


def read(text: str, source: str) -> Findings:
    """GPUs and NICs of a node, whether links join the GPUs, and the NICs near each.

    It holds for every node that other sources list.

    Raises
    ------
    InputError
        If it is not XML or another kind of XML, has declarations, shows no GPU, or its
        links join the GPUs to several islands.
    """
    parsed = parse(text, source)
    if not parsed.gpus:
        message = "no GPU in it"
        if parsed.unknown:
            message = f"its {parsed.unknown} devices have no class: no GPU can be told"
        refuse([Problem(message, source, hint="NCCL_TOPO_DUMP_FILE writes a full one")])
    hosts = Counter(gpu.host for gpu in parsed.gpus)
    if len(set(hosts.values())) > 1 or max(hosts.values()) > MAX_GPUS_OF_NODE:
        listed = ", ".join(str(count) for count in hosts.values())[:80]
        refuse([Problem(f"its hosts have different numbers of GPUs: {listed}", source)])
    gpus = next(iter(hosts.values()))
    links = joined(parsed, source)
    hosts_words = f"hosts: {len(hosts)}, each with " if len(hosts) > 1 else ""
    words = links.kind if links.joins else f"{links.kind} not told"
    notes = [
        f"{hosts_words}GPUs: {gpus}, {words}, NICs: {_nics(parsed, list(hosts))}"
        f"{_near(parsed)}",
        *links.notes,
    ]
    return same_everywhere(source, gpus, links.joins, notes)


def _nics(parsed: Parsed, hosts: list[str]) -> str:
    """NICs of a host, or the fewest and the most where hosts differ."""
    found = Counter(nic.host for nic in parsed.nics)
    counts = [found[host] for host in hosts]
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
