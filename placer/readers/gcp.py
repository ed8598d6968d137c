"""Google Cloud: instances with their physical host topology.

From ``gcloud compute instances list --format=json`` or the Compute Engine API:
``resourceStatus.physicalHostTopology`` holds cluster, block, sub-block and host, any of
which may be missing; an older form is the path ``physicalHost: /block/subblock/host``
(Compute Engine documentation, "View VM topology"). GPUs of a sub-block share NVLink on
A4X racks only, so the kind of node decides.
"""

from __future__ import annotations

from placer.readers.findings import Findings, Level
from placer.readers.plain import Item, Plain, add_node

_LEVELS = (
    Level("subblock", None, inside="block"),
    Level("block", inside="cluster"),
    Level("cluster"),
)
# States of an instance that runs nothing (Compute Engine, "VM instance lifecycle").
_STOPPED = ("STOPPING", "TERMINATED", "SUSPENDING", "SUSPENDED")


def read(text: str, source: str) -> Findings:
    """What the list says: sub-block, block and cluster of every instance.

    Raises
    ------
    InputError
        If the file is malformed, is only one page of the answer, or is empty.
    """
    file = Plain(text, source)
    token = file.root.get("nextPageToken")
    if token is not None:
        token.problem("a nextPageToken is left: the list is not complete")
    listed = file.root.get("items") or file.root
    instances = [listed] if listed.get("resourceStatus") else listed.items()
    if not instances:
        listed.problem("no instance in it")
    findings = Findings(source, _LEVELS)
    for item in instances:
        name = item.text("name", required=True)
        status = item.text("status")
        facts = add_node(findings, item, name, _domains(item))
        facts.unavailable = status.lower() if status in _STOPPED else ""
    file.finish()
    zones = {item.text("zone").rpartition("/")[2] for item in instances} - {""}
    if len(zones) > 1:
        listed_zones = ", ".join(sorted(zones)[:4])
        findings.notes.append(f"{len(zones)} zones, taken for alike: {listed_zones}")
    return findings


def _domains(instance: Item) -> tuple[str, str, str]:
    """Sub-block, block and cluster; empty where they are missing."""
    status = instance.get("resourceStatus")
    if status is None:
        return "", "", ""
    host = status.get("physicalHostTopology")
    if host is not None:
        subblock = host.text("subblock") or host.text("subBlock")
        return subblock, host.text("block"), host.text("cluster")
    older = status.text("physicalHost").strip("/").split("/")
    return (older[1], older[0], "") if len(older) == 3 else ("", "", "")
