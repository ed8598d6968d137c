"""A machine out of the tree of its nodes, a machine of the same kind, and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from placer.assumed import NVLINK, OVERSUBSCRIPTION, Assumption
from placer.base.errors import InputError, Problem, refuse
from placer.base.hostlist import fold
from placer.documents.recognise import Source, Text
from placer.documents.scalars import MAX_TEXT, visible
from placer.formats.machines.combine import Layer, Tree
from placer.formats.machines.findings import Findings, some
from placer.formats.machines.hardware import inside_of, oversubscribed, tiers
from placer.formats.machines.registry import FORMATS
from placer.topology import read as topology_files
from placer.topology.build import Nodes, assumed_uplinks, build, digest, uplink_tiers
from placer.topology.gpu_kinds import Gpu, hosts_of_gpu
from placer.topology.kubernetes import GPU, Kubernetes
from placer.topology.model import MAX_GPUS_OF_NODE, Topology

_FOREIGN = 'the formats of "placer topology formats"'
_APART = Assumption(
    NVLINK, "host", "no source says which hosts share NVLink", "-t fabric:FILE"
)


@dataclass(frozen=True)
class Given:
    """Arguments of `placer.formats.machines.machine.read_topology`."""

    # hardware, gpu, gpus_per_node and labels: as there.
    hardware: Source | None = None
    gpu: str | None = None
    gpus_per_node: int | None = None
    # How many times the links into a tier are oversubscribed.
    ratios: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kind(self) -> Topology | None:
        """The machine whose hosts and links are meant; None where none is."""
        named = self.hardware if self.gpu is None else hosts_of_gpu(self.gpu)
        return None if named is None else topology_files.read_topology(named)

    def with_assumed(
        self, machine: Topology, kind: Topology, assumed: Iterable[Assumption]
    ) -> Topology:
        """The machine with what was assumed of it, its uplinks among that.

        Only a machine that is named as the hardware says how these are.
        """
        keys = {each.key for each in kind.assumed}
        says = uplink_tiers(kind) and OVERSUBSCRIPTION not in keys
        if not (self.ratios or (self.hardware is not None and says)):
            assumed = (*assumed, *assumed_uplinks(machine))
        if machine.scale_up_tier < 1 <= kind.scale_up_tier:
            assumed = (*assumed, _APART)
        return replace(machine, assumed=tuple(assumed))


def plain_machine(plain: Sequence[Topology], count: int, given: Given) -> Topology:
    """A machine that is complete by itself, with uplinks and GPUs that are given."""
    machine = plain[0]
    _check(machine, count, given)
    if given.gpu is not None and given.kind is not None:
        machine = replace(machine, gpu=given.kind.gpu)
    if not given.ratios:
        return machine
    sources = [*machine.sources]
    tiers = oversubscribed(machine.tiers, given.ratios, sources)
    machine = replace(machine, tiers=tuple(tiers), sources=tuple(sources))
    left = tuple(a for a in machine.assumed if a.key != OVERSUBSCRIPTION)
    return replace(machine, assumed=left, sha256=digest(machine))


def _check(machine: Topology, count: int, given: Given) -> None:
    whole = f"the topology {machine.name}"
    own = {
        "hardware": given.hardware,
        "gpus_per_node": given.gpus_per_node,
        "label": given.labels or None,
        "gpu": given.gpu if machine.gpu != Gpu() else None,
    }
    problems = [
        Problem(
            f"{whole} has its own bandwidths and GPUs",
            key=key,
            hint=f"leave it out: it serves {_FOREIGN}",
        )
        for key, value in own.items()
        if value is not None
    ]
    if count > 1:
        message = f"{whole} is complete and cannot be joined with others"
        hint = f"give it alone; what can be joined are {_FOREIGN}"
        problems.append(Problem(message, key="topology", hint=hint))
    refuse(problems)


Fact = TypeVar("Fact")


def machine_of(
    tree: Tree,
    findings: Sequence[Findings],
    kind: Topology,
    given: Given,
    name: str,
    texts: Sequence[Text],
    tell: Callable[[str], None],
    names: Sequence[str] = (),
) -> Topology:
    """The machine of ``tree`` with nodes and links of ``kind``.

    ``findings``: what it was made of; none of a text. ``texts``: what the findings were
    read from. ``tell``: told what a user should know. ``names``: names of all tiers,
    the node first, instead of those of ``tree`` and ``kind``.
    """
    node = inside_of(findings, kind)
    usual = node.gpus or int(kind.gpus_of_node.max())
    usual = usual if given.gpus_per_node is None else given.gpus_per_node
    if not 1 <= usual <= MAX_GPUS_OF_NODE:
        message = f"expected 1 to {MAX_GPUS_OF_NODE}, got {usual}"
        raise InputError(message, key="gpus_per_node")
    levels = [*tree.levels]
    if not levels or len(levels[-1].names) > 1:
        levels.append(_whole(len(tree.nodes), [level.name for level in levels]))
    built, figures = tiers(levels, kind, node, findings)
    depth = len(node.tiers) - 1
    for t, own in enumerate(names, start=depth):
        built[t] = replace(built[t], name=own)
    built = oversubscribed(built, given.ratios, figures)
    gpus = np.array([usual if n is None else n for n in tree.gpus], dtype=np.int64)
    unlike = {
        name: reason
        for name, count in zip(tree.nodes, gpus.tolist(), strict=True)
        if (reason := node.unlike(count))
    }
    if islands := node.islands(built[:depth], gpus):
        gpus = islands.gpus.sum(axis=1)
    numbers = [np.arange(len(tree.nodes)), *(level.domain_of_node for level in levels)]
    nodes = Nodes(
        np.stack(numbers).astype(np.int64),
        (tree.nodes, *(level.names for level in levels)),
        gpus,
        np.ones(len(gpus)),
        unlike | tree.unavailable,
        islands,
    )
    if nodes.problem:
        for remark in _left_out(nodes.left_out):
            tell(remark)
        hint = next(iter(unlike.values()), "")
        shown = texts[0].shown if texts else ""
        raise InputError(nodes.problem, shown, hint=hint)
    sources = [
        f"nodes: {text.format} {visible(Path(text.shown).name)}" for text in texts
    ]
    sources += [*figures, *kind.sources]
    affinity = node.affinity.of_node(node.gpus or int(gpus.max()))
    machine = replace(
        build(name, built[depth:], nodes, sources),
        affinity=affinity,
        gpu=kind.gpu,
        scheduler=next(filter(None, (FORMATS[t.format].scheduler for t in texts)), ""),
    )
    keys = {
        tier.name: level.key
        for tier, level in zip(built[depth + 1 :], levels, strict=True)
    }
    known = pod_facts(findings, keys, machine.node_names)
    machine = replace(machine, kubernetes=known)
    left_out = _left_out(machine.unavailable)
    for remark in (*node.notes, *left_out, *_doubts(machine, kind)):
        tell(remark)
    return machine


def _whole(num_nodes: int, taken: Sequence[str]) -> Layer:
    """The level of the whole machine."""
    name = "machine" if "cluster" in taken else "cluster"
    everything = np.zeros(num_nodes, dtype=np.int64)
    return Layer(
        name=name, source="the whole machine", domain_of_node=everything, names=(name,)
    )


def _left_out(unavailable: Mapping[str, str]) -> list[str]:
    """The nodes that are no part of the machine, a note for each reason."""
    by_reason: dict[str, list[str]] = {}
    for node, reason in unavailable.items():
        by_reason.setdefault(reason, []).append(node)
    return [
        f"nodes left out, {reason}: {len(nodes)} ({some(nodes)})"
        for reason, nodes in by_reason.items()
    ]


def _doubts(machine: Topology, kind: Topology) -> list[str]:
    """Where the machine's nodes or NVLink domains do not look like its hardware's."""
    notes = []
    most, usual = int(machine.gpus_of_node.max()), int(kind.gpus_of_node.max())
    if most > usual:
        notes.append(f"a node has {most} GPUs, at most {usual} on {kind.name}")
    if kind.scale_up_tier < 1:
        return notes
    if machine.scale_up_tier < 1:
        return [
            *notes,
            "no source says which nodes share NVLink, as they do on "
            f"{kind.name}: every node is taken for a domain of its own",
        ]
    found, usual = _gpus_of_domains(machine), _gpus_of_domains(kind)
    if found > usual:
        tier = machine.tiers[machine.scale_up_tier].name
        notes.append(
            f"a {tier} has {found} GPUs on NVLink, at most {usual} on {kind.name}"
        )
    return notes


def _gpus_of_domains(machine: Topology) -> int:
    """GPUs of the largest scale-up domain."""
    domains = machine.domain_of_node[machine.scale_up_tier]
    return int(np.bincount(domains, weights=machine.gpus_of_node).max())


def pod_facts(
    findings: Sequence[Findings], labels: Mapping[str, str], nodes: Sequence[str]
) -> Kubernetes:
    """What is known of the nodes that can be used.

    ``labels``: key of the label of each tier; empty where it has none. ``nodes``: the
    nodes that can be used.
    """
    host_of = {own: host for found in findings for own, host in found.aliases.items()}
    return Kubernetes(
        next((found.gpu_resource for found in findings if found.gpu_resource), GPU),
        {tier: key for tier, key in labels.items() if key},
        tuple(_of(nodes, [found.taints for found in findings], host_of)),
        tuple(_of(nodes, [found.resources for found in findings], host_of)),
    )


def _of(
    nodes: Sequence[str],
    found: Sequence[Mapping[Fact, Sequence[str]]],
    host_of: Mapping[str, str],
) -> Iterator[tuple[Fact, str]]:
    """Facts of the nodes, each with its host list, empty where all nodes have it."""
    for fact, names in (item for facts in found for item in facts.items()):
        own = {host_of.get(name, name) for name in names}
        concerned = [node for node in nodes if node in own]
        if len(concerned) == len(nodes):
            yield fact, ""
        elif concerned:
            yield from ((fact, text) for text in fold(concerned, MAX_TEXT))
