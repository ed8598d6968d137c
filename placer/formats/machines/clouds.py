"""What clouds say of their instances: AWS, Azure, Google Cloud and Oracle Cloud.

AWS, ``aws ec2 describe-instance-topology``: ``NetworkNodes`` runs from the top of the
network to the node next to the instance and is three or four long; instances with the
same last one are nearest (Amazon EC2 User Guide, "Instance topology"). On P6e-GB200
``CapacityBlockId`` is the UltraServer, whose GPUs share NVLink; elsewhere it is a
reservation.

Azure's ``azslurm``: NVLink blocks as JSON, ``[{"blockname", "size", "nodelist"}]``, the
smallest first (Azure/cyclecloud-slurm, azure-slurm/slurmcc/topology.py): the order says
nothing of neighbours. What ``azslurm topology`` itself writes is a ``topology.conf``.

Google, ``gcloud compute instances list --format=json`` or the Compute Engine API:
``resourceStatus.physicalHostTopology`` holds cluster, block, sub-block and host, any of
which may be missing; an older form is the path ``physicalHost: /block/subblock/host``
(Compute Engine documentation, "View VM topology"). GPUs of a sub-block share NVLink on
A4X racks only, so the kind of node decides.

Oracle, from the hosts: one line each, as a parallel shell collects the instance
metadata ``/opc/v2/host/rdmaTopologyData``: ``gpu-3: {"customerLocalBlock": ...}``; or
from the API or the ``oci`` command, a list of compute hosts with ``localBlockId``,
``networkBlockId``, ``hpcIslandId`` and ``gpuMemoryFabricId`` (Oracle Cloud
Infrastructure API, ComputeHostSummary). GPUs of a memory fabric share NVLink. The
metadata of a whole host, ``/opc/v2/host/``, has ``rackId`` as well, and of a host
without that network only it and ``networkBlockId`` (kubernetes-sigs/dranet,
pkg/cloudprovider/oke). One host of the API has its rack in
``additionalData.locationDetails``, which counts within the memory fabric
(NVIDIA/topograph, pkg/providers/oci).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from placer.base.errors import Problem
from placer.base.units import plural
from placer.documents import Document, Value, parse_answer
from placer.formats.machines.findings import Findings, Level, some, usual
from placer.formats.machines.labelled import are_numbers
from placer.formats.machines.slurm_machine import slurm_findings
from placer.formats.machines.switches import Switch, aws_levels
from placer.topology.gpu_kinds import kind_of_gpu

_MAX_NETWORK_NODES = 8
_PAGED = "list every page: leave out --max-items and --no-paginate"
_GCP_LEVELS = (
    Level("subblock", None, inside="block"),
    Level("block", inside="cluster"),
    Level("cluster"),
)
# States of an instance that runs nothing (Compute Engine, "VM instance lifecycle").
_STOPPED = ("STOPPING", "TERMINATED", "SUSPENDING", "SUSPENDED")
_OCI_LEVELS = (
    Level("memory-fabric", True),
    Level("rack", None),
    Level("local-block", inside="network-block"),
    Level("network-block", inside="island"),
    Level("island"),
)
# Keys of each level of Oracle in all shapes, without dashes and in lower case.
_OCI_KEYS = (
    ("customergpumemoryfabric", "gpumemoryfabricid"),
    (),
    ("customerlocalblock", "localblockid"),
    ("customernetworkblock", "networkblockid"),
    ("customerhpcislandid", "hpcislandid"),
)
_FABRIC, _RACK = 0, 1
# Kubernetes labels say this where the metadata of a host could not be read.
_UNKNOWN = "no-imds-data"
_OCI_LINE = re.compile(r"(\s*([A-Za-z0-9][\w.-]*)\s*:\s*)\{.*\}\s*")


def read_aws(text: str, source: str) -> Findings:
    """What the answer says: UltraServers and network nodes of every instance."""
    file = parse_answer(text, source)
    token = file.top.at("NextToken")
    if token is not None and token.content:
        token.problem("a NextToken is left: the list is not complete", _PAGED)
    if file.top.at("CapacityReservations"):
        hint = "use aws ec2 describe-instance-topology"
        file.top.problem("it lists reservations, not instances", hint)
    instances = file.top.listed("Instances")
    if not (instances or file.problems):
        file.top.problem("no instance in it")
    file.fail_if_problems()
    nodes = [_network_nodes(item) for item in instances]
    depth = max(map(len, nodes), default=0)
    levels = Level("ultraserver", True), *aws_levels(depth)
    findings = Findings(source, levels)
    for item, names in zip(instances, nodes, strict=True):
        closest_first = tuple([*names, *[""] * (depth - len(names))][::-1])
        name = item.name("InstanceId", required=True)
        findings.add_node(item, name, (_ultraserver(item), *closest_first))
    file.fail_if_problems()
    types = (item.name("InstanceType") for item in instances)
    findings.gpu = usual(filter(kind_of_gpu, types))
    _note_kinds(findings, instances)
    return findings


def _network_nodes(instance: Value) -> list[str]:
    listed = instance.at("NetworkNodes")
    names = instance.names("NetworkNodes")
    if listed and len(names) > _MAX_NETWORK_NODES:
        listed.problem(f"more than {_MAX_NETWORK_NODES} network nodes")
    return names[:_MAX_NETWORK_NODES]


def _ultraserver(instance: Value) -> str:
    if instance.name("InstanceType").startswith("p6e-"):
        return instance.name("CapacityBlockId")
    return ""


def _note_kinds(findings: Findings, instances: list[Value]) -> None:
    for key, what in (("InstanceType", "instance types"), ("ZoneId", "zones")):
        counts = Counter(item.name(key) for item in instances)
        counts.pop("", None)
        if len(counts) > 1:
            listed = ", ".join(f"{name} ({n})" for name, n in counts.most_common(4))
            findings.notes.append(f"{len(counts)} {what}, taken for alike: {listed}")


def read_gcp(text: str, source: str) -> Findings:
    """What the list says: sub-block, block and cluster of every instance."""
    file = parse_answer(text, source)
    token = file.top.at("nextPageToken")
    if token is not None:
        token.problem("a nextPageToken is left: the list is not complete")
    listed = file.top.at("items") or file.top
    instances = [listed] if listed.at("resourceStatus") else listed.items()
    if not (instances or file.problems):
        listed.problem("no instance in it")
    findings = Findings(source, _GCP_LEVELS)
    for item in instances:
        name = item.name("name", required=True)
        status = item.name("status")
        facts = findings.add_node(item, name, _gcp_domains(item))
        facts.unavailable = status.lower() if status in _STOPPED else ""
    file.fail_if_problems()
    zones = {item.name("zone").rpartition("/")[2] for item in instances} - {""}
    if len(zones) > 1:
        listed_zones = ", ".join(sorted(zones)[:4])
        findings.notes.append(f"{len(zones)} zones, taken for alike: {listed_zones}")
    return findings


def _gcp_domains(instance: Value) -> tuple[str, str, str]:
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


def read_azslurm(text: str, source: str) -> Findings:
    """The blocks."""
    file = parse_answer(text, source)
    blocks = [_block(item) for item in file.top.items()]
    if not (blocks or file.problems):
        file.top.problem("no block in it")
    file.fail_if_problems()
    findings = slurm_findings(source, [], blocks)
    # Block sizes are no matter of this list.
    findings.notes.clear()
    return findings


def _block(item: Value) -> Switch:
    name = item.name("blockname", required=True)
    nodes = item.names("nodelist")
    size = item.at("size")
    if size is not None and size.content != len(nodes):
        size.problem(f"{len(nodes)} nodes are listed")
    return Switch(name, item.place, nodes)


def read_oci(text: str, source: str) -> Findings:
    """What the hosts say: memory fabric, rack, local and network block, and island."""
    findings = Findings(source, _OCI_LEVELS)
    lines = text.split("\n")
    matches = [_OCI_LINE.fullmatch(line) for line in lines]
    in_lines = any(matches) and not text.lstrip().startswith(("{", "["))
    names: Iterable[str] = [match[2] for match in matches if match]
    if in_lines:
        file = parse_answer(_as_list(lines, matches, findings), source)
        items = file.top.items()
        findings.numbers = are_numbers(names)
    else:
        file = parse_answer(text, source)
        items = _oci_hosts(file)
        names = (_value(item, ("instanceid",)) for item in items)
    empty = 0
    for item, name in zip(items, names, strict=True):
        findings.add_node(item, name, _oci_domains(item))
        empty += not name
    if not (in_lines or findings.nodes or file.problems):
        file.top.problem("no host with an instance in it")
    file.fail_if_problems()
    _drop_racks_across_blocks(findings)
    if empty:
        findings.unused["host"] = empty
        findings.notes.append(f"hosts without an instance, left out: {empty}")
    return findings


def _oci_hosts(file: Document) -> list[Value]:
    """The hosts in an answer of the API or the command."""
    token = file.top.at("opc-next-page")
    if token is not None:
        token.problem("an opc-next-page is left: the list is not complete", "use --all")
    listed = file.top.at("data", "items") or file.top.at("data")
    listed = listed or file.top.at("items") or file.top
    if isinstance(listed.content, dict):
        listed.problem("which host is this?", "collect lines such as gpu-3: {...}")
        file.fail_if_problems()
    return listed.items()


def _as_list(
    lines: list[str], matches: list[re.Match[str] | None], findings: Findings
) -> str:
    """The JSON of ``host: {json}`` lines as one list, every value where it stood."""
    bodies = []
    for number, (line, match) in enumerate(zip(lines, matches, strict=True), start=1):
        start = match.end(1) if match else len(line)
        bodies.append(" " * start + line[start:] + "," if match else "")
        if not match and line.strip():
            message = "no line such as gpu-3: {...}"
            findings.ignored.append(Problem(message, findings.source, number, 1))
    text = "\n".join(bodies).rstrip()
    start = text.index("{")
    return text[: start - 1] + "[" + text[start:-1] + "]"


def _oci_domains(host: Value) -> tuple[str, ...]:
    # The metadata of the whole host, /opc/v2/host/, holds it one level down.
    data = host.at("rdmaTopologyData") or host
    found = [_value(data, keys) for keys in _OCI_KEYS]
    found[_RACK] = _rack(host, found[_FABRIC])
    return tuple(found)


def _rack(host: Value, fabric: str) -> str:
    """The rack of a host: its id, or its name within the memory fabric."""
    if own := _value(host, ("rackid",)):
        return own
    more = host.at("additionalData") or host.at("additional-data")
    details = more and (more.at("locationDetails") or more.at("location-details"))
    name = details.name("rack") if details else ""
    return f"{fabric}.{name}" if name else ""


def _drop_racks_across_blocks(findings: Findings) -> None:
    """Leave racks out where they cut across the blocks of the network.

    They are places in a room: a rack with hosts of two blocks is no part of either.
    """
    for k in range(_RACK + 1, len(_OCI_LEVELS)):
        blocks: dict[str, set[str]] = {}
        racks: dict[str, set[str]] = {}
        for facts in findings.nodes.values():
            rack, block = facts.domains[_RACK], facts.domains[k]
            if rack and block:
                blocks.setdefault(rack, set()).add(block)
                racks.setdefault(block, set()).add(rack)
        torn = [rack for rack, found in blocks.items() if len(found) > 1]
        if torn and any(len(found) > 1 for found in racks.values()):
            above = plural(_OCI_LEVELS[k].name, 2)
            findings.notes.append(
                f"racks with hosts of several {above}, so racks are "
                f"left out: {len(torn)} ({some(torn)})"
            )
            for facts in findings.nodes.values():
                own = facts.domains
                facts.domains = (*own[:_RACK], "", *own[_RACK + 1 :])
            return


def _value(host: Value, keys: tuple[str, ...]) -> str:
    """The first of ``keys`` that is there, in any spelling; empty when none is."""
    if not isinstance(host.content, dict):
        host.problem("expected a mapping")
        return ""
    for written in host.content:
        if written.replace("-", "").lower() in keys:
            found = host.name(written)
            return "" if found == _UNKNOWN else found
    return ""
