"""A placement in other places: what was together is apart, at the same cost.

Equal domains of the machine exchange what they hold (`placer.solve.tree.symmetry`),
which changes no cost. Of each family of domains alike that exchange is taken, at
random, in which the fewest hold a stage or a replica again that they held before: none,
wherever there are enough of them. Of several such the one comes first that tells the
most nodes apart: two whose links have always carried the same groups are as slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.solve.tree.symmetry import Symmetry, best_pairs, on_other_nodes

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem

DRAWS = 8  # exchanges that are tried for one placement
PARTNERS = 32  # contents that are tried for a domain, of all domains alike
# What an exchange is worth that holds nothing again, and what chance adds at most.
CLEAN, CHANCE = 1 << 20, 1 << 10


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
        drawn = [spread.drawn(rng) for _ in range(DRAWS)]
        for content in sorted(drawn, key=spread.alike):
            holder = np.argsort(content[0])
            other = on_other_nodes(problem.machine, gpu_of_rank, holder)
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
        self._machine, self._symmetry = problem.machine, Symmetry(problem.machine)
        axes, node = problem.job.parallelism, problem.machine.node_of_gpu[gpu_of_rank]
        at = axes.coordinates
        used = np.bincount(node, minlength=problem.machine.num_nodes) > 0
        may_be_used = used | ~problem.limits.avoided
        #: For each tier, which stages and replicas each domain holds at first.
        self._holds: list[BoolArray] = []
        # For each tier, nodes with ranks at first, and nodes that may have some.
        self._in_use: list[IntArray] = []
        self._open: list[IntArray] = []
        for row in problem.machine.domain_of_node:
            self._in_use.append(np.bincount(row, used).astype(np.int64))
            self._open.append(np.bincount(row, may_be_used).astype(np.int64))
            held = np.zeros((int(row.max()) + 1, axes.pp + axes.dp), bool)
            held[row[node], at["pp"]] = held[row[node], axes.pp + at["dp"]] = True
            self._holds.append(held)
        self._held = [held & remembers for held in self._holds]
        # What a node's links carry: its groups along dp, and along pp, by content.
        self._carries = np.full((2, problem.machine.num_nodes), -1)
        for row, axis in zip(self._carries, ("pp", "dp"), strict=True):
            row[node[::-1]] = (at[axis] * axes.cp + at["cp"])[::-1]
        self._carried = self._carries[:, None]

    def keep(self, content: list[IntArray]) -> None:
        """Count what the domains hold now as held."""
        for first, held, now in zip(self._holds, self._held, content, strict=True):
            held |= first[now]
        self._carried = self._with(content)

    def alike(self, content: list[IntArray]) -> int:
        """How many nodes carry what others do, now and in all placements kept."""
        columns = (
            np.unique(rows, axis=1, return_counts=True)[1]
            for rows in self._with(content)
        )
        return sum(int(counts[counts > 1].sum()) for counts in columns)

    def _with(self, content: list[IntArray]) -> IntArray:
        """What each node has carried, for either axis, and would; (2, kept, N)."""
        now = self._carries[:, None, content[0]]
        return np.concatenate((self._carried, now), axis=1)

    def drawn(self, rng: np.random.Generator) -> list[IntArray]:
        """A random exchange of equal domains: what each holds, by tier."""
        symmetry = self._symmetry
        content = [np.arange(len(held)) for held in self._holds]
        for tier in range(len(content) - 1, 0, -1):
            shape = np.array(symmetry.shape[tier - 1])
            for domain, inside in enumerate(symmetry.children[tier]):
                places = np.array(inside)
                contents = np.array(symmetry.children[tier][content[tier][domain]])
                for kind in np.unique(shape[places]):
                    alike, chosen = (
                        own[shape[own] == kind] for own in (places, contents)
                    )
                    # A launcher tells the islands of a host apart.
                    if tier > self._machine.node_tier and len(alike) > 1:
                        chosen = self._matched(tier - 1, alike, chosen, rng)
                    content[tier - 1][alike] = chosen
        return content

    def _matched(
        self, tier: int, places: IntArray, contents: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Contents for places, by chance but for what they held before."""
        count = len(places)
        turns = rng.permutation(count)[:PARTNERS, None]
        # By turning a ring every place has as many contents to choose from, and back.
        place = np.broadcast_to(np.arange(count), (len(turns), count))
        choice = (place + turns) % count
        contents = rng.permutation(contents)
        some = contents[choice]
        again = np.array(
            [
                (self._holds[tier][turned] & self._held[tier][places]).sum(axis=1)
                for turned in some
            ]
        )
        worth = rng.integers(1, CHANCE, some.shape) + CLEAN // (1 + again)
        # No place has ranks on nodes to avoid that had none.
        fits = self._in_use[tier][some] <= self._open[tier][places]
        pairs = np.stack((place[fits], choice[fits]), axis=1)
        best = pairs[best_pairs(pairs, worth[fits])]
        found = np.full(count, -1)
        found[best[:, 0]] = best[:, 1]
        found[found < 0] = np.setdiff1d(np.arange(count), found)
        return np.asarray(contents[found])
