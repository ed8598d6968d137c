"""Deal the counts of a stitching out to named leaf domains."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.count.segments import Kind, Piece

if TYPE_CHECKING:
    import numpy.typing as npt

    from placer.solve.count.segments import Counts, Pair, Segment, Stitching

    IntArray = npt.NDArray[np.int64]


def deal(problem: Stitching, counts: Counts) -> list[Segment]:
    """The counts dealt out to leaves in order: pieces of every replica."""
    pools: dict[int, dict[Kind, list[Segment]]] = {}
    halves = _halves_by_parent(problem)
    for (parent, capacity), splits in counts.splits.items():
        members = (problem.parents[0] == parent) & (problem.capacity == capacity)
        stretches = _cut(np.flatnonzero(members), capacity, splits)
        pool = pools.setdefault(parent, {})
        for length, leaves in stretches.items():
            segments: list[Segment] = [(Piece(leaf, length, leaf),) for leaf in leaves]
            pool.setdefault(Kind(length, 0), []).extend(segments)
    for level in range(1, len(problem.parents) + 1):
        merged: dict[int, dict[Kind, list[Segment]]] = {}
        is_top = level == len(problem.parents)
        halves_left: dict[int, list[int]] = {}
        for domain in sorted({*pools, *halves}):
            pool = pools.get(domain, {})
            spare = halves.get(domain, [])
            for _ in range(counts.paired.get((level, domain), 0)):
                twins = (Piece(spare.pop(), 1, spare.pop()),)
                pool.setdefault(Kind(1, 0), []).append(twins)
            _join(problem, pool, counts.joints.get((level, domain), {}))
            parent = 0 if is_top else int(problem.parents[level][domain])
            target = merged.setdefault(parent, {})
            for kind, segments in pool.items():
                target.setdefault(kind, []).extend(segments)
            halves_left.setdefault(parent, []).extend(spare)
        pools, halves = merged, halves_left
    whole = [
        segment
        for kind, segments in sorted(pools[0].items())
        if kind.length == problem.length
        for segment in segments
    ]
    return whole[: problem.replicas]


def _halves_by_parent(problem: Stitching) -> dict[int, list[int]]:
    """Leaves with a spare half, once a half, by parent."""
    halves: dict[int, list[int]] = {}
    if problem.spare_halves is not None:
        for leaf, spare in enumerate(problem.spare_halves):
            parent = int(problem.parents[0][leaf])
            halves.setdefault(parent, []).extend([leaf] * int(spare))
    return halves


def _cut(
    leaves: IntArray, capacity: int, splits: dict[tuple[int, int], int]
) -> dict[int, list[int]]:
    """Leaves of the stretches of each length, after the splits of their class."""
    stretches: defaultdict[int, list[int]] = defaultdict(list)
    stretches[capacity] = leaves.tolist()
    for (small, large), times in sorted(splits.items(), key=lambda item: -sum(item[0])):
        for _ in range(times):
            leaf = stretches[small + large].pop()
            stretches[small].append(leaf)
            stretches[large].append(leaf)
    return stretches


def _join(
    problem: Stitching, pool: dict[Kind, list[Segment]], joints: dict[Pair, int]
) -> None:
    """Apply a domain's joints to its pool, shortest results first."""
    for (first, second), times in sorted(
        joints.items(), key=lambda item: item[0][0].length + item[0][1].length
    ):
        made = problem.join(first, second)
        if made is None:
            continue
        for _ in range(times):
            segment = pool[first].pop() + pool[second].pop()
            pool.setdefault(made, []).append(segment)
