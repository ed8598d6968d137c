"""NMX: the compute nodes of NVLink domains, as NetQ's NVLink management lists them.

The answer of ``GET nmx/v1/compute-nodes``: a list of trays with ``Name``,
``DomainUUID`` and ``GpuIDList`` (NVIDIA/topograph, pkg/providers/netq and
tests/output/netq).
"""

from __future__ import annotations

from placer.readers.findings import Findings, Level, some
from placer.readers.plain import Item, Plain, add_node

_LEVELS = (Level("nvlink-domain", True),)


def read(text: str, source: str) -> Findings:
    """NVLink domain and GPUs of every node.

    Raises
    ------
    InputError
        If the file is malformed, or lists no nodes.
    """
    file = Plain(text, source)
    listed = file.root.items()
    if not (listed or file.has_problems):
        file.root.problem("no compute node in it")
    findings = Findings(source, _LEVELS)
    unwell = []
    for item in listed:
        name = item.text("Name", required=True)
        facts = add_node(findings, item, name, (item.text("DomainUUID"),))
        facts.gpus = _gpus(item)
        if item.text("Health") not in ("", "HEALTHY"):
            unwell.append(f"{name} {item.text('Health')}")
    file.finish()
    if unwell:
        findings.notes.append(f"nodes that are not HEALTHY: {some(unwell)}")
    return findings


def _gpus(node: Item) -> int | None:
    listed = node.get("GpuIDList")
    return None if listed is None else len(listed.items())
