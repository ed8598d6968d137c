"""AWS: the answer of ``aws ec2 describe-instance-topology``.

``NetworkNodes`` runs from the top of the network to the node next to the instance and
is three or four long; instances with the same last one are nearest (Amazon EC2 User
Guide, "Instance topology"). On P6e-GB200 ``CapacityBlockId`` is the UltraServer, whose
GPUs share NVLink; elsewhere it is a reservation.
"""

from __future__ import annotations

from collections import Counter

from placer.documents import Value, parse_answer
from placer.formats.machines.findings import Findings, Level
from placer.topology.gpu_kinds import kind_of_gpu

_MAX_NETWORK_NODES = 8
_PAGED = "list every page: leave out --max-items and --no-paginate"


def read(text: str, source: str) -> Findings:
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
    # Numbered from the top, as in AWS's node labels for Kubernetes.
    levels = [
        Level(f"network-node-{d}", inside=f"network-node-{d - 1}")
        for d in range(depth, 0, -1)
    ]
    findings = Findings(source, (Level("ultraserver", True), *levels))
    for item, names in zip(instances, nodes, strict=True):
        closest_first = tuple([*names, *[""] * (depth - len(names))][::-1])
        name = item.name("InstanceId", required=True)
        findings.add_node(item, name, (_ultraserver(item), *closest_first))
    file.fail_if_problems()
    types = Counter(filter(kind_of_gpu, (i.name("InstanceType") for i in instances)))
    findings.gpu = next((name for name, _ in types.most_common(1)), "")
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
