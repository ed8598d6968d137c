"""Levels of several sources over one list of nodes, and how they nest.

Shapes: N nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placer.base.arrays import IntArray
from placer.base.units import counted

UNKNOWN = -1
_ID = 32  # characters of a UUID without its hyphens


@dataclass(frozen=True, eq=False)
class Layer:
    """One level, as arrays."""

    name: str
    source: str
    scale_up: bool | None
    planned: bool
    # (N,): domain of each node, `UNKNOWN` where the source gives none.
    domain_of_node: IntArray
    names: tuple[str, ...]  # names of the domains, by first appearance
    bandwidth: float | None = None  # B/s
    inside: str = ""
    apart: bool = False
    key: str = ""  # as in `placer.formats.machines.findings.Level`

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"{self.name} of {self.source}"


def numbered(domains: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Domain numbers by first appearance, shape (N,), and the domains' names."""
    index: dict[str, int] = {}
    numbers = [index.setdefault(d, len(index)) if d else UNKNOWN for d in domains]
    return np.array(numbers, dtype=np.int64), tuple(index)


def are_ids(names: Sequence[str]) -> bool:
    """Whether domains are called by ids, such as UUIDs, that nobody would say."""
    return max(map(len, names), default=0) >= _ID


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
    more = len(parts) - 3
    listed = ", ".join(parts[:3]) + (f" and {more} more" if more > 0 else "")
    return f'{inner.name} "{inner.names[domain]}" has {listed}'


@dataclass(frozen=True, eq=False)
class Filled:
    """A layer where every node has a domain, and how many had none."""

    domain_of_node: IntArray  # (N,)
    names: tuple[str, ...]
    # (any,): nodes that took the domain of the nodes they share an inner domain with.
    inferred: IntArray
    # (any,): nodes whose whole inner domain had none: it stands for itself.
    apart: IntArray
    torn: IntArray  # (any,): inner domains with several domains


def filled(layer: Layer, inner: IntArray, inner_names: Sequence[str]) -> Filled:
    """The layer with a domain for every node, over complete inner domains.

    Parameters
    ----------
    inner : ndarray, shape (N,)
        Domain of each node at the next level inwards.
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
    return Filled(complete, tuple(names), inferred, apart, torn)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "-own"
    taken.add(name)
    return name
