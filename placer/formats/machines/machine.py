"""A topology from whatever describes the machine: the way in to all readers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from placer.assumed import HARDWARE, Assumption
from placer.base.arguments import (
    NOTHING,
    PATH,
    sequence,
    takes,
)
from placer.base.errors import InputError, Problem, refuse
from placer.base.units import counted, format_bandwidth, format_seconds
from placer.documents.recognise import Source, checked_name
from placer.formats.machines.assumed import RACK_NODES, assumed_hosts
from placer.formats.machines.built import Given, machine_of, plain_machine
from placer.formats.machines.combine import Layer, Tree, combine
from placer.formats.machines.findings import Findings
from placer.formats.machines.hardware import ISLAND
from placer.formats.machines.joined import renamed
from placer.formats.machines.node_labels import LabelRules
from placer.formats.machines.registry import FORMATS
from placer.formats.machines.sources import open_source, read_all
from placer.topology import read as topology_files
from placer.topology.gpu_kinds import TRAY_GPUS, USUAL_IN_RACKS, HostHint, hosts_of_gpu
from placer.topology.model import Topology
from placer.topology.synthetic import (
    Laid,
    is_synthetic,
    laid_out,
    name_of,
    read_synthetic,
)

_SOURCES = PATH | sequence("a list of paths", PATH)
_RACK = "rack"
# No link is slower (B/s) or takes longer (s).
_SLOWEST, _LONGEST = 1e6, 1.0


@takes(source=_SOURCES, hardware=PATH | NOTHING)
def read_topology(
    source: Source | Sequence[Source],
    *,
    hardware: Source | None = None,
    gpu: str | None = None,
    gpus_per_node: int | None = None,
    oversubscription: Mapping[str, float] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str | None = None,
    hint: Callable[[], HostHint] | None = None,
    note: Callable[[str], None] | None = None,
) -> Topology:
    """The machine that ``source`` describes.

    What no source and no argument says is assumed: ``assumed`` of the machine has it.

    Parameters
    ----------
    source : str, path, or sequence of them
        A preset name, a synthetic string (``block:16 rack:8 node:18 gpu:4``), a file of
        the topology format, or ``-`` for standard input. Or what other programs know of
        the machine, as ``FORMAT:FILE`` (``slurm:topology.conf``) or a file whose
        content shows its format; several of these are joined by node.
    hardware : str or path, optional
        A topology whose tiers give the bandwidths, latencies and GPUs a node that texts
        and other formats lack.
    gpu : str, optional
        Name of the GPUs, such as ``H100``: the usual hosts of them are the hardware. Of
        a topology file that does not say it, what one of them holds and can do.
    gpus_per_node : int, optional
        GPUs of the nodes for which no source counts them, instead of the hardware's.
    oversubscription : mapping of str to float, optional
        How many times the links into each of these tiers are oversubscribed, by its
        name, instead of what source or hardware say.
    labels : mapping of str to str, optional
        Tier that each of these labels of Kubernetes nodes gives, by the label's key;
        an empty one leaves the label out. A tier called as one of the hardware's NVLink
        tiers is one too.
    name : str, optional
        Name of the machine; by default that of the first file.
    hint : callable, optional
        Asked what the job says of its hosts, where no source does.
    note : callable, optional
        Called with everything a user should know: a line for each source with what was
        read and assumed, and what was not understood, missing, or inferred. By default
        each of the latter is a `UserWarning`.

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        If a source cannot be read, or sources or arguments contradict each other.

    Examples
    --------
    >>> placer.read_topology("rack:4 node:9 gpu:8").num_gpus
    288
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not sources:
        raise InputError("no topology is given")
    if gpu is not None and hardware is not None:
        message = "the hardware says which GPUs it has"
        raise InputError(message, key="gpu", hint="give one of the two")
    given = Given(hardware, gpu, gpus_per_node, oversubscription or {}, labels or {})
    tell = note or _warn
    if len(sources) == 1 and is_synthetic(text := os.fspath(sources[0])):
        machine = machine_of_text(text, given, tell)
        return machine if name is None else replace(machine, name=checked_name(name))
    opened = [open_source(one) for one in sources]
    plain = [found for found in opened if isinstance(found, Topology)]
    if plain:
        machine = plain_machine(plain, len(opened), given)
        _ask_for_units(machine, tell)
        return machine if name is None else replace(machine, name=checked_name(name))
    texts = [found for found in opened if not isinstance(found, Topology)]
    kind = given.kind
    findings = read_all(texts, _rules(labels, kind), tell)
    assumed: tuple[Assumption, ...] = ()
    if kind is None:
        hosts = assumed_hosts(findings, gpus_per_node, hint() if hint else HostHint())
        kind = topology_files.read_topology(hosts.preset)
        gpus_per_node, assumed = hosts.gpus, hosts.assumed
        if any(FORMATS[text.format].takes_labels for text in texts):
            # Labels may name what is NVLink on this hardware; the notes are told.
            findings = read_all(texts, _rules(labels, kind), lambda _remark: None)
    tree = _combined(findings, kind.scale_up_tier >= 1, tell)
    if note:
        for line in summaries(findings, tree, kind, gpus_per_node):
            note(line)
    for remark in tree.notes:
        tell(remark)
    own = texts[0].stem if name is None else checked_name(name)
    given = replace(given, gpus_per_node=gpus_per_node)
    machine = machine_of(tree, findings, kind, given, own, texts, tell)
    return given.with_assumed(machine, kind, assumed)


def _ask_for_units(machine: Topology, tell: Callable[[str], None]) -> None:
    """Tell tiers that are as slow as no link is, as where a file leaves out a unit."""
    for tier in machine.tiers:
        if tier.bandwidth < _SLOWEST or tier.latency > _LONGEST:
            speed, wait = format_bandwidth(tier.bandwidth), format_seconds(tier.latency)
            words = f"the {tier.name} tier has {speed} and {wait} of latency"
            tell(f"{machine.name}: {words}: is a unit missing?")


def read_alone(
    source: Source, note: Callable[[str], None] | None = None
) -> Topology | Tree:
    """What one source says by itself, without hardware.

    Returns
    -------
    Topology or Tree
        A complete topology as it is; of another format the nodes that it lists, none
        where it describes those of other sources.
    """
    opened = open_source(source)
    if isinstance(opened, Topology):
        return opened
    tell = note or _warn
    findings = read_all([opened], tell=tell)
    if not any(found.nodes for found in findings):
        return Tree((), [], [], {})
    tree = _combined(findings, False, tell)
    for remark in tree.notes:
        tell(remark)
    return tree


def _combined(
    findings: Sequence[Findings], multi_node_nvlink: bool, tell: Callable[[str], None]
) -> Tree:
    """One tree; what it has to say is told at once where it cannot be made."""
    notes: list[str] = []
    try:
        return combine(findings, multi_node_nvlink, notes)
    except InputError:
        for remark in notes:
            tell(remark)
        raise


def _rules(labels: Mapping[str, str] | None, kind: Topology | None) -> LabelRules:
    """What labels mean to the user, and which tiers are NVLink on this hardware."""
    tiers = kind.tiers[1 : kind.scale_up_tier + 1] if kind else ()
    return LabelRules(labels or {}, nvlink_tiers=frozenset(t.name for t in tiers))


def _warn(remark: str) -> None:
    warnings.warn(remark, stacklevel=3)


def machine_of_text(text: str, given: Given, tell: Callable[[str], None]) -> Topology:
    """The machine that a text describes, with the hardware that is given.

    Without any, 4-GPU hosts in racks are those of NVLink racks; others have the figures
    of `read_synthetic`.
    """
    refuse(
        Problem("the text says it", key=key, hint="leave it out")
        for key, value in (
            ("gpus_per_node", given.gpus_per_node),
            ("label", given.labels),
        )
        if value
    )
    kind = given.kind
    found = None if kind else assumed_racks(text)
    if kind is None and found is None:
        return plain_machine([read_synthetic(text)], 1, given)
    preset, assumed = found or ("", ())
    kind = kind or topology_files.read_topology(preset)
    laid = laid_out(text)
    tree = text_tree(laid, multi_node_nvlink=kind.scale_up_tier >= 1)
    name = name_of(text)
    machine = machine_of(tree, (), kind, given, name, (), tell, laid.tiers)
    return given.with_assumed(machine, kind, assumed)


def text_tree(laid: Laid, multi_node_nvlink: bool) -> Tree:
    """The nodes of a text.

    What lies right around the nodes is an NVLink domain where hardware has such, but
    for the cluster around nodes that are in nothing else.
    """
    is_flat = len(laid.tiers) == 2 and laid.tiers[1] == "cluster"
    nvlink = multi_node_nvlink and not is_flat
    rows = zip(laid.tiers, laid.domains, laid.names, strict=True)
    layers = [
        Layer(
            name=name,
            scale_up=level == 1 and nvlink,
            source="the text",
            domain_of_node=of_node,
            names=names,
        )
        for level, (name, of_node, names) in enumerate(rows)
        if level
    ]
    nodes = laid.names[0]
    return Tree(nodes, layers, [laid.gpus] * len(nodes), {})


def assumed_racks(text: str) -> tuple[str, tuple[Assumption, ...]] | None:
    """The hardware of hosts of 4 GPUs in racks of NVLink; None of other texts."""
    laid = laid_out(text)
    if laid.gpus != TRAY_GPUS or laid.tiers[1] != _RACK:
        return None
    if _nodes_a_rack(laid) not in RACK_NODES:
        return None
    why = f"racks of {_nodes_a_rack(laid)} hosts of 4 GPUs are NVLink domains"
    links = Assumption(HARDWARE, USUAL_IN_RACKS, why, "--gpu NAME")
    return hosts_of_gpu(USUAL_IN_RACKS), (links,)


def _nodes_a_rack(laid: Laid) -> int:
    return len(laid.names[0]) // len(laid.names[1])


def summaries(
    findings: Sequence[Findings],
    tree: Tree,
    hardware: Topology,
    gpus_per_node: int | None,
) -> Iterator[str]:
    """A line for each source: nodes, GPUs, domains by tier, assumptions, leftovers.

    ``tree``: what they are together. ``gpus_per_node``: GPUs of nodes that no source
    counts, instead of the hardware's.
    """
    gpus = dict(zip(tree.nodes, tree.gpus, strict=True))
    usual = gpus_per_node or int(hardware.gpus_of_node.max())
    for found in renamed(findings):
        nodes = found.nodes
        known = sum(usual if gpus[name] is None else gpus[name] or 0 for name in nodes)
        sound = sum(1 for facts in nodes.values() if not facts.unavailable)
        islands = sound * len(found.islands)
        size = ", ".join(
            counted(number, what)
            for number, what in (
                (len(nodes), "node"),
                (islands, ISLAND),
                (known, "GPU"),
            )
            if number or what != ISLAND
        )
        alike = _nvlink(found, tree)
        uncounted = sum(gpus[name] is None for name in nodes)
        if uncounted and gpus_per_node is None:
            on_some = f"on {counted(uncounted, 'node')}"
            where = "a node" if uncounted == len(nodes) else on_some
            alike.insert(0, f"{counted(usual, 'GPU')} {where}")
        parts = (
            size if nodes else _no_nodes(found),
            _domains(found),
            f"assumed {', '.join(alike)}, as on {hardware.name}" if alike else "",
            f"assumed that {', '.join(found.assumed)}" if found.assumed else "",
            _left_out(found),
        )
        yield f"{found.format}:{found.source}: {'; '.join(p for p in parts if p)}"


def _no_nodes(found: Findings) -> str:
    if found.aliases:
        return counted(len(found.aliases), "name")
    if found.label_orders:
        return f"{counted(sum(map(len, found.label_orders)), 'label')} in order"
    return "no nodes"


def _domains(found: Findings) -> str:
    """How many domains each level has: ``4 leaves, 1 spine``."""
    columns = zip(*(facts.domains for facts in found.nodes.values()), strict=True)
    counts = [len(set(column) - {""}) for column in columns]
    named = zip(found.levels, counts, strict=False)
    return ", ".join(counted(count, level.name) for level, count in named if count)


def _nvlink(found: Findings, tree: Tree) -> list[str]:
    """Levels that the kind of node made NVLink domains."""
    unsure = {level.name for level in found.levels if level.scale_up is None}
    return [
        f"NVLink within a {layer.name}"
        for layer in tree.levels
        if layer.source == found.source and layer.scale_up and layer.name in unsure
    ]


def _left_out(found: Findings) -> str:
    counts = {"line": len(found.ignored)} if found.ignored else {}
    counts |= found.unused
    listed = ", ".join(counted(n, what) for what, n in counts.items())
    return f"ignored {listed}" if listed else ""
