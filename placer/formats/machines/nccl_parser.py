"""GPUs, their links, and NICs, as elements of NCCL's topology XML give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from xml.parsers import expat

from placer.base.errors import InputError, Problem

GPU_CLASSES = ("0x03", "0x12")

_NIC_CLASS = "0x02"
_LINKS = {"nvlink": "NVLink", "xgmi": "XGMI"}
_NUMBER = re.compile(r"[0-9]{1,4}")
_PORT = re.compile(r"[!-~]{1,64}")
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s(?: PCIe)?")
_MAX_DEPTH = 64
_MAX_DEVICES = 512
_MAX_LENGTH = 1 << 22


@dataclass
class Device:
    """A GPU or NIC."""

    path: tuple[int, ...]  # the elements above it, and its own
    host: str  # hash of the host that its CPU is of; empty where the file gives none
    busid: str
    name: str  # how messages call it
    numa: int | None  # NUMA node of its CPU
    described: bool = False  # whether it has a ``gpu`` element, which holds the links
    # What the file calls the GPU: where it comes in a launcher's count.
    number: int | None = None


@dataclass(frozen=True)
class Link:
    """An NVLink or XGMI element: the position of its GPU, and where it leads."""

    gpu: int
    target: str
    target_class: str
    kind: str


@dataclass
class Parsed:
    """What a file holds."""

    gpus: list[Device] = field(default_factory=list)
    nics: list[Device] = field(default_factory=list)
    # Ports of NICs that have a name, which they are called by.
    ports: list[Device] = field(default_factory=list)
    # Transfers a second of one lane (GT/s), and lanes, that lead from a PCI element to
    # the one above it, where the file tells both.
    lanes: dict[int, tuple[float, int]] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    unknown: int = 0  # devices without a class

    @cached_property
    def hosts(self) -> dict[str, list[Device]]:
        """GPUs of every host as a launcher counts them.

        By their numbers where each has its own, else as they stand in the file.
        """
        hosts: dict[str, list[Device]] = {}
        for gpu in self.gpus:
            hosts.setdefault(gpu.host, []).append(gpu)
        return {
            host: sorted(gpus, key=lambda gpu: gpu.number or 0)
            if are_numbered(gpus)
            else gpus
            for host, gpus in hosts.items()
        }


def are_numbered(gpus: Sequence[Device]) -> bool:
    """Whether every GPU of a host has a number of its own."""
    numbers = {gpu.number for gpu in gpus}
    return None not in numbers and len(numbers) == len(gpus)


def parse(text: str, source: str) -> Parsed:
    """The devices and links of the file."""
    if len(text) > _MAX_LENGTH:
        message = f"{len(text)} characters, a node has at most {_MAX_LENGTH}"
        raise InputError(message, source)
    return _Parser(source).parse(text)


@dataclass
class _Element:
    """An open element; ``gpu`` is the position of the GPU that it is, -1 for none."""

    tag: str
    path: tuple[int, ...]  # numbers of the elements above it, and its own
    busid: str
    gpu: int = -1
    is_nic: bool = False


class _Parser:
    """Takes element after element."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._parsed = Parsed()
        self._open: list[_Element] = []
        self._host = ""
        self._numa: int | None = None
        self._count = 0
        self._expat = expat.ParserCreate()
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.StartDoctypeDeclHandler = self._declaration
        self._expat.EntityDeclHandler = self._declaration

    def parse(self, text: str) -> Parsed:
        try:
            self._expat.Parse(text.lstrip().encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            raise self._error(f"not XML: {expat.ErrorString(error.code)}") from None
        return self._parsed

    def _error(self, message: str, hint: str = "") -> InputError:
        line = self._expat.CurrentLineNumber
        column = self._expat.CurrentColumnNumber + 1
        return InputError([Problem(message, self._source, line, column, hint=hint)])

    def _declaration(self, *_: object) -> None:
        raise self._error("a DOCTYPE or entity declaration is not allowed")

    def _start(self, tag: str, values: dict[str, str]) -> None:
        if not self._open:
            self._check_root(tag)
        self._count += 1
        above = self._open[-1] if self._open else None
        path = (*(above.path if above else ()), self._count)
        element = _Element(tag, path, values.get("busid", ""))
        self._open.append(element)
        if len(self._open) > _MAX_DEPTH:
            raise self._error(f"deeper than {_MAX_DEPTH} elements")
        if tag == "cpu":
            self._host = values.get("host_hash", "")
            self._numa = _number(values.get("numaid", ""))
        elif tag == "pci":
            self._pci(element, values)
        elif tag == "gpu" and above and above.tag == "pci":
            self._gpu(above, values.get("dev", ""))
        elif tag == "net":
            self._net(element, values.get("name", ""))
        elif tag in _LINKS and above and above.tag == "gpu":
            self._link(self._open[-3].gpu, tag, values)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _check_root(self, tag: str) -> None:
        if tag == "graphs":
            hint = "a topology is what NCCL_TOPO_DUMP_FILE writes"
            raise self._error("an NCCL graph (NCCL_GRAPH_FILE), not a topology", hint)
        if tag != "system":
            raise self._error(f'the root is "{tag[:40]}", not "system"')

    def _pci(self, element: _Element, values: dict[str, str]) -> None:
        kind = values.get("class", "")
        speed = _SPEED.fullmatch(values.get("link_speed", ""))
        width = _number(values.get("link_width", ""))
        if speed and width:
            self._parsed.lanes[element.path[-1]] = float(speed[1]), width
        if kind.startswith(GPU_CLASSES):
            element.gpu = self._add(self._parsed.gpus, element)
        elif kind.startswith(_NIC_CLASS):
            self._add(self._parsed.nics, element)
            element.is_nic = True
        elif not kind:
            self._parsed.unknown += 1

    def _gpu(self, pci: _Element, dev: str) -> None:
        """The device is a GPU, whatever its class."""
        if pci.gpu < 0:
            pci.gpu = self._add(self._parsed.gpus, pci)
        device = self._parsed.gpus[pci.gpu]
        device.described = True
        device.number = _number(dev)
        if device.number is not None:
            device.name = f"GPU{device.number}"

    def _net(self, element: _Element, name: str) -> None:
        """A port; it is a NIC where that is not counted by its PCI class."""
        if len(self._open) < 3 or not self._open[-3].is_nic:
            self._add(self._parsed.nics, element)
        if _PORT.fullmatch(name):
            port = self._add(self._parsed.ports, element)
            self._parsed.ports[port].name = name

    def _link(self, gpu: int, tag: str, values: dict[str, str]) -> None:
        """A link of the GPU; one without lanes is none."""
        if gpu < 0 or values.get("count") == "0":
            return
        target, kind = values.get("target", ""), values.get("tclass", "")
        self._parsed.links.append(Link(gpu, target, kind, _LINKS[tag]))

    def _add(self, devices: list[Device], element: _Element) -> int:
        """Position of the new device."""
        name, own = f"GPU{len(devices)}", element
        devices.append(Device(own.path, self._host, own.busid, name, self._numa))
        if len(devices) > _MAX_DEVICES:
            raise self._error(f"more than {_MAX_DEVICES} devices of one kind")
        return len(devices) - 1


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
