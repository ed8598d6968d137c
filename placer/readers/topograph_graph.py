"""topograph's graph: every instance with its network layers and accelerator labels.

Layers are closest first and their number varies; ids are the cloud's instance ids, not
host names (NVIDIA/topograph e2b62507, docs).
"""

from __future__ import annotations

from placer.readers.findings import Findings, Level
from placer.readers.plain import Item, Plain, add_node
from placer.readers.switches import switch_levels

_SUB_DOMAIN = "accelerator.topograph.run/sub-domain"
_DOMAIN = "accelerator.topograph.run/domain"
_MAX_LAYERS = 12


def read(text: str, source: str) -> Findings:
    """What a graph says: accelerator sub-domains and domains, and network layers.

    Raises
    ------
    InputError
        If the file is malformed or there are no instances.
    """
    file = Plain(text, source)
    listed = file.root.get("instances")
    instances = listed.items() if listed else []
    if not instances:
        hint = "with an output path set, topograph answers just OK: read that file"
        file.root.problem("no instance in it", hint)
    layers = [_layers(item) for item in instances]
    depth = max(map(len, layers), default=0)
    accelerators = (Level("sub-domain", None, inside="domain"), Level("domain", None))
    levels = (*accelerators, *switch_levels(depth))
    findings = Findings(source, levels)
    for item, names in zip(instances, layers, strict=True):
        padded = names + ("",) * (depth - len(names))
        name = item.text("id", required=True)
        add_node(findings, item, name, _accelerator(item) + padded)
    file.finish()
    return findings


def _layers(instance: Item) -> tuple[str, ...]:
    listed = instance.get("network_layers")
    names = tuple(item.as_text() for item in listed.items()) if listed else ()
    if len(names) > _MAX_LAYERS and listed:
        listed.problem(f"more than {_MAX_LAYERS} network layers")
    return names[:_MAX_LAYERS]


def _accelerator(instance: Item) -> tuple[str, str]:
    labels = instance.get("labels")
    if labels is None:
        return "", ""
    return labels.text(_SUB_DOMAIN), labels.text(_DOMAIN)
