"""Google Cloud: instances with their physical host topology.

From ``gcloud compute instances list --format=json`` or the Compute Engine API:
``resourceStatus.physicalHostTopology`` holds cluster, block, sub-block and host, any of
which may be missing; an older form is the path ``physicalHost: /block/subblock/host``
(Compute Engine documentation, "View VM topology"). GPUs of a sub-block share NVLink on
A4X racks only, so the kind of node decides.
"""

from __future__ import annotations

from placer.documents import Value, parse_answer
from placer.formats.machines.findings import Findings, Level

_LEVELS = (
    Level("subblock", None, inside="block"),
    Level("block", inside="cluster"),
    Level("cluster"),
)
# States of an instance that runs nothing (Compute Engine, "VM instance lifecycle").
_STOPPED = ("STOPPING", "TERMINATED", "SUSPENDING", "SUSPENDED")


def read(text: str, source: str) -> Findings:
    """What the list says: sub-block, block and cluster of every instance."""
    file = parse_answer(text, source)
    token = file.top.at("nextPageToken")
    if token is not None:
        token.problem("a nextPageToken is left: the list is not complete")
    listed = file.top.at("items") or file.top
    instances = [listed] if listed.at("resourceStatus") else listed.items()
    if not (instances or file.problems):
        listed.problem("no instance in it")
    findings = Findings(source, _LEVELS)
    for item in instances:
        name = item.name("name", required=True)
        status = item.name("status")
        facts = findings.add_node(item, name, _domains(item))
        facts.unavailable = status.lower() if status in _STOPPED else ""
    file.fail_if_problems()
    zones = {item.name("zone").rpartition("/")[2] for item in instances} - {""}
    if len(zones) > 1:
        listed_zones = ", ".join(sorted(zones)[:4])
        findings.notes.append(f"{len(zones)} zones, taken for alike: {listed_zones}")
    return findings


def _domains(instance: Value) -> tuple[str, str, str]:
    """Sub-block, block and cluster; empty where they are missing."""
    status = instance.at("resourceStatus")
    if status is None:
        return "", "", ""
    host = status.at("physicalHostTopology")
    if host is not None:
        subblock = host.name("subblock") or host.name("subBlock")
        return subblock, host.name("block"), host.name("cluster")
    older = status.name("physicalHost").strip("/").split("/")
    return (older[1], older[0], "") if len(older) == 3 else ("", "", "")
