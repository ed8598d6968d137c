"""Stitch chains of units out of what fragmented domains can hold.

A replica is a chain of ``length`` units, each in one leaf domain. Every leaf domain is
cut into segments of consecutive units; going up the tree, a domain joins segments of
its children at the price of a hop of its tier, and exports the rest. An integer program
decides *how many* segments of each length a domain cuts, joins and exports.

Large machines are walked in tree order, a window of domains just above the leaves at a
time; units left free go on to the next one. A window whose program finds nothing in its
share of work is halved; one domain alone takes replicas back that were made before,
ever more of them. Many windows are several walks, side by side; one more program makes
the few replicas that are missing, or they are laid along the tree. See docs/method.md,
section 5.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.construct.chains.laid import laid
from placer.solve.construct.chains.segments import ROUNDING, Stitched, price_of_joints
from placer.solve.construct.chains.stitch_part import (
    of_machine,
    restricted,
    window_width,
)
from placer.solve.construct.chains.stitch_program import stitch_at_once
from placer.solve.count.engine import Limits
from placer.solve.run.workers import in_order

if TYPE_CHECKING:
    from placer.arrays import BoolArray, FloatArray, IntArray
    from placer.solve.construct.chains.segments import Segment, Stitching
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


def stitch(
    problem: Stitching,
    params: Params,
    seed: int,
    budget: Budget,
    *,
    in_windows: bool = True,
) -> Stitched | None:
    """Replicas with the cheapest joints, None when none were found.

    Chains too long for windows are stitched on small machines only: elsewhere they
    cross so many leaves that laying them along the tree is about as good. Short open
    chains are stitched with a proof; for longer ones, and for rings, where much costs
    the same, that takes minutes. With ``in_windows`` false, machines too large for one
    program are left.
    """
    domains = sum(int(parent.max()) + 1 for parent in problem.parents)
    sorts = len(problem.pairs())
    if sorts > params.window_joints and domains * sorts > params.long_joints:
        return None
    if domains * sorts <= params.joints_at_once:
        proves = sorts <= params.proved_sorts and not problem.closed
        nodes = params.proved_nodes if proves else params.stitched_nodes
        left = 0.0 if budget.is_over() else budget.seconds_left
        limits = Limits(nodes, left, seed, "scip", wants_proof=proves)
        return stitch_at_once(problem, limits)
    if not in_windows:
        return None
    windows = Windows(problem, params, seed, budget)
    windows.stitch_in_walks()
    rest = windows.rest
    if rest.replicas and problem.most_joints is not None:
        return None
    completed = laid(rest)
    if completed is None:
        return None
    replicas = [*windows.replicas, *completed]
    return Stitched(replicas, inf, -inf, False, windows.cut_short)


class Windows:
    """Replicas stitched so far, and what the leaves still have room for.

    Parameters
    ----------
    budget : Budget
        Asked before every program.
    half_worth : float, optional
        Units that a spare half stands for, if it is known.
    """

    def __init__(
        self,
        problem: Stitching,
        params: Params,
        seed: int,
        budget: Budget,
        half_worth: float | None = None,
    ) -> None:
        self.problem, self.params = problem, params
        self.seed, self.budget = seed, budget
        self.free = problem.capacity.copy()
        halves = problem.spare_halves
        self.halves = np.zeros_like(self.free) if halves is None else halves.copy()
        self.half_worth = self._half_worth() if half_worth is None else half_worth
        self.usable = problem.usable + self.half_worth * self.halves
        self.replicas: list[Segment] = []
        self.cut_short = False
        self.short = 0

    def _half_worth(self) -> float:
        """Units that a spare half stands for: 0 where hardly any of them is needed."""
        missing = self.problem.replicas * self.problem.length - int(self.free.sum())
        share = missing / max(1, int(self.halves.sum()))
        return min(share, 0.5) if 2 * share > self.params.scarce_halves else 0.0

    @property
    def _width(self) -> int:
        return window_width(self.problem, self.params)

    @property
    def rest(self) -> Stitching:
        """The replicas that are missing, and the room that is left for them."""
        problem = self.problem
        has_halves = problem.spare_halves is not None
        return replace(
            problem,
            capacity=self.free,
            replicas=problem.replicas - len(self.replicas),
            spare_halves=self.halves if has_halves else None,
        )

    def stitch_in_walks(self) -> None:
        """Make replicas walk by walk side by side, then those that are missing.

        Neither the walks nor what they make depends on how many go on at a time.
        """
        order = self.problem.in_tree_order(1)
        windows = -(-len(order) // self._width)
        walks = np.array_split(order, max(1, windows // self.params.windows_a_walk))
        if len(walks) == 1:
            self.stitch()
            return
        leaves = [np.flatnonzero(np.isin(self.problem.parents[0], w)) for w in walks]
        room = np.cumsum([self.usable[some].sum() for some in leaves])
        share = room / max(1.0, room[-1])
        due = (self.problem.replicas * share + ROUNDING).astype(np.int64)
        dealt = list(zip(leaves, np.diff(due, prepend=0).tolist(), strict=True))
        walked = in_order(self._walk, dealt, self.budget.workers)
        for some, walk in zip(leaves, walked, strict=True):
            self._take_over(some, walk)
        missing = self.problem.replicas - len(self.replicas)
        everywhere = np.ones(len(self.free), dtype=bool)
        # So few of all replicas that other seeds gain less than their time is worth.
        if not self._extend(self._left_over(missing), missing, seeds=1):
            self._made_again(everywhere, ~everywhere, self.problem.replicas)

    def _walk(self, dealt: tuple[IntArray, int]) -> Windows:
        """Replicas out of some leaves alone, so many if they can be made."""
        leaves, replicas = dealt
        part = restricted(self.problem, leaves, self.free, self.halves, replicas)
        walk = Windows(part, self.params, self.seed, self.budget, self.half_worth)
        walk.stitch()
        return walk

    def _take_over(self, leaves: IntArray, walk: Windows) -> None:
        """Keep what a walk over some leaves made."""
        self.cut_short |= walk.cut_short
        for segment in walk.replicas:
            self._add(leaves, segment)

    def _left_over(self, replicas: int) -> IntArray:
        """The last leaves with free units for some replicas, and halves if need be."""
        some = self.params.handed_on * self.problem.length
        needed = replicas * self.problem.length
        halves = max(0, needed - int(self.free.sum())) * 2
        wanted = halves + some if halves else 0
        return np.flatnonzero(
            _last(self.free, needed + some) | _last(self.halves, wanted)
        )

    def stitch(self) -> None:
        """Make replicas window by window, all of them if that can be."""
        problem = self.problem
        order = problem.in_tree_order(1)
        windows = deque(np.array_split(order, -(-len(order) // self._width)))
        seen = np.zeros(len(self.free), dtype=bool)
        while windows and not self.budget.is_over():
            window = windows.popleft()
            new = np.isin(problem.parents[0], window)
            due = self._due(seen | new) - self.short
            leaves = np.flatnonzero(new | self._handed_on(seen))
            if self._extend(leaves, due - len(self.replicas)) or (
                len(window) == 1 and self._made_again(seen, new, due)
            ):
                seen |= new
            elif len(window) > 1:
                windows.extendleft(np.array_split(window, 2)[::-1])
            elif problem.most_joints is None and not self.budget.is_over():
                self.short += due - len(self.replicas)
                seen |= new
            else:
                break
        self.cut_short |= bool(windows) and self.budget.is_over()

    def _made_again(self, seen: BoolArray, new: BoolArray, due: int) -> bool:
        """Take back ever more replicas and make them again beside those of a window."""
        for count in self.params.taken_back:
            if self.budget.is_over():
                return False
            again = self.replicas[-count:]
            del self.replicas[-count:]
            for segment in again:
                self._use(segment, -1)
            leaves = np.flatnonzero(new | self._around(seen, again))
            if self._extend(leaves, due - len(self.replicas)):
                return True
            for segment in again:
                self._use(segment)
            self.replicas += again
            if len(again) < count:
                break
        return False

    def _around(self, seen: BoolArray, replicas: list[Segment]) -> BoolArray:
        """Leaves of some replicas, and all that are seen in the same domains."""
        used = [leaf for segment in replicas for leaf, _, _ in segment]
        parent = self.problem.parents[0]
        return seen & np.isin(parent, parent[used])

    def _due(self, seen: BoolArray) -> int:
        """Replicas that the leaves seen so far should have made."""
        usable, replicas = self.usable, self.problem.replicas
        if seen.all():
            return replicas
        share = usable[seen].sum() / max(1.0, usable.sum())
        return int(replicas * share + ROUNDING)

    def _handed_on(self, seen: BoolArray) -> BoolArray:
        """The last leaves with free units, as many as a few replicas need."""
        free = np.where(seen, self.free + self.half_worth * self.halves, 0)
        return _last(free, self.params.handed_on * self.problem.length)

    def _extend(
        self, leaves: IntArray, replicas: int, seeds: int | None = None
    ) -> bool:
        """Stitch replicas out of the free units of some leaves."""
        if replicas <= 0:
            return True
        part = restricted(self.problem, leaves, self.free, self.halves, replicas)
        stitched = self._best_of(part, seeds or self.params.window_seeds)
        if stitched is None:
            return False
        for segment in stitched.replicas:
            self._add(leaves, segment)
        return True

    def _add(self, leaves: IntArray, segment: Segment) -> None:
        """Keep a replica of a part of the machine, made of these leaves."""
        fragments = of_machine(leaves, segment)
        self._use(fragments)
        self.replicas.append(fragments)

    def _best_of(self, part: Stitching, seeds: int) -> Stitched | None:
        """The first good answer of a program, or the best of several from other seeds.

        A program that takes long from one seed often takes little from another (Gomes,
        Selman and Kautz 1998, "Boosting combinatorial search through randomization",
        AAAI).
        """
        best: Stitched | None = None
        params = self.params
        for seed in range(self.seed, self.seed + seeds):
            if self.budget.is_over():
                self.cut_short = True
                break
            seconds = self.budget.seconds_left
            limits = Limits(params.window_work, seconds, seed, gap=params.window_gap)
            found = stitch_at_once(part, limits)
            if found is not None and found.cut_short:
                # Chains along the tree are cheaper than what the clock cuts off.
                self.cut_short = True
                break
            if found is not None and (best is None or found.price < best.price):
                best = found
            if best is not None and best.proved:
                break
        return best if best is None or best.proved else _or_laid(part, best)

    def _use(self, segment: Segment, times: int = 1) -> None:
        """Take the room of a replica; -1 times gives it back."""
        for leaf, length, twin in segment:
            if leaf == twin:
                self.free[leaf] -= times * length
            else:
                self.halves[[leaf, twin]] -= times


def _or_laid(part: Stitching, found: Stitched) -> Stitched:
    """What was found, or chains along the tree where those have cheaper joints.

    Until a program comes near its bound, its answers may cost several times as much.
    """
    along = None if part.most_joints is not None else laid(part)
    if along is None:
        return found
    price = price_of_joints(part, along)
    if price >= price_of_joints(part, found.replicas):
        return found
    return replace(found, replicas=along, price=price)


def _last(room: IntArray | FloatArray, amount: int) -> BoolArray:
    """Which leaves are the last with so much room in all."""
    later = np.cumsum(room[::-1])[::-1] - room
    return np.asarray((room > 0) & (later < amount))
