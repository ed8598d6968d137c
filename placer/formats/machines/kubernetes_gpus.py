"""GPUs of Kubernetes nodes: what they offer, DRA devices, and counts in labels.

Device plugins offer ``nvidia.com/gpu`` or ``amd.com/gpu`` in ``status.allocatable``.
DRA drivers publish devices in ``ResourceSlice`` objects, those of a pool's highest
generation alone (Kubernetes, "Dynamic Resource Allocation"); whole GPUs have the type
``gpu`` (driver ``gpu.nvidia.com``) or ``amdgpu`` (ROCm/k8s-gpu-dra-driver,
docs/driver-attributes.md), others are parts of one. Labels count what is in a host,
whether or not it may be asked for: those of the GPU operator, CoreWeave, Karpenter, EKS
and GKE, and of AMD's node labeller, which counts by device id.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placer.documents import Value
from placer.formats.machines.findings import some
from placer.topology.kubernetes import STOPS

_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
# Drivers of GPUs, and the type of a whole one.
_WHOLE = {"gpu.nvidia.com": "gpu", "gpu.amd.com": "amdgpu"}
_COUNTS = (
    "nvidia.com/gpu.count",
    "gpu.nvidia.com/count",
    "karpenter.k8s.aws/instance-gpu-count",
    "eks.amazonaws.com/instance-gpu-count",
)
# A label of the same name counts TPUs where there is none of a GPU's kind.
_GKE_KIND = "cloud.google.com/gke-accelerator"
_GKE_COUNT = "cloud.google.com/gke-accelerator-count"
_AMD_COUNT = re.compile(r"(?:beta\.)?amd\.com/gpu\.device-id\.[0-9a-fA-F]{1,8}")
_NUMBER = re.compile(r"[0-9]{1,3}")


def count_gpus(
    nodes: Mapping[str, Value],
    labels: Mapping[str, Mapping[str, str]],
    slices: Sequence[Value],
) -> tuple[str, dict[str, int | None], list[str]]:
    """What pods call GPUs, those of every node, and what to note.

    A node has None where nothing counts the GPUs of any.

    ``nodes``: by name. ``labels``: of each of the nodes. ``slices``: the
    ``ResourceSlice`` objects.
    """
    notes: list[str] = []
    offered = {name: _allocatable(node) for name, node in nodes.items()}
    devices = _devices(slices, notes)
    in_labels = {name: _labelled(given) for name, given in labels.items()}
    found: dict[str, int | None] = {}
    differ, shared, idle = [], [], []
    for name in nodes:
        told = [n for n in (offered[name], devices.get(name)) if n]
        known = offered[name] if name not in devices else devices[name]
        found[name] = min(told) if told else known
        count, most = found[name], in_labels[name]
        if len(set(told)) > 1:
            differ.append(name)
        if count and most and count > most:
            found[name] = most
            shared.append(name)
        if most and not count:
            idle.append(name)
    if all(count is None for count in found.values()):
        if idle:
            notes.append(
                "no node offers GPUs: they are counted by labels, of nodes: "
                f"{len(idle)} ({some(idle)})"
            )
        found, idle = {**in_labels}, []
    for names, words in (
        (differ, "nodes whose DRA devices are not as many as they offer, fewer count"),
        (shared, "nodes that offer more GPUs than a label counts, shared ones"),
        (idle, "nodes with a label that counts GPUs, which offer none"),
    ):
        if names:
            notes.append(f"{words}: {len(names)} ({some(names)})")
    # Nodes that offer no GPUs have none, if any node offers some.
    if any(count is not None for count in found.values()):
        found = {name: count or 0 for name, count in found.items()}
    return _called(nodes.values()), found, notes


def _called(nodes: Iterable[Value]) -> str:
    """The resource of GPUs that most nodes offer; empty where none does."""
    offers = Counter(
        resource
        for node in nodes
        for resource in _RESOURCES
        if node.at("status", "allocatable", resource) is not None
    )
    return max(offers, key=offers.__getitem__, default="")


def _allocatable(node: Value) -> int | None:
    """GPUs that pods may ask for; None where the node offers no such resource."""
    found = None
    for resource in _RESOURCES:
        item = node.at("status", "allocatable", resource)
        if item is None:
            continue
        text = str(item.content)
        if not _NUMBER.fullmatch(text):
            item.problem(f"expected a number of GPUs, got {text[:40]!r}")
            return None
        found = (found or 0) + int(text)
    return found


def _labelled(labels: Mapping[str, str]) -> int | None:
    """GPUs that a label counts."""
    keys = [*_COUNTS, *([_GKE_COUNT] if _GKE_KIND in labels else [])]
    for key in keys:
        if _NUMBER.fullmatch(labels.get(key, "")):
            return int(labels[key])
    by_device = {
        key.removeprefix("beta."): int(value)
        for key, value in labels.items()
        if _AMD_COUNT.fullmatch(key) and _NUMBER.fullmatch(value)
    }
    return sum(by_device.values()) or None


def _devices(slices: Sequence[Value], notes: list[str]) -> dict[str, int]:
    """Whole GPUs of every node that a DRA driver of GPUs publishes some for."""
    pools: dict[tuple[str, str], list[tuple[int, Value]]] = defaultdict(list)
    for item in slices:
        spec = item.at("spec")
        driver = spec.name("driver") if spec else ""
        if spec and driver in _WHOLE:
            pool = spec.name("pool", "name"), _integer(spec.at("pool", "generation"))
            pools[driver, pool[0]].append((pool[1], spec))
    gpus: dict[str, set[tuple[str, str]]] = defaultdict(set)
    cut: list[str] = []
    nowhere = 0
    for (driver, pool_name), listed in pools.items():
        newest = max(generation for generation, _ in listed)
        specs = [spec for generation, spec in listed if generation == newest]
        if any(
            _integer(s.at("pool", "resourceSliceCount")) > len(specs) for s in specs
        ):
            cut.append(pool_name)
        for spec in specs:
            whole = {(driver, own) for own in _whole_gpus(spec, _WHOLE[driver])}
            if node := spec.name("nodeName"):
                gpus[node] |= whole
            else:
                nowhere += len(whole)
    if cut:
        notes.append(f"DRA pools with slices that are not in it: {some(cut)}")
    if nowhere:
        notes.append(f"GPUs of DRA that are on no one node, left out: {nowhere}")
    return {node: len(found) for node, found in gpus.items()}


def _whole_gpus(spec: Value, kind: str) -> set[str]:
    """Ids of the whole GPUs of a slice that nothing keeps pods from."""
    found = set()
    for device in spec.listed("devices"):
        if not isinstance(device.content, dict):
            device.problem("expected a mapping")
            continue
        # Versions before v1 have it one level down.
        basic = device.at("basic") or device
        attributes = basic.at("attributes")
        told = _mapping(attributes.content if attributes else None)
        texts = {
            key.rpartition("/")[2]: text
            for key, value in told.items()
            if isinstance(text := _mapping(value).get("string"), str)
        }
        stopped = any(taint.name("effect") in STOPS for taint in basic.listed("taints"))
        if texts.get("type", kind) == kind and not stopped:
            own = texts.get("uuid") or texts.get("pciBusID") or texts.get("pciAddr")
            found.add(own or device.name("name"))
    return found


def _mapping(content: Any) -> Mapping[str, Any]:
    return content if isinstance(content, dict) else {}


def _integer(item: Value | None) -> int:
    content = item.content if item else 0
    text = str(content)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
