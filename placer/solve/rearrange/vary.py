"""The same placement in other places: what was together is apart, at the same cost.

Equal domains of the machine exchange what they hold (`placer.solve.tree.symmetry`), which
changes no cost. Each exchange is drawn at random and mended until no node holds a stage
or a replica again that it held before, and no domain a replica, wherever there are enough
domains alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.tree.symmetry import Symmetry

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ROUNDS = 60  # passes over a set of domains that mend an exchange
DRAWS = 20  # exchanges that are tried for one placement


def varied(problem: Problem, gpu_of_rank: IntArray, count: int) -> Iterator[IntArray]:
    """Placements of the same cost, the given one first; shape (R,) each.

    At most ``count``; fewer where rules or costs forbid others.
    """
    rng = np.random.default_rng(problem.seed)
    spread = _Spread(problem, gpu_of_rank)
    cost = problem.goal.value(gpu_of_rank)
    most_avoided = problem.avoided(gpu_of_rank)
    yield gpu_of_rank
    for _ in range(count - 1):
        for _ in range(DRAWS):
            content = spread.drawn(rng)
            other = spread.placed(content)
            if not problem.allows(other) or problem.avoided(other) > most_avoided:
                continue
            if abs(problem.goal.value(other) / cost - 1) > 1e-9:
                continue
            spread.keep(content)
            yield other
            break
        else:
            return


class _Spread:
    """What every domain has held so far, and exchanges that bring it something else.

    The content of a domain is another domain's of the same shape: what that one holds in
    the first placement.
    """

    def __init__(self, problem: Problem, gpu_of_rank: IntArray) -> None:
        self._machine, self._gpu_of_rank = problem.machine, gpu_of_rank
        self._symmetry = Symmetry(problem.machine)
        at = problem.job.parallelism.coordinates
        node = problem.machine.node_of_gpu[gpu_of_rank]
        #: For each tier, which stages and replicas each domain holds at first.
        self._holds: list[list[BoolArray]] = []
        for row in problem.machine.domain_of_node:
            own = []
            for axis in ("pp", "dp"):
                held = np.zeros((int(row.max()) + 1, int(at[axis].max()) + 1), bool)
                held[row[node], at[axis]] = True
                own.append(held)
            self._holds.append(own)
        self._held = [[held.copy() for held in own] for own in self._holds]

    def placed(self, content: list[IntArray]) -> IntArray:
        """The placement in which every node holds its content."""
        machine = self._machine
        holder = np.argsort(content[0])
        node = machine.node_of_gpu[self._gpu_of_rank]
        local = self._gpu_of_rank - machine.first_gpu_of_node[node]
        found: IntArray = machine.first_gpu_of_node[holder[node]] + local
        return found

    def keep(self, content: list[IntArray]) -> None:
        """Count what the domains hold now as held."""
        for own, held, now in zip(self._holds, self._held, content, strict=True):
            for first, so_far in zip(own, held, strict=True):
                so_far |= first[now]

    def drawn(self, rng: np.random.Generator) -> list[IntArray]:
        """A random exchange of equal domains, mended: content of the domains by tier."""
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
                    matched = self._matched(tier - 1, alike, contents[kind], rng)
                    content[tier - 1][alike] = matched
        return content

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
        return chosen

    def _again(self, tier: int, places: IntArray, contents: IntArray) -> IntArray:
        """How many stages and replicas each place would hold again."""
        total = np.zeros(max(len(places), len(contents)), dtype=np.int64)
        for first, so_far in zip(self._holds[tier], self._held[tier], strict=True):
            total += (first[contents] & so_far[places]).sum(axis=1)
        return total
