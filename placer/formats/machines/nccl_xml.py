"""NCCL's topology XML (``NCCL_TOPO_FILE``, ``NCCL_TOPO_DUMP_FILE``): one node.

``system > cpu > pci ... > gpu > nvlink`` and ``nic > net``. A PCI device with a ``gpu``
element is a GPU; without one its class tells (0x03, or 0x12 on AMD's accelerators), as
0x02 tells a NIC (NVIDIA/nccl and ROCm/rccl, ``src/graph/xml.cc`` and ``topo.cc``).

NCCL writes the links that it finds up, and nothing where there are none or where it
could not ask: a file without links does not tell whether there are any. A link leads to
a GPU of the node, to the NVSwitch, which is one for all its GPUs, or to a CPU
(``topo.cc``). One whose target has no class and is no GPU of the file leads to an
NVSwitch, which a virtual machine does not see (``xml.cc``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from placer.base.errors import InputError
from placer.documents.scalars import visible
from placer.formats.machines.findings import Findings, same_everywhere
from placer.formats.machines.islands import (
    Parts,
    between_islands,
    island_words,
    islands,
    of_host,
    usual_islands,
)
from placer.formats.machines.nccl_parser import (
    GPU_CLASSES,
    Device,
    Link,
    Parsed,
    are_numbered,
    parse,
)
from placer.topology.affinity import MAX_NUMA, Affinity, gpu_words
from placer.topology.model import MAX_GPUS_OF_NODE

_CPU_CLASS = "0x068001"


def _linked(parsed: Parsed, source: str) -> dict[str, _Node]:
    """The GPUs of every host with their links, by what messages call it."""
    nodes = {host: _Node(gpus) for host, gpus in parsed.hosts.items()}
    for link in parsed.links:
        gpu = parsed.gpus[link.gpu]
        nodes[gpu.host].connect(gpu, link)
    names = [f"host {n}" for n in range(1, len(nodes) + 1)] if len(nodes) > 1 else [""]
    hosts = dict(zip(names, nodes.values(), strict=True))
    for host, node in hosts.items():
        if node.twice and parsed.links:
            message = f"two GPUs{of_host(host)} have the busid {node.twice[:40]}"
            raise InputError(visible(message), source)
    return hosts


def _islands(hosts: Mapping[str, _Node], source: str, kind: str) -> Parts:
    """The islands of every host; none where links join no GPUs, or all of them."""
    linked = [node for node in hosts.values() if node.linked]
    if all(len(node.parts) - len(node.untold) < 2 for node in linked):
        return ()
    gpus = {
        host: ([gpu.name for gpu in node.gpus], node.parts)
        for host, node in hosts.items()
    }
    usual = usual_islands(source, gpus, kind)
    others = [host for host, (_, parts) in gpus.items() if parts != usual]
    if others:
        names, parts = gpus[others[0]]
        message = (
            f"the {len(names)} GPUs{of_host(others[0])} are other {kind} islands than "
            f"those of other hosts: {island_words(names, parts)}"
        )
        raise InputError(message, source, hint="give the file of one sound host")
    return usual


class _Node:
    """The GPUs of a host, and the links between them."""

    def __init__(self, gpus: Sequence[Device]) -> None:
        self.gpus = gpus
        self.skipped: Counter[str] = Counter()
        self._own: set[int] = set()
        self._by_busid = {_busid(gpu.busid): i for i, gpu in enumerate(gpus)}
        self._pairs: set[tuple[int, int]] = set()
        self._on_switch: set[int] = set()

    @property
    def twice(self) -> str:
        """A busid that two GPUs have; empty where each has its own."""
        counts = Counter(_busid(gpu.busid) for gpu in self.gpus)
        again = (gpu.busid for gpu in self.gpus if counts[_busid(gpu.busid)] > 1)
        return next((busid or "no busid" for busid in again), "")

    def connect(self, gpu: Device, link: Link) -> None:
        """Add a link of ``gpu``, once all GPUs are known."""
        a, target = self._by_busid[_busid(gpu.busid)], _busid(link.target)
        b = self._by_busid.get(target)
        if a == b:
            self._own.add(a)
            self.skipped["from a GPU to itself"] += 1
        elif b is not None:
            self._pairs.add((min(a, b), max(a, b)))
        elif link.target_class.startswith(GPU_CLASSES):
            self.skipped["to GPUs that are not in the file"] += 1
        elif link.target_class == _CPU_CLASS:
            self.skipped["to a CPU"] += 1
        else:
            self._on_switch.add(a)

    @property
    def linked(self) -> bool:
        """Whether a link joins any GPUs."""
        return bool(self._pairs or self._on_switch)

    @cached_property
    def parts(self) -> Parts:
        """Islands, with GPUs that are alone, by position in ``gpus``."""
        switch = len(self.gpus)
        links = [*self._pairs, *((gpu, switch) for gpu in self._on_switch)]
        found = islands(switch + 1, links)
        without = (tuple(gpu for gpu in gpus if gpu < switch) for gpus in found)
        return tuple(part for part in without if part)

    @cached_property
    def untold(self) -> list[int]:
        """GPUs alone whose links the file does not tell.

        It has no ``gpu`` element to hold them, or ends them where they start.
        """
        alone = [part[0] for part in self.parts if len(part) == 1]
        return [
            gpu
            for gpu in alone
            if gpu in self._own
            or not (self.gpus[gpu].described or gpu in self._on_switch)
        ]

    @property
    def over_others(self) -> int:
        """Pairs of an island that have no link of their own."""
        direct = {*self._pairs, *combinations(sorted(self._on_switch), 2)}
        return sum(math.comb(len(part), 2) for part in self.parts) - len(direct)


def _notes(nodes: Sequence[_Node], kind: str) -> Iterator[str]:
    """What was assumed, and what was not counted."""
    if not any(node.linked for node in nodes):
        yield (
            "it shows no link between GPUs, which does not say that there is none: "
            "they share NVLink if those of the hardware do"
        )
    elif untold := sum(len(node.untold) for node in nodes):
        yield f"GPUs whose links it does not tell: {untold}"
    if over := sum(node.over_others for node in nodes):
        yield (
            f"pairs of GPUs without {kind} of their own: {over}, taken for one island, "
            "since links lead from one to the other over further GPUs"
        )
    skipped: Counter[str] = Counter()
    for node in nodes:
        skipped += node.skipped
    for where, count in skipped.items():
        yield f"links {where}, not counted: {count}"


def _busid(text: str) -> str:
    """A busid without marks and leading zeros, as NCCL compares them."""
    return text.lower().replace(":", "").replace(".", "").lstrip("0")


def read(text: str, source: str) -> Findings:
    """GPUs of a node, their islands, and the NUMA nodes and NICs near each.

    It holds for every node that other sources list.
    """
    parsed = parse(text, source)
    if not parsed.gpus:
        message = "no GPU in it"
        if parsed.unknown:
            message = f"its {parsed.unknown} devices have no class: no GPU can be told"
        raise InputError(message, source, hint="NCCL_TOPO_DUMP_FILE writes a full one")
    counts = [len(gpus) for gpus in parsed.hosts.values()]
    if len(set(counts)) > 1 or max(counts) > MAX_GPUS_OF_NODE:
        listed = ", ".join(map(str, counts))[:80]
        raise InputError(f"its hosts have different numbers of GPUs: {listed}", source)
    kind = " and ".join(sorted({link.kind for link in parsed.links})) or "NVLink"
    hosts = _linked(parsed, source)
    found = _islands(hosts, source, kind)
    joins = all(node.linked and not node.untold for node in hosts.values())
    hosts_words = f"hosts: {len(counts)}, each with " if len(counts) > 1 else ""
    words = kind if joins else f"{kind} not told"
    if found:
        words = f"{len(found)} {words} islands: {'; '.join(map(gpu_words, found))}"
    words = f"{hosts_words}GPUs: {counts[0]}, {words}, NICs: {_nics(parsed)}"
    notes = [words + _near(parsed), *_notes(list(hosts.values()), kind)]
    if found and not all(map(are_numbered, parsed.hosts.values())):
        notes.append("its GPUs have no numbers: counted as they stand in the file")
    gpus = next(iter(parsed.hosts.values()))
    paths = [gpu.path for gpu in gpus]
    nics = [nic.path for nic in parsed.nics if nic.host == gpus[0].host]
    findings = Findings(
        source,
        notes=notes,
        nvlink=joins or None,  # it says where links are, not that there are none
        islands=found,
        pcie=between_islands(paths, nics, parsed.lanes, found),
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
