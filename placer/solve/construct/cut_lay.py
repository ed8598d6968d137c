"""Lay runs of stages on named leaves and join them to replicas, along the tree.

Shapes: L leaves in tree order, F patterns, K kinds of runs, W ways to cut a replica, D
replicas, P stages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.construct.cut_stages import Stages
    from placer.solve.count.cut_patterns import Question, Run
    from placer.solve.count.cut_program import Deal

IntArray = npt.NDArray[np.int64]

# Rounds of exchanges between leaves; every round but the last has found something.
# There are fewer where a round is long.
MOST_ROUNDS, MOST_COMPARED = 20, 1_000_000_000


def leaf_of_stage(question: Question, found: Deal, stages: Stages) -> IntArray:
    """Leaf of every stage of every replica; shape (D, P).

    Replicas come in tree order, those inside the smallest domains first: a ring takes a
    leaf where a replica first has it, so those that lie across find their leaves taken
    and lengthen no ring.
    """
    patterns = np.vstack((question.patterns, np.zeros_like(question.patterns[:1])))
    held = patterns[_pattern_of_leaf(question, found, stages)]
    pool = {
        leaf: {run: [leaf] * int(n) for run, n in zip(question.runs, row, strict=True)}
        for leaf, row in enumerate(held.tolist())
    }
    left = found.replicas_of_set.copy()
    rows: list[IntArray] = []
    for domain_of_leaf in stages.domain_of_leaf:
        pool = _merged(pool, domain_of_leaf)
        made = [
            row
            for domain in sorted(pool)
            for row in _joined(question, pool[domain], left, stages.number)
        ]
        rows += sorted(made, key=lambda row: row.tolist())
    return np.array(rows)


def evenly(counts: IntArray) -> list[int]:
    """Every index as often as ``counts`` says, spread evenly over the list."""
    places = [
        ((turn + 0.5) / count, index)
        for index, count in enumerate(counts.tolist())
        for turn in range(count)
    ]
    return [index for _, index in sorted(places)]


def _pattern_of_leaf(question: Question, found: Deal, stages: Stages) -> IntArray:
    """Pattern of every leaf, the last one and one more for none; shape (L,).

    Large patterns go to the smallest leaves that they fit; among leaves of one size
    patterns take turns along the tree, and are then exchanged so that runs find others
    to be joined with in their own domain.
    """
    sizes, capacity = question.sizes, stages.capacity
    of_size = {
        room: np.zeros(len(sizes) + 1, dtype=np.int64)
        for room in np.unique(capacity).tolist()
    }
    free = {room: int((capacity == room).sum()) for room in of_size}
    for pattern in np.argsort(-sizes, kind="stable").tolist():
        left = int(found.leaves_of_pattern[pattern])
        for room in (room for room in of_size if room >= sizes[pattern]):
            taken = min(left, free[room])
            of_size[room][pattern] += taken
            free[room] -= taken
            left -= taken
    chosen = np.empty(len(capacity), dtype=np.int64)
    for room, counts in of_size.items():
        counts[-1] = free[room]
        chosen[capacity == room] = evenly(counts)
    return _balanced(chosen, _surplus(question, stages.number), stages)


def _surplus(question: Question, stages: int) -> IntArray:
    """Runs of each pattern that end before a stage, less those that start with it.

    Shape (F + 1, P); joints need as many of one sort as of the other.
    """
    of_run = np.zeros((len(question.runs), stages), dtype=np.int64)
    for row, run in zip(of_run, question.runs, strict=True):
        row[run.start] -= 1
        row[(run.start + run.length) % stages] += 1
    return np.vstack((question.patterns @ of_run, np.zeros((1, stages), np.int64)))


def _balanced(chosen: IntArray, surplus: IntArray, stages: Stages) -> IntArray:
    """The patterns of equal leaves exchanged until domains are in balance."""
    chosen, domain = chosen.copy(), stages.domain_of_leaf[0]
    total = np.zeros((int(domain.max()) + 1, surplus.shape[1]), dtype=np.int64)
    np.add.at(total, domain, surplus[chosen])
    compared = len(chosen) ** 2 * surplus.shape[1]
    for _ in range(min(MOST_ROUNDS, MOST_COMPARED // compared)):
        changed = False
        for leaf in range(len(chosen)):
            others = np.flatnonzero(
                (stages.capacity == stages.capacity[leaf]) & (domain != domain[leaf])
            )
            change = surplus[chosen[others]] - surplus[chosen[leaf]]
            here, there = total[domain[leaf]], total[domain[others]]
            better = np.abs(here) - np.abs(here + change)
            better += np.abs(there) - np.abs(there - change)
            gain = better.sum(axis=1)
            best = int(gain.argmax()) if len(gain) else -1
            if best >= 0 and gain[best] > 0:
                other = int(others[best])
                total[domain[leaf]] += change[best]
                total[domain[other]] -= change[best]
                chosen[[leaf, other]] = chosen[[other, leaf]]
                changed = True
        if not changed:
            break
    return chosen


Pool = dict["Run", list[int]]


def _merged(pool: dict[int, Pool], parent: IntArray) -> dict[int, Pool]:
    """The runs left of all domains, by the domain that holds these."""
    merged: dict[int, Pool] = {}
    for domain in sorted(pool):
        target = merged.setdefault(int(parent[domain]), {})
        for run, leaves in pool[domain].items():
            target.setdefault(run, []).extend(leaves)
    return merged


def _joined(
    question: Question, pool: Pool, left: IntArray, stages: int
) -> list[IntArray]:
    """Replicas made of the runs of a domain, taken out of ``pool`` and ``left``."""
    rows: list[IntArray] = []
    for way, runs in enumerate(question.sets):
        count = min(int(left[way]), *(len(pool[run]) for run in runs))
        left[way] -= count
        made = np.empty((count, stages), dtype=np.int64)
        for run in runs:
            here = np.arange(run.start, run.start + run.length) % stages
            made[:, here] = np.array(pool[run][:count], dtype=np.int64)[:, None]
            del pool[run][:count]
        rows += list(made)
    return rows
