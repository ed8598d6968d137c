"""The hardware of a machine whose sources do not say how fast its links are.

By the name of its GPUs where a source has one, else the most common hosts of the size
read. What is assumed so is told with the option that says another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.assumed import GPUS_PER_NODE, HARDWARE, LINKS, Assumption
from placer.topology.gpu_kinds import (
    TRAY_GPUS,
    USUAL_IN_RACKS,
    HostHint,
    hosts_of_gpu,
    kind_of_gpu,
    usual_gpu,
)

if TYPE_CHECKING:
    from placer.formats.machines.findings import Findings

# Trays of one NVLink domain: NVL36 and NVL72, whole or without some spare ones.
RACK_NODES = range(9, 19)
_UNCOUNTED_TRAYS = (9, 18)
_RACK = "rack"


@dataclass(frozen=True)
class Hosts:
    """What hosts of a machine are taken for."""

    preset: str  # a machine of such hosts
    gpus: int | None  # of those that no source counts; None as on the preset
    assumed: tuple[Assumption, ...]


def assumed_hosts(
    findings: Sequence[Findings], gpus_per_node: int | None, hint: HostHint
) -> Hosts:
    """The hosts of a machine that ``findings`` describe.

    ``gpus_per_node``: what an option says of hosts that no source counts. ``hint``:
    what the job says of them.
    """
    counted = Counter(n.gpus for f in findings for n in f.nodes.values() if n.gpus)
    uncounted = any(n.gpus is None for f in findings for n in f.nodes.values())
    said = gpus_per_node or hint.gpus or None
    size = counted.most_common(1)[0][0] if counted else said
    named = next((found for found in findings if found.gpu), None)
    name, origin = (named.gpu, named.source) if named else (hint.gpu, hint.origin)
    key = LINKS
    if kind := kind_of_gpu(name):
        why = f"{origin} names {name}"
    else:
        key = HARDWARE
        trays = _may_be_trays(findings, size)
        kind, why = usual_gpu(TRAY_GPUS if trays else size or 8, trays)
        if name:
            why = f"nothing is known of hosts of {name}, which {origin} names"
    preset = hosts_of_gpu(kind)
    option = "--hardware T" if named else "--gpu NAME"
    assumed = [Assumption(key, kind, why, option)]
    if uncounted and not said and not counted:
        usual = TRAY_GPUS if preset == hosts_of_gpu(USUAL_IN_RACKS) else 8
        why = f"no source counts the GPUs of a host; {kind} hosts have {usual}"
        assumed.append(Assumption(GPUS_PER_NODE, usual, why, "--gpus-per-node N"))
    return Hosts(preset, said, tuple(assumed))


def _may_be_trays(findings: Sequence[Findings], size: int | None) -> bool:
    """Whether nodes may be trays of racks that NVLink joins."""
    levels = [level for found in findings for level in found.levels]
    if size not in (None, TRAY_GPUS):
        return False
    if any(level.scale_up for level in levels):
        return True
    sizes = [
        count
        for found in findings
        for number, level in enumerate(found.levels)
        if (level.scale_up is None or level.name == _RACK) and not level.planned
        for count in _nodes_of_domains(found, number)
    ]
    usual = _UNCOUNTED_TRAYS if size is None else RACK_NODES
    return bool(sizes) and Counter(sizes).most_common(1)[0][0] in usual


def _nodes_of_domains(found: Findings, level: int) -> list[int]:
    """How many nodes each domain of a level has."""
    domains = (facts.domains[level] for facts in found.nodes.values())
    return [*Counter(domain for domain in domains if domain).values()]
