"""A ConfigMap around Slurm's topology, as Slinky mounts it into its Slurm cluster.

``data`` holds ``topology.yaml`` or ``topology.conf`` as a text (SlinkyProject's Slurm
operator; NVIDIA/topograph, docs/engines/slinky.md). The former counts, as it does for
Slurm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.documents import parse_answer
from placer.formats.machines import slurm_conf, slurm_yaml

if TYPE_CHECKING:
    from placer.formats.machines.findings import Findings

_READERS = {"topology.yaml": slurm_yaml.read, "topology.conf": slurm_conf.read}


def read(text: str, source: str) -> Findings:
    """What the topology in the ConfigMap says; lines are counted in that text."""
    file = parse_answer(text, source, yaml=True)
    listed = file.top.at("items")
    maps = listed.items() if listed else [file.top]
    found = [
        (key, inner)
        for item in maps
        for key in _READERS
        if (inner := item.at("data", key))
    ]
    holders = {inner.path[:-1] for _, inner in found}
    if not found:
        hint = f"it reads {' or '.join(_READERS)} under data"
        file.top.problem("a ConfigMap without a Slurm topology", hint)
    if len(holders) > 1:
        message = f"{len(holders)} ConfigMaps with a Slurm topology"
        file.top.problem(message, "give the one of the cluster")
    for _, inner in found:
        if not isinstance(inner.content, str) or not inner.content.strip():
            inner.problem("expected the text of the file")
    file.fail_if_problems()
    key, inner = found[0]
    findings = _READERS[key](inner.content, f"{source}:{key}")
    findings.source = source
    return findings
