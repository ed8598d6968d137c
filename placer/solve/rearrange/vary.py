"""A placement in other places: what was together is apart, at the same cost.

Equal domains of the machine exchange what they hold (`placer.solve.tree.symmetry`),
which changes no cost. Each exchange is drawn at random and mended until no node holds a
stage or a replica again that it held before, and no domain a replica, wherever there
are enough domains alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.solve.tree.symmetry import Symmetry, on_other_nodes

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem

ROUNDS = 20  # passes over a set of domains that mend an exchange
DRAWS = 20  # exchanges that are tried for one placement
TRIES = 32  # partners of a node that is to be told apart
NEVER = 1 << 20  # counts more than all that a place would hold again


def varied(
    problem: Problem, gpu_of_rank: IntArray, count: int, remembers: bool = True
) -> Iterator[IntArray]:
    """Placements of the same cost, the given one first; shape (R,) each.

    All different, at most ``count``; fewer where rules or costs forbid others. Unless
    it ``remembers`` what was together before they are any that cost the same.
    """
    rng = np.random.default_rng(problem.seed)
    spread = _Spread(problem, gpu_of_rank, remembers)
    cost = problem.goal.value(gpu_of_rank)
    most_avoided = problem.avoided(gpu_of_rank)
    seen = {gpu_of_rank.tobytes()}
    yield gpu_of_rank
    for _ in range(count - 1):
        for _ in range(DRAWS):
            content = spread.drawn(rng)
            other = spread.placed(content)
            if other.tobytes() in seen:
                continue
            if not problem.allows(other) or problem.avoided(other) > most_avoided:
                continue
            if abs(problem.goal.value(other) / cost - 1) > 1e-9:
                continue
            if remembers:
                spread.keep(content)
            seen.add(other.tobytes())
            yield other
            break
        else:
            return


class _Spread:
    """What every domain has held so far, and exchanges that bring it something else.

    The content of a domain is another domain's of the same shape: what that one holds
    in the first placement.
    """

    def __init__(
        self, problem: Problem, gpu_of_rank: IntArray, remembers: bool
    ) -> None:
        self._machine, self._gpu_of_rank = problem.machine, gpu_of_rank
        self._symmetry = Symmetry(problem.machine)
        at = problem.job.parallelism.coordinates
        node = problem.machine.node_of_gpu[gpu_of_rank]
        #: For each tier, which stages and replicas each domain holds at first.
        self._holds: list[list[BoolArray]] = []
        # For each tier, nodes with ranks at first, and nodes that may have some.
        self._in_use: list[IntArray] = []
        self._open: list[IntArray] = []
        used = np.bincount(node, minlength=problem.machine.num_nodes) > 0
        may_be_used = used | ~problem.limits.avoided
        for row in problem.machine.domain_of_node:
            self._in_use.append(np.bincount(row, used).astype(np.int64))
            self._open.append(np.bincount(row, may_be_used).astype(np.int64))
            own = []
            for axis in ("pp", "dp"):
                held = np.zeros((int(row.max()) + 1, int(at[axis].max()) + 1), bool)
                held[row[node], at[axis]] = True
                own.append(held)
            self._holds.append(own)
        self._held = [[held & remembers for held in own] for own in self._holds]
        # What a node's links carry: its groups along dp, and along pp, by content.
        self._carries = [
            _first_of_node(number, node, problem.machine.num_nodes)
            for number in (
                at["pp"] * (int(at["cp"].max()) + 1) + at["cp"],
                at["dp"] * (int(at["cp"].max()) + 1) + at["cp"],
            )
        ]
        self._carried = [_numbered(carries) for carries in self._carries]

    def placed(self, content: list[IntArray]) -> IntArray:
        """The placement in which every node holds its content."""
        holder = np.argsort(content[0])
        return on_other_nodes(self._machine, self._gpu_of_rank, holder)

    def keep(self, content: list[IntArray]) -> None:
        """Count what the domains hold now as held."""
        for own, held, now in zip(self._holds, self._held, content, strict=True):
            for first, so_far in zip(own, held, strict=True):
                so_far |= first[now]
        self._carried = [
            _numbered(np.stack([carried, carries[content[0]]]))
            for carried, carries in zip(self._carried, self._carries, strict=True)
        ]

    def drawn(self, rng: np.random.Generator) -> list[IntArray]:
        """A random exchange of equal domains, mended: what each holds, by tier."""
        symmetry = self._symmetry
        top = len(self._holds) - 1
        content = [np.arange(len(own[0])) for own in self._holds]
        for tier in range(top, 0, -1):
            shape = symmetry.shape[tier - 1]
            for domain, inside in enumerate(symmetry.children[tier]):
                taken = symmetry.children[tier][int(content[tier][domain])]
                places, contents = defaultdict(list), defaultdict(list)
                for child in inside:
                    places[shape[child]].append(child)
                for child in taken:
                    contents[shape[child]].append(child)
                for kind, alike in places.items():
                    if tier <= self._machine.node_tier:
                        # A launcher tells the islands of a host apart.
                        content[tier - 1][alike] = contents[kind]
                        continue
                    matched = self._matched(tier - 1, alike, contents[kind], rng)
                    content[tier - 1][alike] = matched
        if not self._machine.node_tier:
            self._tell_apart(content[0], rng)
        return content

    def _tell_apart(self, content: IntArray, rng: np.random.Generator) -> None:
        """Exchange contents of alike nodes that would carry the same once more.

        Two nodes whose links have carried the same groups in every placement cannot be
        told apart.
        """
        parent = self._symmetry.parent[0] if self._symmetry.parent else None
        shape = np.array(self._symmetry.shape[0])
        family = shape if parent is None else _numbered(np.stack([parent, shape]))
        members = [np.flatnonzero(family == f) for f in range(int(family.max()) + 1)]
        for carried, carries in zip(self._carried, self._carries, strict=True):
            meets = Counter(
                zip(carried.tolist(), carries[content].tolist(), strict=True)
            )
            for node in rng.permutation(len(content)).tolist():
                if meets[int(carried[node]), int(carries[content[node]])] < 2:
                    continue
                for other in rng.permutation(members[family[node]])[:TRIES].tolist():
                    if self._separates(meets, carried, carries, content, node, other):
                        break

    def _separates(
        self,
        meets: Counter[tuple[int, int]],
        carried: IntArray,
        carries: IntArray,
        content: IntArray,
        one: int,
        other: int,
    ) -> bool:
        """Exchange the contents of two nodes if fewer then carry the same again."""
        pair = np.array([one, other])
        now, then = content[pair], content[pair[::-1]]
        if self._again(0, pair, then).sum() > self._again(0, pair, now).sum():
            return False
        before = [*zip(carried[pair].tolist(), carries[now].tolist(), strict=True)]
        after = [*zip(carried[pair].tolist(), carries[then].tolist(), strict=True)]
        meets.subtract(before)
        if sum(meets[key] for key in after) >= sum(meets[key] for key in before):
            meets.update(before)
            return False
        meets.update(after)
        content[pair] = then
        return True

    def _matched(
        self,
        tier: int,
        places: list[int],
        contents: list[int],
        rng: np.random.Generator,
    ) -> IntArray:
        """Contents for places, in random order but for what was held before."""
        chosen = rng.permutation(contents)
        if len(places) == 1:
            return chosen
        here = np.array(places)
        for _ in range(ROUNDS):
            again = self._again(tier, here, chosen)
            bad = np.flatnonzero(again > 0)
            if not len(bad):
                break
            for one in bad.tolist():
                # Exchange it with whichever leaves the fewest meetings of both.
                others = rng.permutation(len(here))[:64]
                swapped = self._again(tier, here[[one]], chosen[others])
                swapped += self._again(tier, here[others], chosen[[one]])
                now = self._again(tier, here[[one]], chosen[[one]])
                now = now + self._again(tier, here[others], chosen[others])
                best = int(np.argmin(swapped - now))
                if swapped[best] < now[best]:
                    other = others[best]
                    chosen[[one, other]] = chosen[[other, one]]
        for one in np.flatnonzero(self._again(tier, here, chosen) > 0).tolist():
            turn = self._turn(tier, here, chosen, one)
            chosen[turn] = chosen[np.roll(turn, -1)]
        return chosen

    def _turn(
        self, tier: int, here: IntArray, chosen: IntArray, start: int
    ) -> IntArray:
        """Places in a ring, each of which may take what the next one holds.

        The ring begins at ``start``, by breadth first; it is empty where there is none.
        """
        came_from = {start: start}
        queue = deque([start])
        while queue:
            place = queue.popleft()
            fits = self._again(tier, here[[place]], chosen) == 0
            if place != start and fits[start]:
                ring = [place]
                while ring[-1] != start:
                    ring.append(came_from[ring[-1]])
                return np.array(ring[::-1])
            for other in np.flatnonzero(fits).tolist():
                if other not in came_from:
                    came_from[other] = place
                    queue.append(other)
        return np.zeros(0, dtype=np.int64)

    def _again(self, tier: int, places: IntArray, contents: IntArray) -> IntArray:
        """How many stages and replicas each place would hold again.

        No place has ranks on nodes to avoid that had none.
        """
        total = np.zeros(max(len(places), len(contents)), dtype=np.int64)
        for first, so_far in zip(self._holds[tier], self._held[tier], strict=True):
            total += (first[contents] & so_far[places]).sum(axis=1)
        is_too_full = self._in_use[tier][contents] > self._open[tier][places]
        return total + NEVER * is_too_full


def _first_of_node(number: IntArray, node: IntArray, nodes: int) -> IntArray:
    """The number of the first rank of each node; -1 of one without ranks."""
    found = np.full(nodes, -1)
    held, first = np.unique(node, return_index=True)
    found[held] = number[first]
    return found


def _numbered(columns: IntArray) -> IntArray:
    """Equal numbers for equal columns."""
    rows = np.atleast_2d(columns)
    return np.unique(rows, axis=1, return_inverse=True)[1].ravel()
