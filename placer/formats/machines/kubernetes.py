"""Kubernetes: the nodes in ``kubectl get nodes -o json``, their labels and GPUs.

What labels mean stands in `placer.formats.machines.node_labels`. Different families
over the same nodes are read side by side; what they disagree on is reported.
``ResourceSlice`` objects in the same list tell the GPUs of DRA drivers.

``Topology`` objects of Kueue and KAI, there or in a file of their own, say nothing of
nodes: ``spec.levels`` lists the keys of labels, outermost first (Kueue, "Topology Aware
Scheduling"; KAI Scheduler, docs on topology).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from placer.base.errors import InputError
from placer.base.naming import named
from placer.base.units import plural
from placer.documents import Value, parse_answer
from placer.documents.scalars import visible
from placer.formats.machines.findings import Findings, some, usual
from placer.formats.machines.kubernetes_gpus import count_gpus
from placer.formats.machines.node_labels import (
    HOSTNAME,
    NEW_TOPOGRAPH,
    OLD_TOPOGRAPH,
    TOPOGRAPH_TIER,
    LabelLevel,
    LabelRules,
    label_levels,
    label_of_names,
    unused_labels,
)
from placer.topology.gpu_kinds import kind_of_gpu
from placer.topology.kubernetes import STOPS, Resource, Taint

# Names of a node's GPUs: gpu-feature-discovery, AMD's node labeller, GKE, CoreWeave,
# Karpenter and EKS.
_PRODUCTS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "gpu.nvidia.com/model",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
)
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_ZONE = "topology.kubernetes.io/zone"
# Oracle's word for a label whose value could not be read.
_UNKNOWN = "no-imds-data"
_INSTANCE = "topograph.run/instance"
_NOT_READY = "node.kubernetes.io/"
# What gives a pod the NICs: device plugins of RDMA, and EFA's.
_NETWORK = re.compile(r"rdma/[\w./-]+|vpc\.amazonaws\.com/efa")
_QUANTITY = re.compile(r"([0-9]{1,6})(k?)")


_MOST_LEVELS = 16
_SEPARATOR = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)


def read(text: str, source: str, rules: LabelRules | None = None) -> Findings:
    """What the labels say, the GPUs of nodes, and nodes that are out of use.

    ``rules``: what labels mean besides the known ones.
    """
    file = parse_answer(text, source)
    items = file.top.listed("items")
    own = file.top.name("kind").removesuffix("List")
    kinds = [item.name("kind") or own or "Node" for item in items]
    nodes = [n for n, kind in zip(items, kinds, strict=True) if kind == "Node"]
    slices = [
        s for s, kind in zip(items, kinds, strict=True) if kind == "ResourceSlice"
    ]
    if not (nodes or file.problems):
        both = "kubectl get nodes,resourceslices -o json lists both"
        hint = both if slices else "kubectl get nodes -o json lists them"
        file.top.problem("no node in it", hint)
    rules = rules or LabelRules()
    rules = replace(rules, orders=(*rules.orders, *orders_of(items)))
    labels = [_texts(item.at("metadata", "labels")) for item in nodes]
    present = {key for given in labels for key in given}
    for key in sorted(set(rules.tiers) - present):
        near = get_close_matches(key, present, n=1)
        hint = f'did you mean "{near[0]}"?' if near else ""
        file.top.problem(
            f'{named("labels")}: no node has the label "{visible(key)}"', hint
        )
    rows = label_levels(present, rules)
    of_nodes = Counter(key for given in labels for key in given)
    levels = tuple(
        replace(row.level, key=max(row.keys, key=of_nodes.__getitem__)) for row in rows
    )
    findings = Findings(source, levels, gpu=_product(labels))
    unused = unused_labels(labels, rows, rules)
    columns = _named(_domains(rows, labels, findings), labels, unused, findings)
    names = []
    for number, (item, given) in enumerate(zip(nodes, labels, strict=True)):
        _check_mix(item, given)
        name = _name(item)
        names.append(name)
        domains = tuple(column[number] for column in columns)
        facts = findings.add_node(item, name, domains)
        facts.unavailable = _reason(item)
        _add_demands(findings, item, name)
        _add_aliases(findings, item, given, name)
    findings.gpu_resource, gpus, notes = count_gpus(
        dict(zip(names, nodes, strict=True)),
        dict(zip(names, labels, strict=True)),
        slices,
    )
    file.fail_if_problems()
    for name, facts in findings.nodes.items():
        facts.gpus = gpus[name]
    findings.notes += notes
    findings.aliases = {a: name for a, name in findings.aliases.items() if name}
    _note(findings, {given.get(_ZONE, "") for given in labels} - {""})
    _note_unused(findings, unused)
    ordered = {key for order in rules.orders for key in order} - {HOSTNAME}
    if absent := sorted(ordered - present):
        findings.notes.append(f"labels of a Topology that no node has: {some(absent)}")
    return findings


def _product(labels: Sequence[dict[str, str]]) -> str:
    """What most nodes call their GPUs; empty where none does."""
    names = [
        next((given[key] for key in _PRODUCTS if key in given), "") for given in labels
    ]
    # Other instances have no GPUs in their names.
    types = [given.get(_INSTANCE_TYPE, "") for given in labels]
    pairs = zip(names, types, strict=True)
    return usual(name or (kind_of_gpu(own) and own) for name, own in pairs)


def _domains(
    rows: Sequence[LabelLevel], labels: Sequence[dict[str, str]], findings: Findings
) -> list[list[str]]:
    """Domain of every node at each level; empty where no label gives one."""
    columns = [
        [
            next((_known(given[key]) for key in row.keys if key in given), "")
            for given in labels
        ]
        for row in rows
    ]
    # From the outermost, so that a domain has the names of all those it lies in.
    for k in reversed(range(len(rows))):
        level = rows[k].level
        named = [m for m, row in enumerate(rows) if row.level.name == level.inside]
        if not (rows[k].within and named):
            continue
        outer = next((m for m in named if m > k), named[0])
        pairs = {p for p in zip(columns[k], columns[outer], strict=True) if all(p)}
        if len(pairs) > len({own for own, _ in pairs}):
            findings.assumed.append(f"{level.name} counts within {level.inside}")
            columns[k] = [
                f"{above}/{own}" if own and above else own
                for own, above in zip(columns[k], columns[outer], strict=True)
            ]
    return columns


def _named(
    columns: Sequence[list[str]],
    labels: Sequence[dict[str, str]],
    unused: list[str],
    findings: Findings,
) -> list[list[str]]:
    """The columns, with names of other labels in place of ids that go with them.

    Labels that are so used are taken out of ``unused``.
    """
    found = []
    for level, column in zip(findings.levels, columns, strict=True):
        if key := label_of_names(column, labels, unused):
            unused.remove(key)
            findings.notes.append(f"{plural(level.name, 2)} have the names of {key}")
            column = [given.get(key, "") for given in labels]
        found.append(column)
    return found


def _texts(labels: Value | None) -> dict[str, str]:
    """The labels or annotations that are texts and not empty."""
    if labels is None or not isinstance(labels.content, dict):
        return {}
    return {
        key: value
        for key, value in labels.content.items()
        if isinstance(value, str) and value and value.isprintable()
    }


def _known(value: str) -> str:
    return "" if value == _UNKNOWN else value


def _name(node: Value) -> str:
    metadata = node.at("metadata")
    if metadata is None:
        node.problem('the key "metadata" is missing')
        return ""
    return metadata.name("name", required=True)


def _check_mix(node: Value, labels: dict[str, str]) -> None:
    old = any(key.startswith(OLD_TOPOGRAPH) for key in labels)
    new = any(
        key.startswith(NEW_TOPOGRAPH) or TOPOGRAPH_TIER.fullmatch(key) for key in labels
    )
    if old and new:
        hint = "remove the labels of the topograph version that no longer runs"
        node.problem("labels of an old and a new topograph on one node", hint)


def _reason(node: Value) -> str:
    """Why the node must not be used; empty when it may."""
    spec = node.at("spec")
    if spec and spec.at("unschedulable") and spec.content["unschedulable"] is True:
        return "unschedulable"
    for taint in _taints(node):
        if taint.key.startswith(_NOT_READY):
            return f"taint {taint.key}"
    for condition in node.listed("status", "conditions"):
        ready = condition.name("status")
        if condition.name("type") == "Ready" and ready != "True":
            return f"not ready ({ready})"
    return ""


def _taints(node: Value) -> list[Taint]:
    """The taints that keep pods off the node."""
    taints = [
        Taint(taint.name("key"), taint.name("effect"), taint.name("value"))
        for taint in node.listed("spec", "taints")
    ]
    return [taint for taint in taints if taint.key and taint.effect in STOPS]


def _add_demands(findings: Findings, node: Value, name: str) -> None:
    """What pods must tolerate on the node, and the NICs that they can ask for."""
    for taint in _taints(node):
        findings.taints.setdefault(taint, []).append(name)
    offered = node.at("status", "allocatable")
    listed = offered.content if offered and offered.kind == "mapping" else {}
    for resource, value in listed.items():
        number = _QUANTITY.fullmatch(str(value))
        if number and int(number[1]) and _NETWORK.fullmatch(resource):
            offer = Resource(resource, int(number[1]) * (1000 if number[2] else 1))
            findings.resources.setdefault(offer, []).append(name)


def _add_aliases(
    findings: Findings, node: Value, labels: dict[str, str], name: str
) -> None:
    """Other names of a node: host name, and the cloud's instance id.

    One that several nodes share, such as ``localhost``, names none: it is left empty.
    """
    annotations = _texts(node.at("metadata", "annotations"))
    spec = node.at("spec")
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


def _note(findings: Findings, zones: set[str]) -> None:
    counts: Counter[str] = Counter()
    for taint, names in findings.taints.items():
        if not taint.key.startswith(_NOT_READY):
            counts[taint.key] += len(names)
    for key, count in counts.most_common(5):
        findings.notes.append(f"pods must tolerate the taint {key}, nodes: {count}")
    if len(zones) > 1:
        listed = some(sorted(zones))
        findings.notes.append(f"{len(zones)} zones, taken for alike: {listed}")


def _note_unused(findings: Findings, keys: list[str]) -> None:
    if keys:
        findings.unused["label"] = len(keys)
        findings.notes.append(
            f"labels that look like topology and are not used: {some(keys, 8)}; "
            f"{named('labels', {keys[0]: 'TIER'})} reads one"
        )


def read_orders(text: str, source: str) -> Findings:
    """The orders in a ``Topology``, or in a list of them."""
    findings = Findings(source)
    for document in _documents(text):
        file = parse_answer(document, source, yaml=True)
        listed = file.top.at("items")
        items = listed.items() if listed else [file.top]
        findings.label_orders += orders_of(items)
        file.fail_if_problems()
    if not findings.label_orders:
        hint = "it reads what kubectl get topologies -o yaml prints"
        raise InputError("no Topology in it", source, hint=hint)
    findings.notes += [
        f"labels, outermost first: {' > '.join(reversed(order))}"
        for order in findings.label_orders
    ]
    return findings


def orders_of(items: Sequence[Value]) -> tuple[tuple[str, ...], ...]:
    """Keys of each ``Topology`` among ``items``, innermost first."""
    return tuple(
        _keys(item)
        for item in items
        if isinstance(item.content, dict) and item.content.get("kind") == "Topology"
    )


def _documents(text: str) -> list[str]:
    """Documents of a YAML manifest that may hold a Topology, each where it stood."""
    found, start = [], 0
    for end in [*_SEPARATOR.finditer(text), None]:
        document = text[start : end.start() if end else len(text)]
        if "Topology" in document:
            found.append("\n" * text.count("\n", 0, start) + document)
        start = end.end() if end else start
    return found


def _keys(topology: Value) -> tuple[str, ...]:
    levels = topology.at("spec", "levels")
    if levels is None:
        topology.problem('the key "spec.levels" is missing')
        return ()
    found = [item.name("nodeLabel", required=True) for item in levels.items()]
    if len(found) > _MOST_LEVELS:
        levels.problem(f"more than {_MOST_LEVELS} levels")
    if len(set(found)) < len(found):
        levels.problem("a label comes twice")
    return tuple(found[:_MOST_LEVELS][::-1])
