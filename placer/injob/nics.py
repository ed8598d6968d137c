"""The NICs of this node for RDMA, and the nearest one of each GPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_INFINIBAND = Path("/sys/class/infiniband")
_PCI = Path("/sys/bus/pci/devices")


def find_nics() -> dict[str, str]:
    """Where each of them hangs in the tree of PCI devices, by its name."""
    found = {}
    with suppress(OSError):
        for device in sorted(_INFINIBAND.iterdir()):
            found[device.name] = str((device / "device").resolve())
    return found


def rails(nics: dict[str, str], buses: Sequence[str]) -> list[str]:
    """The nearest NIC of each GPU, each as often as another; empty where unknown.

    Parameters
    ----------
    nics : dict of str to str
        As `find_nics` returns them.
    buses : sequence of str
        PCI addresses of the GPUs.
    """
    paths = [_path(bus) for bus in buses]
    if not (nics and paths and all(paths)):
        return []
    used = dict.fromkeys(nics, 0)
    chosen = []
    for path in paths:
        best = max(nics, key=lambda nic: (_shared(path, nics[nic]), -used[nic]))
        used[best] += 1
        chosen.append(best)
    return chosen


def _path(bus: str) -> str:
    """Path of a device; nvidia-smi writes eight digits of its PCI domain."""
    domain, _, rest = bus.lower().partition(":")
    device = _PCI / f"{domain[-4:]}:{rest}"
    return str(device.resolve()) if device.exists() else ""


def _shared(one: str, other: str) -> int:
    return len(os.path.commonpath([one, other]).split("/"))
