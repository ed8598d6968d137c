"""NCCL's topology XML (``NCCL_TOPO_FILE``, ``NCCL_TOPO_DUMP_FILE``): one node.

``system > cpu > pci ... > gpu > nvlink`` and ``nic > net``; the first digits of a PCI
class tell GPUs (0x03) from NICs (0x02) (NVIDIA/nccl, ``src/graph/xml.cc`` and
``topo.cc``). Files that providers ship often have no ``gpu`` elements: then whether
there is NVLink is unknown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.parsers import expat

from placer.errors import InputError, Problem, refuse
from placer.readers.one_node import same_everywhere
from placer.topology.build import MAX_GPUS_OF_NODE

if TYPE_CHECKING:
    from placer.readers.findings import Findings

_GPU, _NIC = "0x03", "0x02"
_LINKS = ("nvlink", "xgmi")
_MAX_DEPTH = 64
_MAX_DEVICES = 512


@dataclass
class _Device:
    """A GPU or NIC: the elements above it, and the host that its CPU is of."""

    path: tuple[int, ...]
    host: str


@dataclass
class _Node:
    """What a file says."""

    gpus: list[_Device] = field(default_factory=list)
    nics: list[_Device] = field(default_factory=list)
    unknown: int = 0
    num_gpu_elements: int = 0
    links: int = 0
    own_links: int = 0


def read(text: str, source: str) -> Findings:
    """GPUs and NICs of a node, whether GPUs share NVLink, and the NICs near each GPU.

    It holds for every node that other sources list.

    Raises
    ------
    InputError
        If it is not XML or another kind of XML, has declarations, or shows no GPU.
    """
    node = _Parser(source).parse(text)
    if not node.gpus:
        message = "no GPU in it"
        if node.unknown:
            message = f"its {node.unknown} devices have no class: no GPU can be told"
        refuse([Problem(message, source, hint="NCCL_TOPO_DUMP_FILE writes a full one")])
    hosts = Counter(gpu.host for gpu in node.gpus)
    if len(set(hosts.values())) > 1 or max(hosts.values()) > MAX_GPUS_OF_NODE:
        listed = ", ".join(str(count) for count in hosts.values())[:80]
        refuse([Problem(f"its hosts have different numbers of GPUs: {listed}", source)])
    gpus = next(iter(hosts.values()))
    nvlink = bool(node.links) if node.num_gpu_elements else None
    nvlink = None if node.own_links and not node.links else nvlink
    links = {True: "NVLink", False: "no NVLink", None: "NVLink not told"}[nvlink]
    nics = len(node.nics) // len(hosts)
    notes = [f"GPUs: {gpus}, {links}, NICs: {nics}{_near(node)}"]
    if node.own_links:
        notes.append(f"{node.own_links} NVLinks from a GPU to itself, not counted")
    return same_everywhere(source, gpus, nvlink, notes)


def _near(node: _Node) -> str:
    """How many NICs are nearest to a GPU: below the closest element above it."""
    found: Counter[int] = Counter()
    for gpu in node.gpus:
        shared = [_common(gpu.path, nic.path) for nic in node.nics]
        found[shared.count(max(shared, default=0))] += 1
    if not node.nics:
        return ""
    listed = ", ".join(f"{count} on {n} GPUs" for count, n in sorted(found.items()))
    return f"; NICs nearest to a GPU: {listed}"


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    return shared


class _Parser:
    """Takes element after element."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._node = _Node()
        self._path: list[int] = []
        self._tags: list[str] = []
        self._buses: list[str] = []
        self._host = ""
        self._count = 0
        self._expat = expat.ParserCreate()
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.StartDoctypeDeclHandler = self._declaration
        self._expat.EntityDeclHandler = self._declaration

    def parse(self, text: str) -> _Node:
        """The devices of the file.

        Raises
        ------
        InputError
            If it is no topology of NCCL.
        """
        try:
            self._expat.Parse(text.lstrip().encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            raise self._error(f"not XML: {expat.ErrorString(error.code)}") from None
        return self._node

    def _error(self, message: str, hint: str = "") -> InputError:
        line = self._expat.CurrentLineNumber
        column = self._expat.CurrentColumnNumber + 1
        return InputError([Problem(message, self._source, line, column, hint=hint)])

    def _declaration(self, *_: object) -> None:
        raise self._error("a DOCTYPE or entity declaration is not allowed")

    def _start(self, tag: str, values: dict[str, str]) -> None:
        if not self._path:
            self._check_root(tag)
        self._count += 1
        self._path.append(self._count)
        self._tags.append(tag)
        self._buses.append(values.get("busid", self._buses[-1] if self._buses else ""))
        if len(self._path) > _MAX_DEPTH:
            raise self._error(f"deeper than {_MAX_DEPTH} elements")
        if tag == "cpu":
            self._host = values.get("host_hash", "")
        elif tag == "pci":
            self._pci(values.get("class", ""))
        elif tag == "gpu":
            self._node.num_gpu_elements += 1
        elif tag == "net" and not self._below_nic():
            self._add(self._node.nics)
        elif tag in _LINKS:
            own = values.get("target", "").lower() == self._buses[-1].lower()
            self._node.own_links += own
            self._node.links += not own

    def _end(self, _: str) -> None:
        self._path.pop()
        self._tags.pop()
        self._buses.pop()

    def _check_root(self, tag: str) -> None:
        if tag == "graphs":
            hint = "a topology is what NCCL_TOPO_DUMP_FILE writes"
            raise self._error("an NCCL graph (NCCL_GRAPH_FILE), not a topology", hint)
        if tag != "system":
            raise self._error(f'the root is "{tag[:40]}", not "system"')

    def _pci(self, kind: str) -> None:
        if kind.startswith(_GPU):
            self._add(self._node.gpus)
        elif kind.startswith(_NIC):
            self._add(self._node.nics)
            self._tags[-1] = "nic"
        elif not kind:
            self._node.unknown += 1

    def _below_nic(self) -> bool:
        """Whether this is the port of a NIC that is counted by its PCI class."""
        return self._tags[-3:-1] == ["nic", "nic"]

    def _add(self, devices: list[_Device]) -> None:
        devices.append(_Device(tuple(self._path), self._host))
        if len(devices) > _MAX_DEVICES:
            raise self._error(f"more than {_MAX_DEVICES} devices of one kind")
