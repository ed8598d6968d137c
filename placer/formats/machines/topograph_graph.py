"""topograph's graph: every instance with its network layers and accelerator labels.

Layers are closest first and their number varies; ids are the cloud's instance ids, not
host names (NVIDIA/topograph e2b62507, docs).
"""

from __future__ import annotations

from placer.documents import Value, parse_answer
from placer.formats.machines.findings import Findings, Level
from placer.formats.machines.switches import switch_levels

_SUB_DOMAIN = "accelerator.topograph.run/sub-domain"
_DOMAIN = "accelerator.topograph.run/domain"
_MAX_LAYERS = 12


def read(text: str, source: str) -> Findings:
    """What a graph says: accelerator sub-domains and domains, and network layers."""
    file = parse_answer(text, source)
    instances = file.top.listed("instances")
    if not (instances or file.problems):
        hint = "with an output path set, topograph answers just OK: read that file"
        file.top.problem("no instance in it", hint)
    layers = [_layers(item) for item in instances]
    depth = max(map(len, layers), default=0)
    accelerators = (Level("sub-domain", None, inside="domain"), Level("domain", None))
    levels = (*accelerators, *switch_levels(depth))
    findings = Findings(source, levels)
    for item, names in zip(instances, layers, strict=True):
        padded = names + ("",) * (depth - len(names))
        name = item.name("id", required=True)
        findings.add_node(item, name, _accelerator(item) + padded)
    file.fail_if_problems()
    return findings


def _layers(instance: Value) -> tuple[str, ...]:
    listed = instance.at("network_layers")
    names = tuple(instance.names("network_layers"))
    if len(names) > _MAX_LAYERS and listed:
        listed.problem(f"more than {_MAX_LAYERS} network layers")
    return names[:_MAX_LAYERS]


def _accelerator(instance: Value) -> tuple[str, str]:
    labels = instance.at("labels")
    if labels is None:
        return "", ""
    return labels.name(_SUB_DOMAIN), labels.name(_DOMAIN)
