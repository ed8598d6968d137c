"""Some nodes of a machine, or all in another order, as a machine of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.topology.machine import Domains

AnyMachine = TypeVar("AnyMachine", bound="Domains")


@dataclass(frozen=True, eq=False)
class Submachine(Generic[AnyMachine]):
    """Some nodes of a machine as a machine of their own."""

    # whole and topology: the machine, and the machine of only these nodes.
    whole: AnyMachine
    topology: AnyMachine
    nodes: IntArray  # (nodes of the part,): their indices in the whole

    @classmethod
    def of(cls, whole: AnyMachine, kept: BoolArray) -> Submachine[AnyMachine]:
        """The part with the ``kept`` nodes."""
        nodes = np.flatnonzero(kept)
        topology = whole if kept.all() else whole.select(nodes)
        return cls(whole, topology, nodes)

    @classmethod
    def by_name(cls, whole: AnyMachine) -> Submachine[AnyMachine]:
        """All nodes, domain by domain, each tier in the order of its names.

        So the same hosts are the same machine however they are listed. One that is
        listed like this is itself.
        """
        keys = [
            _places(names)[row]
            for names, row in zip(whole.domain_names, whole.domain_of_node, strict=True)
        ]
        nodes = np.lexsort(keys)
        topology = whole.select(nodes)
        if np.array_equal(topology.domain_of_node, whole.domain_of_node) and (
            np.array_equal(nodes, np.arange(len(nodes)))
        ):
            topology = whole
        return cls(whole, topology, nodes)

    def inside(self, gpu_of_rank: IntArray) -> IntArray | None:
        """GPU of every rank in the part, None when one is on a node outside it."""
        own = np.full(self.whole.num_nodes, -1, dtype=np.int64)
        own[self.nodes] = np.arange(len(self.nodes))
        node = self.whole.node_of_gpu[gpu_of_rank]
        if (own[node] < 0).any():
            return None
        local = gpu_of_rank - self.whole.first_gpu_of_node[node]
        found: IntArray = self.topology.first_gpu_of_node[own[node]] + local
        return found

    def gpu_in_whole(self, gpu_of_rank: IntArray) -> IntArray:
        """GPU of every rank in the whole machine."""
        node = self.topology.node_of_gpu[gpu_of_rank]
        local = gpu_of_rank - self.topology.first_gpu_of_node[node]
        found: IntArray = self.whole.first_gpu_of_node[self.nodes[node]] + local
        return found


def _places(names: tuple[str, ...]) -> IntArray:
    """Place of each name, shorter ones first: ``n2`` before ``n10``."""
    places = np.empty(len(names), dtype=np.int64)
    by_text = sorted(range(len(names)), key=names.__getitem__)
    places[sorted(by_text, key=lambda i: len(names[i]))] = np.arange(len(names))
    return places
