"""Decoding the nodes of a topology file: its ``layout``, or its ``nodes`` one by one.

Shapes: T tiers, N nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from placer.base.hostlist import HostLists
from placer.documents import Document, Section, Value
from placer.documents.keys import TEXT, Key, integer, list_of, number, special
from placer.topology.build import NO_NODES, Nodes
from placer.topology.layout import MAX_NODES, lay_out, parse_levels
from placer.topology.links import read_links
from placer.topology.model import MAX_GPUS_OF_NODE, SMALLEST, TIER_NAME
from placer.topology.suggest import Suggester
from placer.topology.tiers import Tiers


def _gpus_schema() -> dict[str, Any]:
    gpus = integer(0, MAX_GPUS_OF_NODE)
    return {"anyOf": [gpus.schema(), list_of(gpus).schema()]}


_FACTOR = number(SMALLEST, 1.0)


class Entry:
    """The keys of ``nodes`` beside the names of tiers."""

    names = Key(TEXT, '`"r1n[01-18]"`, in Slurm\'s bracket syntax; the order counts')
    gpus = Key(
        special(_gpus_schema),
        "healthy GPUs of each of these nodes; with 0 a node is left out",
        absent="the node tier's `size`",
    )
    bandwidth_factor = Key(
        _FACTOR, "share of the nominal bandwidth these nodes reach", 1.0
    )
    compute_factor = Key(
        _FACTOR,
        "share of the usual speed at which the GPUs of these nodes work: `0.5` "
        "takes twice as long",
        1.0,
    )
    together: ClassVar[dict[str, Any]] = {
        "additionalProperties": {
            "description": "The domain of this tier that the nodes lie in.",
            **TEXT.schema(),
        },
        "propertyNames": {"pattern": f"^{TIER_NAME}$"},
    }


def read_nodes(document: Document, tiers: Tiers) -> Nodes:
    """The nodes of a topology file; `NO_NODES`, with a problem, when it gives none."""
    root = document.root
    layout = root.get("layout")
    listed = root.get("nodes")
    if layout and listed:
        root.problem("both layout and nodes are given", "nodes", "keep one of them")
        return NO_NODES
    if layout:
        nodes = _read_layout(layout, tiers)
    elif listed:
        nodes = _Listing(document, tiers).read(listed)
    else:
        root.problem('one of the keys "layout" and "nodes" is missing')
        return NO_NODES
    if nodes is NO_NODES:
        return NO_NODES
    unavailable = _read_unavailable(root, nodes.names[0])
    links = read_links(root, tiers.tiers, nodes)
    return replace(nodes, unavailable=unavailable, links=links)


def _read_layout(value: Value, tiers: Tiers) -> Nodes:
    wanted = tiers.names[::-1]
    hint = f'write "{" ".join(f"{name}:count" for name in wanted)}"'
    text = value.text()
    if not text:
        return NO_NODES
    try:
        levels = parse_levels(text)
        found = tuple(level.tier for level in levels)
        if found != wanted:
            raise ValueError(
                f"its tiers are {', '.join(found)}; the tiers listed above are, "
                f"outermost first, {', '.join(wanted)}"
            )
        domains, names = lay_out(levels)
    except ValueError as error:
        value.problem(str(error), hint)
        return NO_NODES
    num_nodes = len(names[0])
    size, *counts = tiers.sizes
    gpus = np.full((num_nodes, prod(counts)), size)
    factor, islands = np.ones(num_nodes), tiers.islands(gpus)
    return Nodes(domains, names, gpus.sum(axis=1), factor, islands=islands)


class _Listing:
    """Collects the entries of ``nodes``."""

    def __init__(self, document: Document, tiers: Tiers) -> None:
        self.document = document
        self.tiers = tiers
        self.entry_of_node: dict[str, str] = {}
        self.lists = HostLists(2 * MAX_NODES)
        # Of each entry: how many of its nodes are new, healthy GPUs of each island of
        # one, both factors, and domains from the node outwards.
        self.entries: list[tuple[int, tuple[int, ...], float, float, list[str]]] = []
        # Of each tier above the node: domains met so far, and in what each lies.
        self.index: list[dict[str, int]] = [{} for _ in tiers.tiers[1:]]
        self.parents: list[dict[str, tuple[str, str]]] = [{} for _ in tiers.tiers[1:]]

    def read(self, listed: Value) -> Nodes:
        """All entries; `NO_NODES`, with a problem, when they name no node."""
        problems_before = len(self.document.problems)
        for entry in listed.items():
            self._read_entry(entry.section())
        if not self.entry_of_node:
            if len(self.document.problems) == problems_before:
                listed.problem("it names no node")
            return NO_NODES
        counts, gpus, factors, speeds, paths = zip(*self.entries, strict=True)
        rows = [[own[at[t]] for at in paths] for t, own in enumerate(self.index)]
        outer = [np.repeat(np.array(row, dtype=np.int64), counts) for row in rows]
        healthy = np.repeat(np.array(gpus, dtype=np.int64), counts, axis=0)
        return Nodes(
            np.stack([np.arange(len(self.entry_of_node)), *outer]),
            (tuple(self.entry_of_node), *map(tuple, self.index)),
            healthy.sum(axis=1),
            np.repeat(factors, counts),
            islands=self.tiers.islands(healthy),
            compute_factor=np.repeat(speeds, counts) if min(speeds) < 1 else None,
        )

    def _read_entry(self, section: Section) -> None:
        gpus = self._read_gpus(section)
        factor = Entry.bandwidth_factor.take(section)
        speed = Entry.compute_factor.take(section)
        count = self._read_names(section)
        path = self._read_path(section)
        for index, domain in zip(self.index, path, strict=True):
            index.setdefault(domain, len(index))
        self.entries.append((count, gpus, factor, speed, path))

    def _read_gpus(self, section: Section) -> tuple[int, ...]:
        """Healthy GPUs of each innermost island of the entry's nodes."""
        size, *counts = self.tiers.sizes
        if not self.tiers.inside:
            most = MAX_GPUS_OF_NODE
            return (section.integer("gpus", size, minimum=0, maximum=most),)
        islands = prod(counts)
        whole = (size,) * islands
        value = section.get("gpus")
        if value is None:
            return whole
        if value.kind == "list":
            gpus = value.integers(minimum=0, maximum=size)
            if len(gpus) == islands:
                return tuple(gpus)
            given = f"{len(gpus)} numbers"
        else:
            most = size * islands
            total = value.integer(most, minimum=0, maximum=most)
            if total in (0, most):
                return (total // islands,) * islands
            given = f"{total} GPUs"
        name = self.tiers.inside[0].name
        hint = f"write the healthy GPUs of each {name}, as in gpus: {list(whole)}"
        value.problem(f"{given} for the {islands} islands of a node", hint)
        return whole

    def _read_names(self, section: Section) -> int:
        """Count of the entry's nodes that are new, which are added."""
        value = section.get("names", required=True)
        text = value.text() if value else ""
        if not (value and text):
            return 0
        names = value.made(self.lists.expand, text, default=None)
        if names is None:
            return 0
        if not names:
            value.problem("it names no node")
        if len(self.entry_of_node) + len(names) > MAX_NODES:
            value.problem(f"more than {MAX_NODES} nodes")
            self.document.fail_if_problems()
        own = section.value.key
        before = len(self.entry_of_node)
        repeated = []
        for name in names:
            if name in self.entry_of_node:
                repeated.append(name)
            else:
                self.entry_of_node[name] = own
        if repeated:
            value.problem(self._twice(repeated))
        return len(self.entry_of_node) - before

    def _twice(self, repeated: Sequence[str]) -> str:
        more = f" (and {len(repeated) - 1} more)" if len(repeated) > 1 else ""
        first = self.entry_of_node[repeated[0]]
        return f'node "{repeated[0]}"{more} is listed twice, first in {first}'

    def _read_path(self, section: Section) -> list[str]:
        """Domain of the entry at every tier above the node, innermost first."""
        names = self.tiers.names
        domains = [section.text(tier) for tier in names[1:-1]]
        domains.append(section.text(names[-1], self._whole()))
        for name, domain in zip(names[1:], domains, strict=True):
            if "[" in domain:
                message = f'one {name} holds all of an entry, "{domain}" is a list'
                section.problem(message, name, f"write an entry for each {name}")
        for t, parents in enumerate(self.parents[:-2]):
            domain, parent = domains[t], domains[t + 1]
            if not (domain and parent):
                continue
            first, where = parents.setdefault(domain, (parent, section.value.key))
            if first != parent:
                message = (
                    f'{names[t + 1]} "{domain}" lies in {names[t + 2]} "{first}" '
                    f'({where}) and in "{parent}"'
                )
                section.problem(message, names[t + 1], "a domain has one parent")
        if self.index[-1] and domains[-1] != self._whole():
            message = f'a second domain of the outermost tier, beside "{self._whole()}"'
            section.problem(message, names[-1], "the last tier is the whole cluster")
        return domains

    def _whole(self) -> str:
        """Name of the one domain of the outermost tier."""
        return next(iter(self.index[-1]), self.tiers.names[-1])


def _read_unavailable(root: Section, names: Sequence[str]) -> Mapping[str, str]:
    section = root.section("unavailable")
    known = set(names)
    suggester = Suggester(names)
    lists = HostLists()
    reasons: dict[str, str] = {}
    for key, value in section.entries():
        reason = value.text()
        try:
            nodes = lists.expand(key)
        except ValueError as error:
            section.problem(str(error), key, is_key=True)
            continue
        for node in nodes:
            if node not in known:
                hint = suggester.hint(node)
                message = f'no node is called "{node}"'
                section.problem(message, key, hint, is_key=True)
                break
            reasons[node] = reason
    return reasons
