"""Kubernetes: the labels of the nodes in ``kubectl get nodes -o json``.

Labels of topograph (docs, "Node labels and annotations", new and older keys), of the
NVIDIA GPU operator (``nvidia.com/gpu.clique``: cluster UUID and clique of the NVLink
fabric), and of AWS, Google and Oracle node controllers. Different families over the
same nodes are read side by side; what they disagree on is reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from placer.readers.findings import Findings, Level, some
from placer.readers.plain import Item, Plain, add_node
from placer.readers.switches import switch_levels

_GPUS = "nvidia.com/gpu"
_NEW = "accelerator.topograph.run/"
_OLD = "network.topology.nvidia.com/"
_TIER = re.compile(r"fabric\.topograph\.run/tier-([0-9]|1[01])")
_OCI = "oci.oraclecloud.com/"
_GCE = "cloud.google.com/gce-topology-"
_AWS = "topology.k8s.aws/"
_ZONE = "topology.kubernetes.io/zone"

# Label of each level, innermost first within a family.
_LABELS: tuple[tuple[str, Level], ...] = (
    ("nvidia.com/gpu.clique", Level("clique", True)),
    (_NEW + "sub-domain", Level("sub-domain", None, inside="domain")),
    (_NEW + "domain", Level("domain", None)),
    (_OLD + "accelerator", Level("domain", None)),
    (_AWS + "ultraserver-id", Level("ultraserver", True)),
    (_OCI + "host.gpu_memory_fabric_id", Level("memory-fabric", True)),
    (_GCE + "subblock", Level("subblock", None, inside="block")),
    (_OLD + "leaf", Level("leaf", inside="spine")),
    (_OLD + "spine", Level("spine", inside="core")),
    (_OLD + "core", Level("core")),
    (_GCE + "block", Level("block")),
    (
        _AWS + "network-node-layer-3",
        Level("network-node-3", inside="network-node-2"),
    ),
    (
        _AWS + "network-node-layer-2",
        Level("network-node-2", inside="network-node-1"),
    ),
    (_AWS + "network-node-layer-1", Level("network-node-1")),
    (_OCI + "rdma.local_block_id", Level("local-block", inside="network-block")),
    (_OCI + "rdma.network_block_id", Level("network-block", inside="island")),
    (_OCI + "rdma.hpc_island_id", Level("island")),
)
_UNKNOWN = "no-imds-data"
_INSTANCE = "topograph.run/instance"
_NOT_READY = "node.kubernetes.io/"
_STOPS = ("NoSchedule", "NoExecute")


def read(text: str, source: str) -> Findings:
    """What the labels say, GPUs that can be asked for, and nodes that are out of use.

    Raises
    ------
    InputError
        If the file is malformed, or no node of it can be used.
    """
    file = Plain(text, source)
    listed = file.root.get("items")
    items = listed.items() if listed else []
    nodes = [item for item in items if item.text("kind") in ("", "Node")]
    if not nodes:
        file.root.problem("no node in it", "kubectl get nodes -o json lists them")
    labels = [_texts(item.at("metadata", "labels")) for item in nodes]
    depth = _num_tiers(labels)
    tiers = tuple(f"fabric.topograph.run/tier-{n}" for n in range(depth))
    keys = (*(key for key, _ in _LABELS), *tiers)
    levels = (*(level for _, level in _LABELS), *switch_levels(depth))
    findings = Findings(source, levels)
    taints: Counter[str] = Counter()
    for item, given in zip(nodes, labels, strict=True):
        _check_mix(item, given)
        name = _name(item)
        domains = tuple(_known(given.get(key, "")) for key in keys)
        facts = add_node(findings, item, name, domains)
        facts.gpus = _gpus(item)
        facts.unavailable = _reason(item, taints)
        _add_aliases(findings, item, given, name)
    file.finish()
    findings.aliases = {a: name for a, name in findings.aliases.items() if name}
    _settle_gpus(findings)
    _note(findings, taints, {given.get(_ZONE, "") for given in labels} - {""})
    return findings


def _texts(labels: Item | None) -> dict[str, str]:
    """The labels or annotations that are texts and not empty."""
    if labels is None or not isinstance(labels.value, dict):
        return {}
    return {
        key: value
        for key, value in labels.value.items()
        if isinstance(value, str) and value and value.isprintable()
    }


def _num_tiers(labels: Sequence[dict[str, str]]) -> int:
    found = [_TIER.fullmatch(key) for key in {key for given in labels for key in given}]
    return max((int(match[1]) + 1 for match in found if match), default=0)


def _known(value: str) -> str:
    return "" if value == _UNKNOWN else value


def _name(node: Item) -> str:
    metadata = node.get("metadata")
    if metadata is None:
        node.problem('the key "metadata" is missing')
        return ""
    return metadata.text("name", required=True)


def _check_mix(node: Item, labels: dict[str, str]) -> None:
    old = any(key.startswith(_OLD) for key in labels)
    new = any(key.startswith(_NEW) or _TIER.fullmatch(key) for key in labels)
    if old and new:
        hint = "remove the labels of the topograph version that no longer runs"
        node.problem("labels of an old and a new topograph on one node", hint)


def _gpus(node: Item) -> int | None:
    item = node.at("status", "allocatable", _GPUS)
    if item is None:
        return None
    text = str(item.value)
    if not re.fullmatch(r"[0-9]{1,3}", text):
        item.problem(f"expected a number of GPUs, got {text[:40]!r}")
        return None
    return int(text)


def _reason(node: Item, taints: Counter[str]) -> str:
    """Why the node must not be used; empty when it may. Other taints are counted."""
    spec = node.get("spec")
    if spec and spec.get("unschedulable") and spec.value["unschedulable"] is True:
        return "unschedulable"
    listed = spec.get("taints") if spec else None
    for taint in listed.items() if listed else ():
        key = taint.text("key")
        if taint.text("effect") in _STOPS:
            if key.startswith(_NOT_READY):
                return f"taint {key}"
            taints[key] += 1
    listed = node.at("status", "conditions")
    for condition in listed.items() if listed else ():
        ready = condition.text("status")
        if condition.text("type") == "Ready" and ready != "True":
            return f"not ready ({ready})"
    return ""


def _add_aliases(
    findings: Findings, node: Item, labels: dict[str, str], name: str
) -> None:
    """Other names of a node: host name, and the cloud's instance id.

    One that several nodes share, such as ``localhost``, names none: it is left empty.
    """
    annotations = _texts(node.at("metadata", "annotations"))
    spec = node.get("spec")
    provider = _texts(spec).get("providerID", "") if spec else ""
    others = (
        labels.get("kubernetes.io/hostname", ""),
        annotations.get(_INSTANCE, ""),
        provider.rpartition("/")[2],
    )
    for other in others:
        if name and other and other != name:
            known = findings.aliases.setdefault(other, name)
            findings.aliases[other] = name if known == name else ""


def _settle_gpus(findings: Findings) -> None:
    """Nodes that offer no GPUs have none, if any node offers some."""
    nodes = findings.nodes.values()
    if any(facts.gpus is not None for facts in nodes):
        for facts in nodes:
            facts.gpus = facts.gpus or 0


def _note(findings: Findings, taints: Counter[str], zones: set[str]) -> None:
    for key, count in taints.most_common(5):
        findings.notes.append(f"pods must tolerate the taint {key}, nodes: {count}")
    if len(zones) > 1:
        listed = some(sorted(zones))
        findings.notes.append(f"{len(zones)} zones, taken for alike: {listed}")
