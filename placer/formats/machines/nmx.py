"""NMX: the compute nodes of NVLink domains, as NetQ's NVLink management lists them.

The answer of ``GET nmx/v1/compute-nodes``: a list of trays with ``Name``,
``DomainUUID`` and ``GpuIDList`` (NVIDIA/topograph, pkg/providers/netq and
tests/output/netq).
"""

from __future__ import annotations

from placer.documents import Value, parse_answer
from placer.formats.machines.findings import Findings, Level, some

_LEVELS = (Level("nvlink-domain", True),)


def read(text: str, source: str) -> Findings:
    """NVLink domain and GPUs of every node."""
    file = parse_answer(text, source)
    listed = file.top.items()
    if not (listed or file.problems):
        file.top.problem("no compute node in it")
    findings = Findings(source, _LEVELS)
    unwell = []
    for item in listed:
        name = item.name("Name", required=True)
        facts = findings.add_node(item, name, (item.name("DomainUUID"),))
        facts.gpus = _gpus(item)
        if item.name("Health") not in ("", "HEALTHY"):
            unwell.append(f"{name} {item.name('Health')}")
    file.fail_if_problems()
    if unwell:
        findings.notes.append(f"nodes that are not HEALTHY: {some(unwell)}")
    return findings


def _gpus(node: Value) -> int | None:
    listed = node.at("GpuIDList")
    return None if listed is None else len(listed.items())
