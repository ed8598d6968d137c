"""What the links of NCCL's topology XML join.

A link leads to a GPU of the node, to the NVSwitch, which is one for all its GPUs, or to
a CPU (NVIDIA/nccl, ``src/graph/topo.cc``). One whose target has no class and is no GPU
of the file leads to an NVSwitch, which a virtual machine does not see (``xml.cc``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

from placer.document.tree import visible
from placer.errors import Problem, refuse
from placer.readers.islands import islands, several_islands
from placer.readers.nccl_parser import GPU_CLASSES

if TYPE_CHECKING:
    from placer.readers.nccl_parser import Device, Link, Parsed

_CPU_CLASS = "0x068001"


@dataclass
class Joined:
    """What the links say.

    Attributes
    ----------
    joins : bool or None
        True when they join all GPUs of a node, None when the file does not tell.
    kind : str
        ``NVLink`` or ``XGMI``.
    notes : list of str
        What was assumed and what was not counted.
    """

    joins: bool | None
    kind: str
    notes: list[str]


def joined(parsed: Parsed, source: str) -> Joined:
    """Whether links join the GPUs of every host of the file.

    Raises
    ------
    InputError
        If they join them to several islands, or a busid is that of two GPUs.
    """
    kind = " and ".join(sorted({link.kind for link in parsed.links})) or "NVLink"
    nodes: dict[str, _Node] = {}
    for gpu in parsed.gpus:
        nodes.setdefault(gpu.host, _Node()).add(gpu)
    for link in parsed.links:
        gpu = parsed.gpus[link.gpu]
        nodes[gpu.host].connect(gpu, link)
    problems = []
    for number, node in enumerate(nodes.values(), start=1):
        of = f" of host {number}" if len(nodes) > 1 else ""
        if node.twice and parsed.links:
            message = f"two GPUs{of} have the busid {visible(node.twice)[:40]}"
            problems.append(Problem(message, source))
        elif len(node.islands) > 1:
            names = [gpu.name for gpu in node.gpus]
            problems.append(several_islands(source, of, names, node.islands, kind))
    refuse(problems)
    joins = all(len(node.islands) == 1 and not node.untold for node in nodes.values())
    return Joined(joins or None, kind, list(_notes(list(nodes.values()), kind)))


class _Node:
    """The GPUs of a host, and the links between them."""

    def __init__(self) -> None:
        self.gpus: list[Device] = []
        self.twice = ""
        self.skipped: Counter[str] = Counter()
        self._own: set[int] = set()
        self._by_busid: dict[str, int] = {}
        self._pairs: set[tuple[int, int]] = set()
        self._on_switch: set[int] = set()

    def add(self, gpu: Device) -> None:
        """Add a GPU of the host."""
        busid = _busid(gpu.busid)
        if busid in self._by_busid:
            self.twice = gpu.busid or "no busid"
        self._by_busid[busid] = len(self.gpus)
        self.gpus.append(gpu)

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

    @cached_property
    def _parts(self) -> list[list[int]]:
        """Islands, with those of one GPU, by position in ``gpus``."""
        switch = len(self.gpus)
        links = [*self._pairs, *((gpu, switch) for gpu in self._on_switch)]
        found = islands(switch + 1, links)
        return [part for gpus in found if (part := [g for g in gpus if g < switch])]

    @cached_property
    def islands(self) -> list[list[int]]:
        """The islands; none when no link joins anything."""
        if not (self._pairs or self._on_switch):
            return []
        return [part for part in self._parts if part not in self.untold]

    @cached_property
    def untold(self) -> list[list[int]]:
        """GPUs alone whose links the file does not tell.

        It has no ``gpu`` element to hold them, or ends them where they start.
        """
        alone = [gpus for gpus in self._parts if len(gpus) == 1]
        return [
            [gpu]
            for (gpu,) in alone
            if gpu in self._own
            or not (self.gpus[gpu].described or gpu in self._on_switch)
        ]

    @property
    def over_others(self) -> int:
        """Pairs of an island that have no link of their own."""
        direct = {*self._pairs, *combinations(sorted(self._on_switch), 2)}
        return sum(math.comb(len(part), 2) for part in self._parts) - len(direct)


def _notes(nodes: Sequence[_Node], kind: str) -> Iterator[str]:
    """What was assumed, and what was not counted."""
    if not any(node.islands for node in nodes):
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
