"""A placement moved into the domains that leave the most useful rest.

What a placement has in one domain may go to another one as it is: ranks that shared a
domain of some tier still do, and no others, so no hop changes. A rack that has lost
nodes may hold what a whole rack had. Whether one domain can take over what another
has, and what the rest loses by it, is found from the nodes outwards: their children go
to the cheapest places first. Domains that are alike are one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.problem.compiled import Problem
from placer.solve.tree.domains import Rest
from placer.solve.tree.symmetry import Pair, numbered, on_other_nodes


class _Move(NamedTuple):
    """That one domain takes over what another has."""

    cost: int  # what the rest loses
    # How many children, by kind as they are used and as they are.
    children: Mapping[Pair, int]


class _Kinds(NamedTuple):
    """The domains of a tier."""

    # used and whole: kind of what a placement has in each, -1 for nothing; of all that
    # is in it.
    used: list[int]
    whole: list[int]
    moves: dict[Pair, _Move]  # between those kinds, where one fits the other


def with_best_rest(problem: Problem, gpu_of_rank: IntArray) -> IntArray | None:
    """The placement after the exchange of domains that leaves the best rest.

    Returns shape (R,). None where no node is left, or too many domains are unlike.
    """
    machine = problem.machine
    node = machine.node_of_gpu[gpu_of_rank]
    if len(np.unique(node)) == machine.num_nodes:
        return None
    becomes = _Exchange(problem, gpu_of_rank).best()
    return None if becomes is None else on_other_nodes(machine, gpu_of_rank, becomes)


class _Exchange:
    """What each domain of a machine may become, for one placement."""

    def __init__(self, problem: Problem, gpu_of_rank: IntArray) -> None:
        machine, limits = problem.machine, problem.limits
        node = machine.node_of_gpu[gpu_of_rank]
        self.machine, self.rest = machine, Rest(machine)
        self.most = problem.params.compared
        self.symmetry = problem.symmetry
        self.inside = self.symmetry.children
        self.is_used = np.bincount(node, minlength=machine.num_nodes) > 0
        self.need = np.zeros(machine.num_nodes, dtype=np.int64)
        local = gpu_of_rank - machine.first_gpu_of_node[node]
        np.maximum.at(self.need, node, local + 1)
        # Nodes differ in speed and rules; one that holds a pinned rank stays.
        stays = np.full(machine.num_nodes, -1)
        stays[node[[*limits.nodes_of_rank]]] = node[[*limits.nodes_of_rank]]
        facts = (machine.kind_of_node, limits.avoided, stays)
        self.facts = [*zip(*(values.tolist() for values in facts), strict=True)]
        self.has_uplinks = any(tier.oversubscription != 1 for tier in machine.tiers)

    def best(self) -> IntArray | None:
        """Node that each used node becomes; shape (N,)."""
        tiers = [self._nodes()]
        while len(tiers) < len(self.machine.tiers):
            found = self._domains(len(tiers), tiers[-1])
            if found is None:
                return None
            tiers.append(found)
        if (tiers[-1].used[0], tiers[-1].whole[0]) not in tiers[-1].moves:
            return None

        def matched(tier: int, pair: Pair) -> list[Pair]:
            """The children of a used domain, and those that they become in another."""
            a, b = pair
            moves, below = tiers[tier], tiers[tier - 1]
            return _paired(
                moves.moves[moves.used[a], moves.whole[b]].children,
                _by_kind(self.inside[tier][a], below.used),
                _by_kind(self.inside[tier][b], below.whole),
            )

        return self.symmetry.descended(matched)

    def _nodes(self) -> _Kinds:
        gpus, need = self.machine.gpus_of_node.tolist(), self.need.tolist()
        facts, used = self.facts, self.is_used.tolist()
        kinds = [(need[n], facts[n]) if used[n] else None for n in range(len(used))]
        of_used = numbered(kinds)
        of_whole = numbered(zip(gpus, facts, strict=True))
        moves = {
            (i, j): _Move(self._loss(0, gpus[b], gpus[b]), {})
            for i, a in _examples(of_used)
            for j, b in _examples(of_whole)
            if facts[a] == facts[b] and need[a] <= gpus[b]
        }
        return _Kinds(of_used, of_whole, moves)

    def _domains(self, tier: int, below: _Kinds) -> _Kinds | None:
        """The domains of a tier, given those of the tier below; None for too many."""
        inside = self.inside[tier]
        uplink = [0.0] * len(inside)
        if self.has_uplinks:
            uplink = self.machine.uplinks(tier).tolist()
        row = self.machine.domain_of_node[tier]
        taken = np.bincount(row, self.is_used).astype(np.int64).tolist()
        size = np.bincount(row).tolist()
        used = [Counter(k for c in own if (k := below.used[c]) >= 0) for own in inside]
        whole = [Counter(below.whole[c] for c in own) for own in inside]
        of_used, of_whole = (
            numbered(
                (up, *sorted(counter.items())) if counter else None
                for up, counter in zip(uplink, counters, strict=True)
            )
            for counters in (used, whole)
        )
        examples = _examples(of_used), _examples(of_whole)
        if len(examples[0]) * len(examples[1]) > self.most:
            return None
        moves = {}
        costs = {pair: move.cost for pair, move in below.moves.items()}
        for i, a in examples[0]:
            for j, b in examples[1]:
                if uplink[a] == uplink[b]:
                    flow = cheapest_first(used[a], whole[b], costs)
                    if flow is not None:
                        cost = sum(costs[pair] * n for pair, n in flow.items())
                        loss = self._loss(tier, size[b], taken[a])
                        moves[i, j] = _Move(cost + loss, flow)
        return _Kinds(of_used, of_whole, moves)

    def _loss(self, tier: int, free: int, taken: int) -> int:
        """What the rest loses with what is taken from a domain, as one number.

        A difference in one term weighs more than all in the terms after it.
        """
        count = len(self.rest.tiers)
        if tier >= count:
            return 0
        base: int = 10 * self.machine.num_gpus**2 + 1
        filled, square = self.rest.worth(tier, np.array([free, free - taken]))
        lost = int(filled[0] - filled[1]), int(square[0] - square[1])
        weights: tuple[int, int] = (
            base ** (2 * count - 1 - tier),
            base ** (count - 1 - tier),
        )
        return lost[0] * weights[0] + lost[1] * weights[1]


def cheapest_first(
    number: Mapping[int, int], room: Mapping[int, int], costs: Mapping[Pair, int]
) -> dict[Pair, int] | None:
    """How many of each kind go to each kind of place, cheapest pairs first.

    ``number`` and ``room``: how many there are of each kind, and places of each kind.
    ``costs``: of one going to a place, where that is possible. Gives None where some
    have no place left.
    """
    flow: dict[Pair, int] = {}
    left, free = Counter(number), Counter(room)
    choices = Counter(i for i, j in costs if j in room)
    pairs = [(i, j) for i in number for j in room if (i, j) in costs]
    # Who has the fewest places to go to chooses first.
    for i, j in sorted(pairs, key=lambda pair: (choices[pair[0]], costs[pair])):
        if taken := min(left[i], free[j]):
            flow[i, j] = taken
            left[i] -= taken
            free[j] -= taken
    return None if left.total() else flow


def _paired(
    children: Mapping[Pair, int],
    used: Mapping[int, list[int]],
    whole: Mapping[int, list[int]],
) -> list[Pair]:
    """Each used child and the one it becomes, as many of each pair of kinds."""
    going = {kind: iter(members) for kind, members in used.items()}
    places = {kind: iter(members) for kind, members in whole.items()}
    found: list[Pair] = []
    for (i, j), count in sorted(children.items()):
        found += zip(islice(going[i], count), islice(places[j], count), strict=True)
    return found


def _by_kind(domains: Sequence[int], kinds: Sequence[int]) -> dict[int, list[int]]:
    found = defaultdict(list)
    for domain in domains:
        found[kinds[domain]].append(domain)
    return found


def _examples(kinds: Sequence[int]) -> list[Pair]:
    """Each kind that there is, and a domain of it."""
    return [*{kind: d for d, kind in enumerate(kinds) if kind >= 0}.items()]
