"""A topology from whatever describes the machine: the way in to all readers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placer.arguments import (
    CALL,
    INTEGER,
    NOTHING,
    NUMBER_BY_NAME,
    PATH,
    TEXT,
    TEXT_BY_NAME,
    sequence,
    takes,
)
from placer.document.tree import CONTROL, visible
from placer.errors import InputError, Problem, refuse
from placer.readers.combine import Tree, combine
from placer.readers.findings import Findings, some
from placer.readers.hardware import oversubscribed, tiers
from placer.readers.inside import inside_of
from placer.readers.layers import Layer
from placer.readers.node_labels import LabelRules
from placer.readers.registry import FORMATS
from placer.readers.sources import open_source, read_all
from placer.readers.summaries import summaries
from placer.topology import read as topology_files
from placer.topology.build import MAX_GPUS_OF_NODE, Nodes, build
from placer.topology.model import Topology

if TYPE_CHECKING:
    from placer.formats import Source, Text

_NO_HARDWARE = (
    "--hardware NAME takes bandwidths, latencies and GPUs a node from a topology of "
    'the same kind of nodes: a preset of "placer topo list", or a file'
)
_SOURCES = PATH | sequence("a list of paths", PATH)
_FOREIGN = 'the formats of "placer topo formats"'


@takes(
    source=_SOURCES,
    hardware=PATH | NOTHING,
    gpus_per_node=INTEGER | NOTHING,
    oversubscription=NUMBER_BY_NAME | NOTHING,
    name=TEXT | NOTHING,
    labels=TEXT_BY_NAME | NOTHING,
    note=CALL | NOTHING,
)
def read_topology(
    source: Source | Sequence[Source],
    *,
    hardware: Source | None = None,
    gpus_per_node: int | None = None,
    oversubscription: Mapping[str, float] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str | None = None,
    note: Callable[[str], None] | None = None,
) -> Topology:
    """The machine that ``source`` describes.

    Parameters
    ----------
    source : str, path, or sequence of them
        A preset name, a synthetic string (``block:16 rack:8 node:18 gpu:4``), a file of
        the topology format, or ``-`` for standard input. Or what other programs know of
        the machine, as ``FORMAT:FILE`` (``slurm:topology.conf``) or a file whose
        content shows its format; several of these are joined by node.
    hardware : str or path, optional
        A topology whose tiers give the bandwidths, latencies and GPUs a node that other
        formats lack; needed with those.
    gpus_per_node : int, optional
        GPUs of the nodes for which no source counts them, instead of the hardware's.
    oversubscription : mapping of str to float, optional
        How many times the links into each of these tiers are oversubscribed, by its
        name, instead of the hardware's.
    labels : mapping of str to str, optional
        Tier that each of these labels of Kubernetes nodes gives, by the label's key;
        an empty one leaves the label out. A tier called as one of the hardware's NVLink
        tiers is one too.
    name : str, optional
        Name of the machine; by default that of the first file.
    note : callable, optional
        Called with everything a user should know: a line for each source with what was
        read and assumed, and what was not understood, missing, or inferred. By default
        each of the latter is a `UserWarning`.

    Raises
    ------
    InputError
        If a source cannot be read, sources disagree, or hardware is needed or not.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not sources:
        raise InputError([Problem("no topology is given")])
    opened = [open_source(given) for given in sources]
    plain = [found for found in opened if isinstance(found, Topology)]
    if plain:
        options = {
            "hardware": hardware,
            "gpus_per_node": gpus_per_node,
            "oversubscription": oversubscription or None,
            "label": labels or None,
        }
        _check_plain(plain, len(opened), options)
        return plain[0] if name is None else replace(plain[0], name=_named(name))
    texts = [found for found in opened if not isinstance(found, Topology)]
    kind = None if hardware is None else topology_files.read_topology(hardware)
    tell = note or _warn
    findings = read_all(texts, _rules(labels, kind), tell)
    if kind is None:
        message = "no source says how fast the machine's links are"
        raise InputError([Problem(message, key="hardware", hint=_NO_HARDWARE)])
    tree = _combined(findings, kind.scale_up_tier >= 1, tell)
    if note:
        for line in summaries(findings, tree, kind, gpus_per_node):
            note(line)
    for remark in tree.notes:
        tell(remark)
    own = _stem(texts[0]) if name is None else _named(name)
    ratios = oversubscription or {}
    return _build(tree, findings, kind, gpus_per_node, ratios, own, texts, tell)


def read_alone(
    source: Source, note: Callable[[str], None] | None = None
) -> Topology | Tree:
    """What one source says by itself, without hardware.

    Returns
    -------
    Topology or Tree
        A complete topology as it is; of another format the nodes that it lists, none
        where it describes those of other sources.

    Raises
    ------
    InputError
        If the source cannot be read or contradicts itself.
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


def _check_plain(
    plain: Sequence[Topology], count: int, given: Mapping[str, object]
) -> None:
    name = plain[0].name
    problems = [
        Problem(
            f"the topology {name} has its own bandwidths and GPUs",
            key=key,
            hint=f"leave it out: it serves {_FOREIGN}",
        )
        for key, value in given.items()
        if value is not None
    ]
    if count > 1:
        message = f"the topology {name} is complete and cannot be joined with others"
        hint = f"give it alone; what can be joined are {_FOREIGN}"
        problems.append(Problem(message, key="topology", hint=hint))
    refuse(problems)


def _rules(labels: Mapping[str, str] | None, kind: Topology | None) -> LabelRules:
    """What labels mean to the user, and which tiers are NVLink on this hardware."""
    tiers = kind.tiers[1 : kind.scale_up_tier + 1] if kind else ()
    return LabelRules(labels or {}, nvlink_tiers=frozenset(t.name for t in tiers))


def _build(
    tree: Tree,
    findings: Sequence[Findings],
    kind: Topology,
    gpus_per_node: int | None,
    ratios: Mapping[str, float],
    name: str,
    texts: Sequence[Text],
    tell: Callable[[str], None],
) -> Topology:
    """The machine of ``tree`` with nodes and links of ``kind``."""
    node = inside_of(findings, kind)
    usual = node.gpus or int(kind.gpus_of_node.max())
    usual = usual if gpus_per_node is None else gpus_per_node
    if not 1 <= usual <= MAX_GPUS_OF_NODE:
        message = f"expected 1 to {MAX_GPUS_OF_NODE}, got {usual}"
        raise InputError([Problem(message, key="gpus_per_node")])
    levels = [*tree.levels]
    if not levels or len(levels[-1].names) > 1:
        levels.append(_whole(len(tree.nodes), [level.name for level in levels]))
    built, figures = tiers(levels, kind, node, findings)
    built = oversubscribed(built, ratios, figures)
    depth = len(node.tiers) - 1
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
        raise InputError([Problem(nodes.problem, texts[0].shown, hint=hint)])
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
    left_out = _left_out(machine.unavailable)
    for remark in (*node.notes, *left_out, *_doubts(machine, kind)):
        tell(remark)
    return machine


def _whole(num_nodes: int, taken: Sequence[str]) -> Layer:
    """The level of the whole machine."""
    name = "machine" if "cluster" in taken else "cluster"
    everything = np.zeros(num_nodes, dtype=np.int64)
    return Layer(name, "the whole machine", False, False, everything, (name,))


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


def _named(name: str) -> str:
    if CONTROL.search(name) or not name.strip():
        raise InputError([Problem(f'"{visible(name)}" is no name', key="name")])
    return name


def _stem(text: Text) -> str:
    return visible(Path(text.shown.strip("<>")).stem) or text.format


def _warn(remark: str) -> None:
    warnings.warn(remark, stacklevel=3)
