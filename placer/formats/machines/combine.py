"""Several findings about one machine, joined by node into nested levels.

Sources may describe different parts of a machine, such as the switches and the NVLink
domains. Every level is a division of the nodes; levels are put in an order in which
each divides the domains of the next. Where two cut across each other the sources
disagree, and that is an error: no vote is taken.

Shapes: N nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import Problem, refuse
from placer.base.units import counted
from placer.documents.scalars import CONTROL, visible
from placer.formats.machines.findings import Findings, Level, NodeFacts, are_ids, some
from placer.formats.machines.joined import (
    check_nodes,
    counts,
    node_names,
    remarks,
    renamed,
)

_LONGEST_NAME = 1000
UNKNOWN = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer(Level):
    """A level of a source over all nodes, as arrays."""

    source: str
    # (N,): domain of each node, `UNKNOWN` where the source gives none.
    domain_of_node: IntArray
    names: tuple[str, ...]  # names of the domains, by first appearance

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"{self.name} of {self.source}"


def numbered(domains: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Domain numbers by first appearance, shape (N,), and the domains' names."""
    index: dict[str, int] = {}
    numbers = [index.setdefault(d, len(index)) if d else UNKNOWN for d in domains]
    return np.array(numbers, dtype=np.int64), tuple(index)


def splits(inner: Layer, outer: Layer) -> IntArray:
    """Domains of ``inner`` with nodes in several domains of ``outer``; shape (any,).

    Nodes that either does not know do not count.
    """
    known = (inner.domain_of_node >= 0) & (outer.domain_of_node >= 0)
    width = max(1, len(outer.names))
    pairs = np.unique(inner.domain_of_node[known] * width + outer.domain_of_node[known])
    of_inner, counts = np.unique(pairs // width, return_counts=True)
    return of_inner[counts > 1]


def split_words(inner: Layer, outer: Layer, domain: int) -> str:
    """Where the nodes of one domain of ``inner`` lie, in words."""
    where = outer.domain_of_node[inner.domain_of_node == domain]
    found, counts = np.unique(where[where >= 0], return_counts=True)
    parts = [
        f'{counted(n, "node")} in "{outer.names[d]}"'
        for d, n in zip(found.tolist(), counts.tolist(), strict=True)
    ]
    return f'{inner.name} "{inner.names[domain]}" has {some(parts)}'


def filled(
    layer: Layer, inner: IntArray, inner_names: Sequence[str]
) -> tuple[Layer, IntArray, IntArray, IntArray]:
    """The layer with a domain for every node, over complete inner domains.

    Beside it the nodes that took the domain of those they share an inner domain with,
    those whose whole inner domain had none, so that it stands for itself, and the inner
    domains with several domains; each (any,). ``inner``: domain of each node at the
    next level inwards, (N,).
    """
    own = layer.domain_of_node
    known = own >= 0
    of_inner = np.full(len(inner_names), UNKNOWN, dtype=np.int64)
    of_inner[inner[known]] = own[known]
    torn = np.unique(inner[known & (of_inner[inner] != own)])
    inferred = np.flatnonzero(~known & (of_inner[inner] >= 0))
    alone = np.flatnonzero(of_inner == UNKNOWN)
    of_inner[alone] = len(layer.names) + np.arange(len(alone))
    taken = set(layer.names)
    names = [*layer.names, *(_free(inner_names[d], taken) for d in alone.tolist())]
    complete = of_inner[inner]
    apart = np.flatnonzero(complete >= len(layer.names))
    whole = replace(layer, domain_of_node=complete, names=tuple(names))
    return whole, inferred, apart, torn


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "-own"
    taken.add(name)
    return name


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes, and the levels above them."""

    nodes: tuple[str, ...]  # host names, in the order of the sources
    # Innermost first; every node has a domain, and each level has fewer domains than
    # the one before; the first than there are nodes, unless nothing joins them. Whether
    # a level is scale-up is decided.
    levels: list[Layer]
    gpus: list[int | None]  # GPUs of each node, None where no source counts them
    unavailable: dict[str, str]
    notes: list[str] = field(default_factory=list)


def combine(
    findings: Sequence[Findings],
    multi_node_nvlink: bool,
    notes: list[str] | None = None,
) -> Tree:
    """One tree out of all sources.

    ``multi_node_nvlink``: whether GPUs of different nodes can talk over NVLink on this
    kind of machine; decides for levels whose source cannot tell. ``notes``: where to
    put the tree's notes: there they are also where an error follows.
    """
    findings = renamed(findings)
    names = node_names(findings)
    notes = [] if notes is None else notes
    tree = Tree(names, [], *counts(names, findings), notes)
    check_nodes(findings)
    tree.notes.extend(remarks(names, findings))
    layers = [layer for found in findings for layer in _layers(found, names)]
    _check_domains(layers)
    _check_nesting(layers)
    layers = _decided(layers, multi_node_nvlink)
    order = _ordered(_without_planned(layers, tree.notes), tree.notes)
    _complete(order, tree)
    return tree


def _layers(found: Findings, names: Sequence[str]) -> Iterator[Layer]:
    """The levels of a source that it gives for some node."""
    nothing = NodeFacts(("",) * len(found.levels))
    rows = [found.nodes.get(name, nothing).domains for name in names]
    for level, column in zip(found.levels, zip(*rows, strict=True), strict=True):
        domain_of_node, domains = numbered(column)
        if domains:
            yield Layer(
                **vars(level),
                source=found.source,
                domain_of_node=domain_of_node,
                names=domains,
            )


def _check_domains(layers: Sequence[Layer]) -> None:
    """Refuse names that a topology file could not hold."""
    problems = []
    for layer in layers:
        for name in layer.names:
            if CONTROL.search(name) or not name.strip() or len(name) > _LONGEST_NAME:
                message = f'"{visible(name)}" cannot name a {layer.name}'
                problems.append(Problem(message, layer.source))
    refuse(problems)


def _check_nesting(layers: Sequence[Layer]) -> None:
    """Refuse a source in which a domain lies in several of those that should hold it.

    A leaf below two spines would otherwise come out as the wider of the two.
    """
    problems = []
    for k, layer in enumerate(layers):
        for outer in layers[k + 1 :]:
            if (outer.source, outer.name) != (layer.source, layer.inside):
                continue
            torn = splits(layer, outer)
            if len(torn):
                message = split_words(layer, outer, int(torn[0]))
                hint = f"a {layer.name} lies in one {outer.name}; like it: {len(torn)}"
                problems.append(Problem(message, layer.source, hint=hint))
            break
    refuse(problems)


def _decided(layers: Sequence[Layer], multi_node_nvlink: bool) -> list[Layer]:
    """The layers, each either scale-up or not."""
    sure = [layer for layer in layers if layer.scale_up]
    decided = []
    for layer in layers:
        scale_up = layer.scale_up
        if scale_up is None and sure:
            scale_up = multi_node_nvlink and any(
                not len(splits(layer, other)) for other in sure
            )
        elif scale_up is None:
            scale_up = multi_node_nvlink
        decided.append(replace(layer, scale_up=scale_up))
    return decided


def _without_planned(layers: list[Layer], notes: list[str]) -> list[Layer]:
    """Without a scheduler's planning levels where switches are known."""
    if not any(not layer.scale_up and not layer.planned for layer in layers):
        return layers
    kept = [layer for layer in layers if not layer.planned]
    if len(kept) < len(layers):
        dropped = ", ".join(layer.name for layer in layers if layer.planned)
        notes.append(f"{dropped}: sizes for planning; the switches count instead")
    return kept


def _ordered(layers: Sequence[Layer], notes: list[str]) -> list[Layer]:
    """The layers, each dividing the next: first scale-up, then scale-out.

    A scale-out level inside a scale-up one decides nothing and is dropped.
    """
    order: list[Layer] = []
    problems: list[Problem] = []
    for layer in sorted(layers, key=lambda layer: not layer.scale_up):
        at = 0
        for position, other in enumerate(order):
            around, inside = splits(other, layer), splits(layer, other)
            if not len(around):
                at = position + 1
            elif len(inside):
                problems.append(_disagreement(layer, other))
            elif other.scale_up and not layer.scale_up:
                notes.append(f"{layer.label} divides {other.label}: left out")
                break
        else:
            order.insert(at, layer)
    refuse(problems)
    return order


def _disagreement(layer: Layer, other: Layer) -> Problem:
    """Two levels that cut across each other, told by a domain of the finer one."""
    finer, coarser = sorted((other, layer), key=lambda level: -len(level.names))
    split = splits(finer, coarser)
    if not len(split):
        finer, coarser = coarser, finer
        split = splits(finer, coarser)
    words = split_words(finer, coarser, int(split[0]))
    message = f"{layer.name} and {other.label} cut across each other: {words}"
    hint = f"domains like it: {len(split)}; correct a source, or leave one out"
    return Problem(message, layer.source, hint=hint)


def _complete(order: Sequence[Layer], tree: Tree) -> None:
    """Add the levels with a domain for every node, without those that repeat one."""
    inner, inner_names = numbered(tree.nodes)
    in_use = {
        node
        for node, (name, gpus) in enumerate(zip(tree.nodes, tree.gpus, strict=True))
        if gpus != 0 and name not in tree.unavailable
    }
    for layer in order:
        whole, inferred, apart, torn = filled(layer, inner, inner_names)
        if len(torn):
            refuse([_disagreement(layer, tree.levels[-1])])
        for nodes, what in (
            (inferred, "taken from the nodes they share the level below with"),
            (apart, "kept apart"),
        ):
            if unknown := [tree.nodes[n] for n in nodes.tolist() if n in in_use]:
                count = f"{len(unknown)} of {len(in_use)} nodes"
                listed = f"{what}: {some(unknown)}"
                tree.notes.append(f"{layer.label} unknown for {count}, {listed}")
        repeats = len(set(whole.domain_of_node.tolist())) == len(inner_names)
        # Nodes that nothing joins keep the level that says so.
        if repeats and (tree.levels or not layer.apart):
            below = tree.levels.pop() if tree.levels else None
            shown = below.name if below else "node"
            tree.notes.append(f"{layer.label} is the same as {shown}: left out")
            if below is None:
                continue
            key, is_apart = below.key or layer.key, below.apart or layer.apart
            if are_ids(inner_names) and not are_ids(whole.names):
                tree.notes.append(f"{shown} has the names of {layer.label}")
                below = replace(
                    below, domain_of_node=whole.domain_of_node, names=whole.names
                )
            whole = replace(below, key=key, apart=is_apart)
        inner, inner_names = whole.domain_of_node, whole.names
        tree.levels.append(whole)
