"""Which hosts a GPU comes in, by the names that vendors and schedulers give it.

`nvidia-smi` says ``NVIDIA H100 80GB HBM3``, the label ``nvidia.com/gpu.product`` the
same with hyphens (NVIDIA/k8s-device-plugin, gpu-feature-discovery), a Gres of Slurm
``h100`` or ``nvidia_h100_80gb_hbm3``, a cloud's instance type ``BM.GPU.H100.8``, or on
AWS ``p5.48xlarge`` (Amazon EC2, "Accelerated computing instances").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from placer.base.errors import InputError
from placer.base.naming import named
from placer.documents import closest
from placer.documents.keys import BANDWIDTH, POWER, SIZE, TEXT, key, map_of, number
from placer.documents.presets import preset_names


@dataclass(frozen=True)
class Gpu:
    """One GPU; what is not known is empty."""

    all_unsaid = True

    name: str = key(TEXT, "for example `H100`", "")
    memory: float = key(
        SIZE,
        "what a process can use, as `nvidia-smi` shows it: `80GB`, `81559MiB`. A "
        "job that needs more is said not to fit",
        0.0,
        absent="unknown",
    )
    memory_bandwidth: float = key(
        BANDWIDTH,
        "of its memory, by the data sheet: `3.35TB/s`. The cost of mixtures rests "
        "on it",
        0.0,
        absent="unknown",
    )
    peak: Mapping[str, float] = key(
        map_of(number()), "dense peak, such as `{bf16: 9.89e14, fp8: 1.979e15}`", dict
    )
    power: float = key(
        POWER,
        "what one GPU in use draws, its share of the host with it",
        0.0,
        absent="unknown",
    )


# The preset of a machine of the usual hosts of each GPU.
HOSTS = {
    "A100": "dgx-a100-20x8",
    "H100": "dgx-h100-32x8",
    "H200": "hgx-h200-32x8",
    "B200": "hgx-b200-32x8",
    "B300": "hgx-b300-64x8",
    "GB200": "gb200-nvl72-8x72",
    "GB300": "gb300-nvl72-8x72",
    "MI300X": "mi300x-16x8",
    "MI455X": "mi455x-helios-8x72",
}
_AWS = {"p4d": "A100", "p4de": "A100", "p5": "H100", "p5e": "H200", "p5en": "H200"}
# The most common hosts: of 8 GPUs, and of 4 in racks.
USUAL, USUAL_IN_RACKS = "H100", "GB200"
TRAY_GPUS = 4
_NAME = re.compile(
    rf"(?<![A-WYZa-wyz])(?:{'|'.join(HOSTS)})(?![0-9])(?!.*PCI)(?!.*\bNVL\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class HostHint:
    """What sources of a job say of the hosts that it runs on."""

    gpus: int = 0  # GPUs of a host; 0 where nothing says it
    gpu: str = ""  # its name as the source writes it; empty where nothing says it
    origin: str = ""  # where that stands


def kind_of_gpu(name: str) -> str:
    """The GPU of `HOSTS` that ``name`` means; empty where it is none of them.

    Cards for PCIe, whose hosts have no NVLink switch, are none.
    """
    if kind := _AWS.get(name.partition(".")[0]):
        return kind
    found = _NAME.search(name.replace("_", " ").replace("-", " "))
    return found[0].upper() if found else ""


def hosts_of_gpu(name: str) -> str:
    """The preset of a machine of hosts with the GPU ``name``."""
    kind = kind_of_gpu(name)
    if kind and HOSTS[kind] in preset_names("topologies"):
        return HOSTS[kind]
    hint = closest(name.upper(), HOSTS) or f"known: {', '.join(HOSTS)};"
    hint += f" {named('hardware', 'T')} takes another machine's links and GPUs"
    shown = "".join(c if c.isprintable() else "?" for c in name[:80])
    raise InputError(f'no host of "{shown}" is known', key="gpu", hint=hint)


def usual_gpu(gpus: int, trays: bool) -> tuple[str, str]:
    """The GPU of the most common hosts of a size, and why.

    ``gpus``: of a host. ``trays``: whether hosts are in racks that may be one NVLink
    domain.
    """
    if trays and gpus == TRAY_GPUS:
        return USUAL_IN_RACKS, "hosts of 4 GPUs in racks are most often NVL72 trays"
    return USUAL, f"no source names the GPUs of its hosts of {gpus}"
