"""What this node says of itself: one line, the same keys everywhere."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from placer.injob.gpus import find_gpus
from placer.launch.process import host_name

FORMAT = "placer/probe"
VERSION = 1
# Where manifests usually mount the labels of the downward API.
_LABELS = "/etc/podinfo/labels"
_LABEL = re.compile(r'([^\s=]{1,317})="((?:[^"\\]|\\.)*)"')
_INFINIBAND = Path("/sys/class/infiniband")
_PCI = Path("/sys/bus/pci/devices")


def probe(
    cloud: str | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What the node is, as ``placer probe`` prints it.

    ``cloud``: whose metadata service to ask, of `placer.injob.cloud.CLOUDS`.
    ``environ``: variables of Slurm and Kubernetes; by default those of this process.
    """
    env = os.environ if environ is None else environ
    gpus, nics = find_gpus(), find_nics()
    problems = [*gpus.problems]
    labels = _labels(env, problems)
    facts: dict[str, str] = {}
    if cloud:
        from placer.injob.cloud import cloud_facts

        facts, wrong = cloud_facts(cloud)
        problems += wrong
    return {
        "format": FORMAT,
        "version": VERSION,
        "host": node_name(env),
        "gpus": len(gpus.listed),
        "gpu": gpus.name,
        "memory": gpus.memory,
        "nvlink_domain": gpus.domain,
        "topology_addr": env.get("SLURM_TOPOLOGY_ADDR", ""),
        "topology_pattern": env.get("SLURM_TOPOLOGY_ADDR_PATTERN", ""),
        "labels": labels,
        "cloud": facts,
        "nics": len(nics),
        "rails": rails(nics, [gpu.bus for gpu in gpus.listed]),
        "problems": problems,
    }


def probe_line(found: Mapping[str, Any]) -> str:
    """A probe as one line of JSON."""
    return json.dumps(found)


def node_name(environ: Mapping[str, str] | None = None) -> str:
    """The node's name; in a pod ``NODE_NAME``, where the downward API gives it."""
    env = os.environ if environ is None else environ
    named = "PLACER_HOST" in env or "SLURMD_NODENAME" in env
    return host_name(env) if named else env.get("NODE_NAME") or host_name(env)


def _labels(environ: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    """The labels that the downward API wrote, lines of ``key="value"``."""
    given = environ.get("PLACER_LABELS")
    try:
        text = Path(given or _LABELS).read_text("utf-8", "replace")
    except OSError as error:
        if given:
            problems.append(f"labels {given}: {error.strerror}")
        return {}
    rows = (_LABEL.fullmatch(line.strip()) for line in text.splitlines())
    return {row[1]: json.loads(f'"{row[2]}"') for row in rows if row}


def find_nics() -> dict[str, str]:
    """Where each of them hangs in the tree of PCI devices, by its name."""
    found = {}
    with suppress(OSError):
        for device in sorted(_INFINIBAND.iterdir()):
            found[device.name] = str((device / "device").resolve())
    return found


def rails(nics: dict[str, str], buses: Sequence[str]) -> list[str]:
    """The nearest NIC of each GPU, each as often as another; empty where unknown.

    ``nics``: as `find_nics` returns them. ``buses``: PCI addresses of the GPUs.
    """
    paths = [_path(bus) for bus in buses]
    if not (nics and paths and all(paths)):
        return []
    used = dict.fromkeys(nics, 0)
    chosen = []
    for path in paths:
        shared = {
            nic: len(os.path.commonpath([path, at]).split("/"))
            for nic, at in nics.items()
        }
        best = max(nics, key=lambda nic: (shared[nic], -used[nic]))
        used[best] += 1
        chosen.append(best)
    return chosen


def _path(bus: str) -> str:
    """Path of a device; nvidia-smi writes eight digits of its PCI domain."""
    domain, _, rest = bus.lower().partition(":")
    device = _PCI / f"{domain[-4:]}:{rest}"
    return str(device.resolve()) if device.exists() else ""
