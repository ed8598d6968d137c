"""Nodes of a machine by kind, so that ways to part them are counts, not sets.

A part has a count for each kind of nodes, and after these its allowance of each limit
of the question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from placer.allocate.offers import Offer
from placer.allocate.question import Question
from placer.base.arrays import BoolArray, IntArray
from placer.placement.placement import Placement
from placer.solve.tree.symmetry import Symmetry

Counts = tuple[int, ...]


class Kinds:
    """Free nodes by kind: alike, in one domain; or whole domains that stay apart."""

    def __init__(self, question: Question) -> None:
        machine = question.machine
        self._machine = machine
        free = np.flatnonzero(question.free)
        named = _named(question)
        by_kind: dict[Hashable, list[int]] = defaultdict(list)
        atoms: dict[Hashable, list[int]] = defaultdict(list)
        shape = shapes(question)
        for node in free.tolist():
            if question.apart is None:
                tier = min(1, len(machine.tiers) - 1)
                domain = int(machine.domain_of_node[tier, node])
                own = node if named[node] else -1
                by_kind[domain, shape[node], own].append(node)
                atoms[node].append(node)
            else:
                domain = int(machine.domain_of_node[question.apart, node])
                atoms[domain].append(node)
                by_kind[domain] = [domain]
        self._atoms = [
            [np.array(atoms[atom]) for atom in members] for members in by_kind.values()
        ]
        self.whole = (*(len(atoms) for atoms in self._atoms), *question.allowance)
        gpus = machine.gpus_of_node
        self._gpus = [int(gpus[atoms[0]].sum()) for atoms in self._atoms]
        self._kind_of_node = {
            int(node): (kind, atom)
            for kind, atoms in enumerate(self._atoms)
            for atom, nodes in enumerate(atoms)
            for node in nodes
        }
        self._shape_of_node, self._named = shape, named

    def ways(self) -> int:
        """How many parts there are."""
        return prod(count + 1 for count in self.whole)

    def gpus_of(self, part: Counts) -> int:
        """GPUs of a part."""
        return sum(a * b for a, b in zip(part, self._gpus, strict=False))

    def allowed(self, part: Counts) -> Counts:
        """What a part may use of each limit."""
        return part[len(self._atoms) :]

    def nodes(self, part: Counts) -> BoolArray:
        """The nodes of a part; shape (N,)."""
        chosen = np.zeros(self._machine.num_nodes, dtype=bool)
        for atoms, count in zip(self._atoms, part, strict=False):
            for nodes in atoms[:count]:
                chosen[nodes] = True
        return chosen

    def needs(self, offer: Offer) -> Counts:
        """The least part that has what an offer takes."""
        return (*self.counts(offer.nodes), *offer.uses)

    def counts(self, nodes: BoolArray) -> Counts:
        """The least part that has some nodes, but for limits."""
        counts = [0] * len(self._atoms)
        for kind, _ in {self._kind_of_node[n] for n in np.flatnonzero(nodes).tolist()}:
            counts[kind] += 1
        return tuple(counts)

    def dealt(self, offers: Sequence[Offer]) -> list[Offer]:
        """The offers on nodes that no two share, which are alike those they had.

        Together they must take no more of a kind than there is.
        """
        free = [[*range(len(atoms))] for atoms in self._atoms]
        found = []
        for offer in offers:
            becomes = np.arange(self._machine.num_nodes)
            met = {self._kind_of_node[n] for n in np.flatnonzero(offer.nodes).tolist()}
            for kind, atom in sorted(met):
                new = atom if atom in free[kind] else free[kind][0]
                free[kind].remove(new)
                becomes[self._atoms[kind][atom]] = self._atoms[kind][new]
            found.append(self._on(offer, becomes))
        return found

    def _on(self, offer: Offer, becomes: IntArray) -> Offer:
        """An offer on other nodes: what each node becomes; shape (N,)."""
        machine = self._machine
        gpus = offer.solution.placement.gpu_of_rank
        node = machine.node_of_gpu[gpus]
        local = gpus - machine.first_gpu_of_node[node]
        placement = Placement(machine.first_gpu_of_node[becomes[node]] + local)
        nodes = np.zeros_like(offer.nodes)
        nodes[becomes[offer.nodes]] = True
        solution = replace(offer.solution, placement=placement)
        return replace(offer, nodes=nodes, solution=solution)

    def shape(self, parts: Sequence[Counts]) -> Hashable:
        """A key of ways that an exchange of equal domains makes one another."""
        owner: dict[int, int] = {}
        start = [0] * len(self._atoms)
        for index, part in enumerate(parts):
            for kind, count in enumerate(part[: len(start)]):
                for nodes in self._atoms[kind][start[kind] : start[kind] + count]:
                    owner.update(dict.fromkeys(nodes.tolist(), index))
                start[kind] += count
        row = self._machine.domain_of_node
        shapes: dict[int, Hashable] = {
            node: (self._shape_of_node[node], index, node if self._named[node] else -1)
            for node, index in owner.items()
        }
        for tier in range(1, len(row)):
            inside: dict[int, list[Hashable]] = defaultdict(list)
            below = {node: int(row[tier - 1, node]) for node in owner}
            parents = {below[node]: int(row[tier, node]) for node in owner}
            for child, parent in parents.items():
                inside[parent].append(shapes[child])
            uplinks = self._machine.uplinks(tier)
            shapes = {
                domain: (float(uplinks[domain]), *sorted(own, key=repr))
                for domain, own in inside.items()
            }
        allowed = tuple(self.allowed(part) for part in parts)
        top = tuple(sorted(shapes.items())) if len(shapes) > 1 else shapes.popitem()[1]
        return allowed, top


def shapes(question: Question) -> list[Hashable]:
    """What a node is like, islands and budgets too; equal ones can be exchanged."""
    machine = question.machine
    alike: list[Hashable] = [*Symmetry(machine).shape[0]]
    budgets = np.array([limit.inside for limit in question.limits]).T.tolist()
    for more in (budgets, machine.gpus_by_island.tolist()):
        if more:
            alike = [(one, *own) for one, own in zip(alike, more, strict=True)]
    return alike


def _named(question: Question) -> BoolArray:
    """Nodes that a rule or a running job names: they are like no others."""
    machine = question.machine
    hosts = {host for wanted in question.jobs for host in wanted.job.rules.avoid}
    named: BoolArray = np.isin(np.array(machine.node_names), [*hosts])
    for wanted, pinned in zip(question.jobs, question.pinned, strict=True):
        named |= pinned
        if wanted.running is not None:
            named |= wanted.running.nodes
    return named
