"""Windows of a stitching made again, now that their neighbours are known.

A window makes its replicas before the next one is looked at, so the joints about its
end are chance. Once all are made, windows that lie halfway between those before are
solved afresh: each takes back the replicas that lie in its own leaves alone, and makes
as many. They share no leaf, so they go on side by side. What is not cheaper is left as
it was.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.chains.segments import price_of_joints
from placer.solve.construct.chains.stitch_part import (
    of_machine,
    restricted,
    window_width,
)
from placer.solve.construct.chains.stitch_program import stitch_at_once
from placer.solve.count.engine import Limits
from placer.solve.run.workers import in_order

if TYPE_CHECKING:
    from placer.solve.construct.chains.segments import Segment, Stitched, Stitching
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


class _Window(NamedTuple):
    """Leaves, and the replicas that lie in them alone."""

    leaves: IntArray
    replicas: list[Segment]


def stitch_again(
    problem: Stitching, params: Params, seed: int, budget: Budget, before: Stitched
) -> Stitched:
    """A stitching in windows with cheaper joints, the same where there are none.

    Parameters
    ----------
    problem : Stitching
    params : Params
    seed : int
    budget : Budget
        Asked before every program.
    before : Stitched
        All replicas.
    """
    if problem.most_joints is not None:
        return before
    windows, others = _windows(problem, params, before.replicas)
    free, halves = _left_over(problem, before.replicas)

    def again(window: _Window) -> tuple[list[Segment], bool]:
        """Replicas of a window, and whether the clock left no time for better ones."""
        leaves, own = window
        if budget.is_over():
            return own, True
        units, twins = _used(problem, own)
        part = restricted(problem, leaves, free + units, halves + twins, len(own))
        seconds = budget.seconds_left
        limits = Limits(params.window_work, seconds, seed, gap=params.again_gap)
        found = stitch_at_once(part, limits)
        if found is None:
            return own, budget.is_over()
        if found.cut_short:
            return own, True
        made = [of_machine(leaves, replica) for replica in found.replicas]
        is_cheaper = price_of_joints(problem, made) < price_of_joints(problem, own)
        return made if is_cheaper else own, False

    answers = in_order(again, windows, budget.workers)
    is_cut = any(cut for _, cut in answers)
    if all(made is own for (made, _), (_, own) in zip(answers, windows, strict=True)):
        return replace(before, cut_short=is_cut)
    replicas = [*others, *chain.from_iterable(made for made, _ in answers)]
    return replace(before, replicas=replicas, cut_short=is_cut)


def _windows(
    problem: Stitching, params: Params, replicas: list[Segment]
) -> tuple[list[_Window], list[Segment]]:
    """Windows halfway between those before, and replicas that lie in no single one."""
    order, width = problem.in_tree_order(1), window_width(problem, params)
    several = np.array_split(np.roll(order, width // 2), -(-len(order) // width))
    number = np.empty(len(order), dtype=np.int64)
    for window, domains in enumerate(several):
        number[domains] = window
    window_of = number[problem.parents[0]]
    inside: list[list[Segment]] = [[] for _ in several]
    others: list[Segment] = []
    for replica in replicas:
        leaves = [leaf for piece in replica for leaf in (piece.leaf, piece.twin)]
        first, *more = set(window_of[leaves].tolist())
        (others if more else inside[first]).append(replica)
    windows = [
        _Window(np.flatnonzero(window_of == window), own)
        for window, own in enumerate(inside)
        if own
    ]
    return windows, others


def _used(problem: Stitching, replicas: list[Segment]) -> tuple[IntArray, IntArray]:
    """Units, and halves, that replicas use of each leaf."""
    units = np.zeros_like(problem.capacity)
    halves = np.zeros_like(problem.capacity)
    for leaf, length, twin in chain.from_iterable(replicas):
        if leaf == twin:
            units[leaf] += length
        else:
            halves[[leaf, twin]] += 1
    return units, halves


def _left_over(
    problem: Stitching, replicas: list[Segment]
) -> tuple[IntArray, IntArray]:
    """Units, and halves, that replicas leave over in each leaf."""
    units, halves = _used(problem, replicas)
    spare = problem.spare_halves
    return problem.capacity - units, halves * 0 if spare is None else spare - halves
