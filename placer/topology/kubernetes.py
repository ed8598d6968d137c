"""What the pods of a job must say on the nodes of a Kubernetes cluster.

It changes no placement: labels that give the tiers, taints of the nodes, and what they
offer beside GPUs. The manifests that are written for a plan repeat it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from placer.base.hostlist import expand
from placer.documents import closest

if TYPE_CHECKING:
    from placer.documents import Section

STOPS = ("NoSchedule", "NoExecute")
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Taint:
    """What keeps pods off nodes that do not tolerate it.

    Attributes
    ----------
    key, value : str
    effect : str
        One of `STOPS`.
    """

    key: str
    effect: str
    value: str = ""

    def to_document(self) -> dict[str, Any]:
        """As the topology format and Kubernetes have it."""
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}


@dataclass(frozen=True)
class Resource:
    """So many of something that pods can ask for, such as ``rdma/ib``."""

    name: str
    count: int

    def to_document(self) -> dict[str, Any]:
        """As the topology format has it."""
        return {"name": self.name, "count": self.count}


@dataclass(frozen=True)
class Kubernetes:
    """What is known of a cluster.

    Attributes
    ----------
    gpu : str
        The resource of its GPUs.
    labels : mapping of str to str
        Key of the node label whose values are the domains of a tier, by tier.
    taints : tuple of (Taint, str)
        Each with the host list of its nodes, which is empty where all have it.
    resources : tuple of (Resource, str)
        The same.
    """

    gpu: str = GPU
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[tuple[Taint, str], ...] = ()
    resources: tuple[tuple[Resource, str], ...] = ()

    def taints_of(self, nodes: Iterable[str]) -> list[Taint]:
        """The taints of any of the nodes, each once."""
        wanted = set(nodes)
        return [
            *dict.fromkeys(
                taint
                for taint, hosts in self.taints
                if not hosts or not wanted.isdisjoint(self._names[hosts])
            )
        ]

    def resources_of(self, nodes: Iterable[str]) -> tuple[dict[str, int], list[str]]:
        """What all of the nodes offer, at least so many; and what only some do."""
        wanted = set(nodes)
        least: dict[str, int] = {}
        having: dict[str, set[str]] = {}
        for resource, hosts in self.resources:
            own = wanted & self._names[hosts] if hosts else wanted
            if own:
                name, count = resource.name, resource.count
                least[name] = min(count, least.get(name, count))
                having[name] = own | having.get(name, set())
        some = [name for name, own in having.items() if own != wanted]
        return {n: count for n, count in least.items() if n not in some}, some

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        """The nodes of each host list."""
        lists = [hosts for _, hosts in (*self.taints, *self.resources)]
        return {hosts: frozenset(expand(hosts)) for hosts in lists if hosts}

    def to_document(self) -> dict[str, Any]:
        """The key ``kubernetes`` of the topology format; empty for nothing known."""
        parts: dict[str, Any] = {
            "gpu": self.gpu if self.gpu != GPU else "",
            "labels": dict(self.labels),
            "taints": [*_entries(self.taints)],
            "resources": [*_entries(self.resources)],
        }
        known = {key: value for key, value in parts.items() if value}
        return {"kubernetes": known} if known else {}


def decode_kubernetes(section: Section, tiers: Sequence[str]) -> Kubernetes:
    """The key ``kubernetes`` of a topology, checked; problems go to its document.

    ``tiers`` are those of the machine.
    """
    labels = section.section("labels")
    keys = {tier: key.text() for tier, key in labels.entries()}
    for tier in keys.keys() - set(tiers):
        hint = closest(tier, tiers) or f"tiers: {', '.join(tiers)}"
        labels.problem("there is no such tier", tier, hint, is_key=True)
    return Kubernetes(
        section.text("gpu", GPU),
        keys,
        tuple(_decode_taint(v.section()) for v in section.items("taints")),
        tuple(_decode_resource(v.section()) for v in section.items("resources")),
    )


def _decode_taint(section: Section) -> tuple[Taint, str]:
    value = section.text("value", "")
    taint = Taint(section.text("key"), section.choice("effect", STOPS), value)
    return taint, _hosts(section)


def _decode_resource(section: Section) -> tuple[Resource, str]:
    resource = Resource(section.text("name"), section.integer("count"))
    return resource, _hosts(section)


def _hosts(section: Section) -> str:
    hosts = section.text("hosts", "")
    try:
        expand(hosts)
    except ValueError as error:
        section.problem(str(error), "hosts")
        return ""
    return hosts


def _entries(facts: Iterable[tuple[Taint | Resource, str]]) -> Iterator[dict[str, Any]]:
    for fact, hosts in facts:
        yield fact.to_document() | ({"hosts": hosts} if hosts else {})
