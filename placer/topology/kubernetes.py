"""What the pods of a job must say on the nodes of a Kubernetes cluster.

It changes no placement: labels that give the tiers, taints of the nodes, and what they
offer beside GPUs. The manifests that are written for a plan repeat it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from placer.base.hostlist import expand
from placer.documents import Section, closest, keys
from placer.documents.keys import TEXT, Key, integer, list_of, map_of, one_of
from placer.documents.records import entries, nested, read

STOPS = ("NoSchedule", "NoExecute")
GPU = "nvidia.com/gpu"


_HOSTS = Key(TEXT, "the nodes that have it", "", absent="all nodes", called="hosts")


@dataclass(frozen=True)
class Taint:
    """What keeps pods off nodes that do not tolerate it."""

    key: str = keys.key(TEXT, "its key")
    effect: str = keys.key(one_of(STOPS), "what it stops")
    value: str = keys.key(TEXT, "its value", "", unsaid=True)

    hosts = _HOSTS


@dataclass(frozen=True)
class Resource:
    """So many of something that pods can ask for, such as ``rdma/ib``."""

    name: str = keys.key(TEXT, "what a node offers beside GPUs, such as `rdma/ib`")
    count: int = keys.key(integer(), "how many")

    hosts = _HOSTS


@dataclass(frozen=True)
class Kubernetes:
    """What is known of a cluster.

    Taints and resources have the host list of their nodes, empty where all have them.
    """

    gpu: str = keys.key(TEXT, "the resource of the GPUs", GPU, unsaid=True)
    labels: Mapping[str, str] = keys.key(
        map_of(TEXT),
        "key of the node label whose values are the domains of the tier",
        dict,
        unsaid=True,
    )
    taints: tuple[tuple[Taint, str], ...] = keys.key(
        list_of(nested(Taint)),
        "`key`, `value` (may be left out), `effect` (`NoSchedule` or `NoExecute`) and "
        "`hosts`, the nodes that have it (all)",
        (),
    )
    resources: tuple[tuple[Resource, str], ...] = keys.key(
        list_of(nested(Resource)),
        "`name` and `count` of what a node offers beside GPUs, and `hosts`",
        (),
    )

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
        return entries(
            self,
            taints=[*_entries(self.taints)] or None,
            resources=[*_entries(self.resources)] or None,
        )


Fact = TypeVar("Fact", Taint, Resource)


def decode_kubernetes(section: Section, tiers: Sequence[str]) -> Kubernetes:
    """The key ``kubernetes`` of a topology, checked; problems go to its document.

    ``tiers`` are those of the machine.
    """
    found = read(
        section,
        Kubernetes,
        taints=tuple(_decode(v.section(), Taint) for v in section.items("taints")),
        resources=tuple(
            _decode(v.section(), Resource) for v in section.items("resources")
        ),
    )
    for tier in found.labels.keys() - set(tiers):
        hint = closest(tier, tiers) or f"tiers: {', '.join(tiers)}"
        labels = section.section("labels")
        labels.problem("there is no such tier", tier, hint, is_key=True)
    return found


def _decode(section: Section, fact: type[Fact]) -> tuple[Fact, str]:
    return read(section, fact), _hosts(section)


def _hosts(section: Section) -> str:
    hosts: str = _HOSTS.take(section)
    try:
        expand(hosts)
    except ValueError as error:
        section.problem(str(error), "hosts")
        return ""
    return hosts


def _entries(facts: Iterable[tuple[Taint | Resource, str]]) -> Iterator[dict[str, Any]]:
    for fact, hosts in facts:
        yield entries(fact) | ({"hosts": hosts} if hosts else {})
