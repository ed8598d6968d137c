"""The GPUs of this node, as NVML, ``nvidia-smi -q -x`` or ``amd-smi`` tell them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from placer.formats.machines.fabric_domain import fabric_domain
from placer.injob.bounded import LateError, output_of, within

# A driver that has to wake its GPUs up takes seconds; one that hangs takes for ever.
LIMIT_S = 5.0
_STATES = ("Not Supported", "Not Started", "In Progress", "Completed")  # nvml.h
_MIB = 1 << 20


@dataclass(frozen=True)
class Gpu:
    """One GPU."""

    name: str
    memory: int | None = None  # MiB
    domain: str = ""  # NVLink domain of several nodes; empty where it is in none
    bus: str = ""  # PCI address, empty where it is not told


@dataclass(frozen=True)
class Gpus:
    """The GPUs of a node, and what is wrong with them."""

    listed: list[Gpu] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What most of them are called."""
        return next(
            (n for n, _ in Counter(g.name for g in self.listed).most_common()), ""
        )

    @property
    def memory(self) -> int | None:
        """The least that one of them has, MiB."""
        return min((g.memory for g in self.listed if g.memory), default=None)

    @property
    def domain(self) -> str | None:
        """The NVLink domain that all of them share."""
        domains = {gpu.domain for gpu in self.listed}
        return (domains.pop() or None) if len(domains) == 1 else None


def find_gpus() -> Gpus:
    """The GPUs of this node, by the first of the ways that tells some."""
    problems: list[str] = []
    for name, ask in _WAYS.items():
        try:
            found = ask()
        except LateError as error:
            problems.append(f"{name}: {error}")
        except Exception as error:  # NVML's errors derive from nothing else
            problems.append(f"{name}: {_shown(error)}")
        else:
            if found is not None and (found.listed or found.problems):
                return _checked(found)
    return Gpus([], problems or ["no GPU: there is no NVML, nvidia-smi or amd-smi"])


def _checked(found: Gpus) -> Gpus:
    """What was found, with GPUs that differ named as a problem."""
    problems = [*found.problems]
    for what, values in (
        ("name", {gpu.name for gpu in found.listed}),
        ("NVLink domain", {gpu.domain or "none" for gpu in found.listed}),
    ):
        if len(values) > 1:
            problems.append(f"GPUs differ in their {what}: {', '.join(sorted(values))}")
    return Gpus(found.listed, problems)


def _nvml() -> Gpus | None:
    """By nvidia-ml-py; None where it is not installed or has no driver to ask."""
    try:
        import pynvml
    except ImportError:
        return None
    return within(LIMIT_S, lambda: _ask_nvml(pynvml))


def _ask_nvml(nvml: Any) -> Gpus | None:
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None  # nvidia-smi says what is wrong
    listed, problems = [], []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            name = nvml.nvmlDeviceGetName(gpu)
            memory = nvml.nvmlDeviceGetMemoryInfo(gpu).total // _MIB
            bus = nvml.nvmlDeviceGetPciInfo(gpu).busId
            listed.append(Gpu(_text(name), memory, _nvml_domain(nvml, gpu), _text(bus)))
        except nvml.NVMLError as error:
            problems.append(f"GPU {index}: {_shown(error)}")
    return Gpus(listed, problems)


def _nvml_domain(nvml: Any, gpu: Any) -> str:
    from ctypes import addressof, byref, string_at

    try:
        fabric = nvml.c_nvmlGpuFabricInfo_t()
        nvml.nvmlDeviceGetGpuFabricInfo(gpu, byref(fabric))
    except (AttributeError, nvml.NVMLError):
        return ""  # an older driver or card
    # As a field it would end at its first zero byte.
    start = addressof(fabric) + type(fabric).clusterUuid.offset
    digits = string_at(start, 16).hex()
    uuid = "-".join(
        (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    )
    state = _STATES[fabric.state] if fabric.state < len(_STATES) else "unknown"
    return fabric_domain(state, uuid, str(fabric.cliqueId))


def read_nvidia_smi(text: str) -> Gpus:
    """GPUs of what ``nvidia-smi -q -x`` prints.

    Raises `ValueError` if it is something else.
    """
    from xml.etree import ElementTree

    if "<!ENTITY" in text:
        raise ValueError("its output declares entities")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 (no entities)
    except ElementTree.ParseError:
        raise ValueError("its output is no XML") from None
    if root.tag != "nvidia_smi_log":
        raise ValueError("its output is no nvidia_smi_log")
    listed = []
    for gpu in root.iter("gpu"):
        at = gpu.findtext
        memory = (at("fb_memory_usage/total") or "").partition(" ")[0]
        fabric = (
            at(f"fabric/{key}", "") for key in ("state", "clusterUuid", "cliqueId")
        )
        listed.append(
            Gpu(
                (at("product_name") or "").strip(),
                int(memory) if memory.isdecimal() else None,
                fabric_domain(*(text.strip() for text in fabric)),
                gpu.get("id", ""),
            )
        )
    attached = (root.findtext("attached_gpus") or "").strip()
    problems = []
    if attached.isdecimal() and int(attached) != len(listed):
        problems.append(f"{attached} GPUs attached, {len(listed)} listed")
    if not listed:
        problems.append("no GPU: nvidia-smi lists none")
    return Gpus(listed, problems)


def read_amd_smi(text: str) -> Gpus:
    """GPUs of what ``amd-smi static --asic --bus --vram --json`` prints.

    Raises `ValueError` if it is something else.
    """
    try:
        data = json.loads(text)
    except ValueError:
        raise ValueError("its output is no JSON") from None
    rows = data.get("gpu_data") if isinstance(data, dict) else data  # since ROCm 7
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("its output is no list of GPUs")
    listed = []
    for row in rows:
        size = _inside(row, "vram", "size", "value")
        name = _inside(row, "asic", "market_name")
        bus = _inside(row, "bus", "bdf")
        listed.append(
            Gpu(
                name if isinstance(name, str) else "",
                size if type(size) is int else None,
                bus=bus if isinstance(bus, str) else "",
            )
        )
    return Gpus(listed, [] if listed else ["no GPU: amd-smi lists none"])


def _inside(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _printed(read: Callable[[str], Gpus], command: tuple[str, ...]) -> Gpus | None:
    """The GPUs of what a command prints; None where it is not installed."""
    if shutil.which(command[0]) is None:
        return None
    status, text = output_of(command, LIMIT_S)
    if status:
        line = next((line.strip() for line in text.splitlines() if line.strip()), "")
        raise ValueError(f"ended with status {status}" + (f": {line}" if line else ""))
    return read(text)


_AMD = ("amd-smi", "static", "--asic", "--bus", "--vram", "--json")
_WAYS: dict[str, Callable[[], Gpus | None]] = {
    "NVML": _nvml,
    "nvidia-smi": partial(_printed, read_nvidia_smi, ("nvidia-smi", "-q", "-x")),
    "amd-smi": partial(_printed, read_amd_smi, _AMD),
}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _shown(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__
