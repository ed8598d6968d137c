"""Every way to part the free nodes of a small machine among the jobs: a proof.

Nodes that are alike in one domain are counted, and ways that differ only by domains
that are alike are walked once. More nodes are never worse: what a job costs on some
nodes bounds what it costs on fewer, and is reached on more. So few ways are placed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from placer.allocation.together import Together, together
from placer.placement.placement import Placement
from placer.solve.problem.effort import QUICK
from placer.solve.run.solution import EXACT
from placer.solve.tree.symmetry import Symmetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.allocation.offers import Offer, Offers
    from placer.allocation.question import BoolArray, IntArray, Question
    from placer.allocation.shared import Uses
    from placer.solve.problem.effort import Effort
    from placer.topology.model import Topology

# Ways that are looked at, at the most.
WAYS = 20_000
# How hard a job is searched, and how many such searches there are at the most: jobs of
# few ranks by all methods, which prove their placements, others by constructions.
FEW_RANKS = 32
PLACED = {0: 600, QUICK: 16}

Counts = tuple[int, ...]


class EveryWay:
    """The walk through all ways.

    Attributes
    ----------
    best : Together or None
        The best that is known.
    least : float
        No way costs less.
    is_complete : bool
        Whether all ways were walked through.
    """

    def __init__(
        self,
        offers: Offers,
        uses: Uses,
        alone: Sequence[Offer],
        best: Together | None,
    ) -> None:
        self.best, self.least = best, inf
        self.is_complete = True
        self._offers, self._uses = offers, uses
        self._question = offers.question
        self._kinds = _Kinds(offers.question)
        ranks = max(wanted.job.world_size for wanted in offers.question.jobs)
        self._effort: Effort = 0 if ranks <= FEW_RANKS else QUICK
        self._known = [_Known(self._kinds.whole, one) for one in alone]
        self._looked = 0
        self._placed_before = offers.count
        self._seen: set[Hashable] = set()

    def walked(self) -> EveryWay:
        """The walk at its end."""
        if self._kinds.ways() ** (len(self._known) - 1) > WAYS:
            self.is_complete = False
            return self
        self._walk([], self._kinds.whole, 0.0)
        if self.best is not None:
            self.least = min(self.least, self.best.cost)
        return self

    @property
    def _limit(self) -> float:
        return inf if self.best is None else self.best.cost * (1 - EXACT)

    def _walk(self, parts: list[Counts], left: Counts, before: float) -> None:
        """All ways that begin with these parts, whose bounds sum to ``before``."""
        index = len(parts)
        last = index == len(self._known) - 1
        for part in [left] if last else self._parts(index, left):
            if not self.is_complete:
                return
            self._looked += 1
            over = self._offers.budget.is_over()
            placed = self._offers.count - self._placed_before
            if over or placed > PLACED[self._effort]:
                self.is_complete = False
                return
            rest = tuple(a - b for a, b in zip(left, part, strict=True))
            now = [*parts, part]
            if not last and self._is_known([*now, rest]):
                continue
            others = sum(
                self._weight(k) * self._known[k].least(rest)
                for k in range(index + 1, len(self._known))
            )
            bound = before + self._weight(index) * self._known[index].least(part)
            if bound + others >= self._limit:
                continue
            if self._offer(index, part) is None:
                continue
            bound = before + self._weight(index) * self._known[index].least(part)
            if bound + others >= self._limit:
                continue
            if last:
                self._reach(now, bound)
            else:
                self._walk(now, rest, bound)

    def _reach(self, parts: list[Counts], bound: float) -> None:
        """A way that is parted to the end."""
        self.least = min(self.least, bound)
        found = [self._offer(index, part) for index, part in enumerate(parts)]
        offers = self._kinds.dealt([offer for offer in found if offer is not None])
        now = together(self._question, self._uses, offers)
        if now.cost < self._limit:
            self.best = now

    def _parts(self, index: int, left: Counts) -> Iterator[Counts]:
        """What a job may take so that the others may still fit."""
        worlds = [wanted.job.world_size for wanted in self._question.jobs]
        own, others = worlds[index], sum(worlds[index + 1 :])
        total = self._kinds.gpus_of(left)
        for part in product(*(range(count, -1, -1) for count in left)):
            gpus = self._kinds.gpus_of(part)
            if gpus >= own and total - gpus >= others:
                yield part

    def _offer(self, index: int, part: Counts) -> Offer | None:
        """The best of a job on a part: that of a smaller one where it is as good."""
        known = self._known[index]
        found = known.reached(part)
        if found is not None:
            return found
        nodes = self._kinds.nodes(part)
        found = self._offers.best(index, nodes, effort=self._effort)
        known.add(part, found, self._kinds.counts(found.nodes) if found else part)
        return found

    def _weight(self, index: int) -> float:
        return self._question.jobs[index].weight

    def _is_known(self, parts: list[Counts]) -> bool:
        """Whether a way like this, equal domains exchanged, was met before."""
        key = self._kinds.shape(parts)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


class _Known:
    """What is known of a job: bounds on parts, and offers for some.

    A part on which it does not fit has an infinite bound.
    """

    def __init__(self, whole: Counts, alone: Offer) -> None:
        self._parts = np.array([whole])
        self._least = np.array([alone.least])
        self._needs = np.array([whole])
        self._offers = [alone]

    def least(self, part: Counts) -> float:
        """A bound on what it costs on a part: the best of those on larger parts."""
        larger = (self._parts >= part).all(axis=1)
        return float(self._least[larger].max())

    def reached(self, part: Counts) -> Offer | None:
        """An offer inside a part that reaches the bound on it; None if none does."""
        limit = self.least(part) * (1 + EXACT)
        inside = np.flatnonzero((self._needs <= part).all(axis=1))
        found = (self._offers[i] for i in inside.tolist())
        return next((offer for offer in found if offer.cost <= limit), None)

    def add(self, part: Counts, offer: Offer | None, needs: Counts) -> None:
        """What it costs on a part, and what it takes there."""
        self._parts = np.vstack((self._parts, part))
        self._least = np.append(self._least, inf if offer is None else offer.least)
        if offer is not None:
            self._needs = np.vstack((self._needs, needs))
            self._offers.append(offer)


class _Kinds:
    """Free nodes by kind: alike, in one domain; or whole domains that stay apart."""

    def __init__(self, question: Question) -> None:
        machine = question.machine
        self._machine = machine
        free = np.flatnonzero(question.free)
        named = _named(question)
        by_kind: dict[Hashable, list[int]] = defaultdict(list)
        atoms: dict[Hashable, list[int]] = defaultdict(list)
        shape = _shapes(machine)
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
        self.whole = tuple(len(atoms) for atoms in self._atoms)
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
        return sum(a * b for a, b in zip(part, self._gpus, strict=True))

    def nodes(self, part: Counts) -> BoolArray:
        """The nodes of a part; shape (N,)."""
        chosen = np.zeros(self._machine.num_nodes, dtype=bool)
        for atoms, count in zip(self._atoms, part, strict=True):
            for nodes in atoms[:count]:
                chosen[nodes] = True
        return chosen

    def counts(self, nodes: BoolArray) -> Counts:
        """Of each kind, how many atoms have some of these nodes."""
        met = {self._kind_of_node[node] for node in np.flatnonzero(nodes).tolist()}
        counts = [0] * len(self.whole)
        for kind, _ in met:
            counts[kind] += 1
        return tuple(counts)

    def dealt(self, offers: Sequence[Offer]) -> list[Offer]:
        """The same offers on nodes that no two share, which are alike those they had.

        Together they must take no more of a kind than there is.
        """
        free = [[*range(count)] for count in self.whole]
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
        """The same for ways that an exchange of equal domains makes one another."""
        owner: dict[int, int] = {}
        start = [0] * len(self.whole)
        for index, part in enumerate(parts):
            for kind, count in enumerate(part):
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
        return tuple(sorted(shapes.items())) if len(shapes) > 1 else shapes.popitem()[1]


def _shapes(machine: Topology) -> list[Hashable]:
    """What a node is like, its islands included; equal ones can be exchanged."""
    alike = Symmetry(machine).shape[0]
    if machine.islands is None:
        return [*alike]
    islands = machine.islands.gpus.tolist()
    return [(one, *own) for one, own in zip(alike, islands, strict=True)]


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
