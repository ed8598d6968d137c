"""GPUs, their links, and NICs, as elements of NCCL's topology XML give them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from placer.errors import InputError, Problem

GPU_CLASSES = ("0x03", "0x12")

_NIC_CLASS = "0x02"
_LINKS = {"nvlink": "NVLink", "xgmi": "XGMI"}
_NUMBER = re.compile(r"[0-9]{1,4}")
_MAX_DEPTH = 64
_MAX_DEVICES = 512
_MAX_LENGTH = 1 << 22


@dataclass
class Device:
    """A GPU or NIC.

    Attributes
    ----------
    path : tuple of int
        The elements above it, and its own.
    host : str
        Hash of the host that its CPU is of; empty where the file gives none.
    busid : str
    name : str
        How messages call it.
    described : bool
        Whether it has a ``gpu`` element, which holds the links.
    """

    path: tuple[int, ...]
    host: str
    busid: str
    name: str
    described: bool = False


@dataclass(frozen=True)
class Link:
    """An NVLink or XGMI element: the position of its GPU, and where it leads."""

    gpu: int
    target: str
    target_class: str
    kind: str


@dataclass
class Parsed:
    """What a file holds; ``unknown`` counts devices without a class."""

    gpus: list[Device] = field(default_factory=list)
    nics: list[Device] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    unknown: int = 0


def parse(text: str, source: str) -> Parsed:
    """The devices and links of the file.

    Raises
    ------
    InputError
        If it is no topology of NCCL, or larger than that of any node.
    """
    if len(text) > _MAX_LENGTH:
        message = f"{len(text)} characters, a node has at most {_MAX_LENGTH}"
        raise InputError([Problem(message, source)])
    return _Parser(source).parse(text)


@dataclass
class _Element:
    """An open element; ``gpu`` is the position of the GPU that it is, -1 for none."""

    tag: str
    number: int
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
        element = _Element(tag, self._count, values.get("busid", ""))
        self._open.append(element)
        if len(self._open) > _MAX_DEPTH:
            raise self._error(f"deeper than {_MAX_DEPTH} elements")
        if tag == "cpu":
            self._host = values.get("host_hash", "")
        elif tag == "pci":
            self._pci(element, values.get("class", ""))
        elif tag == "gpu" and above and above.tag == "pci":
            self._gpu(above, values.get("dev", ""))
        elif tag == "net" and not self._below_nic():
            self._add(self._parsed.nics, element)
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

    def _pci(self, element: _Element, kind: str) -> None:
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
        if _NUMBER.fullmatch(dev):
            device.name = f"GPU{dev}"

    def _link(self, gpu: int, tag: str, values: dict[str, str]) -> None:
        """A link of the GPU; one without lanes is none."""
        if gpu < 0 or values.get("count") == "0":
            return
        target, kind = values.get("target", ""), values.get("tclass", "")
        self._parsed.links.append(Link(gpu, target, kind, _LINKS[tag]))

    def _below_nic(self) -> bool:
        """Whether this is the port of a NIC that is counted by its PCI class."""
        return len(self._open) > 2 and self._open[-3].is_nic

    def _add(self, devices: list[Device], element: _Element) -> int:
        """Position of the new device."""
        path = tuple(opened.number for opened in self._open)
        name = f"GPU{len(devices)}"
        devices.append(Device(path, self._host, element.busid, name))
        if len(devices) > _MAX_DEVICES:
            raise self._error(f"more than {_MAX_DEVICES} devices of one kind")
        return len(devices) - 1
