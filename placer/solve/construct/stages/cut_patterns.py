"""What a leaf domain can hold: runs of stages, of which no stage is there too seldom.

A program then counts how many leaves hold which pattern, and how many replicas are cut
in which way: a cutting-stock model, with patterns as columns.

Shapes: P stages, K kinds of runs, F patterns, S ways to cut a replica.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.solve.problem.params import Params


class Run(NamedTuple):
    """Consecutive stages of one replica in one leaf, round the ring if need be."""

    start: int
    length: int


def runs_of(cuts: BoolArray) -> tuple[Run, ...]:
    """The runs between the cuts of a replica; all stages where there is none.

    Parameters
    ----------
    cuts : ndarray of bool, shape (P,)
        Whether the hop after each stage is cut.
    """
    stages = len(cuts)
    ends = np.flatnonzero(cuts).tolist()
    if not ends:
        return (Run(0, stages),)
    starts = [ends[-1] - stages, *ends[:-1]]
    return tuple(
        Run((before + 1) % stages, end - before)
        for before, end in zip(starts, ends, strict=True)
    )


class Question(NamedTuple):
    """Runs that leaves may hold and replicas may be made of.

    Attributes
    ----------
    runs : list of Run
        The kinds.
    sets : list of tuple of Run
        The runs that make up a replica, one entry a way to cut it.
    patterns : ndarray, shape (F, K)
        How many of each kind a leaf may hold together.
    uses : ndarray, shape (S, K)
        How many of each kind make up a replica of each way, all its lanes.
    """

    runs: list[Run]
    sets: list[tuple[Run, ...]]
    patterns: IntArray
    uses: IntArray

    @property
    def sizes(self) -> IntArray:
        """Stages in each pattern; shape (F,)."""
        sizes: IntArray = self.patterns @ np.array([run.length for run in self.runs])
        return sizes

    @property
    def key(self) -> bytes:
        """The same for two questions that have the same answers."""
        return self.patterns.tobytes() + b"/" + self.uses.tobytes()


def leaf_patterns(
    runs: list[Run], least: IntArray, room: int, params: Params
) -> IntArray:
    """How many runs of each kind a leaf may hold together; shape (F, K).

    Parameters
    ----------
    runs : list of Run
        The kinds.
    least : ndarray, shape (P,)
        How often each stage is in a leaf, if it is there at all.
    room : int
        Stages that the largest leaf has room for.
    params : Params
        How many kinds of runs a pattern has, and how many patterns are looked at.
    """
    covers = np.zeros((len(runs), len(least)), dtype=np.int64)
    for row, run in zip(covers, runs, strict=True):
        row[np.arange(run.start, run.start + run.length) % len(least)] = 1
    length = covers.sum(axis=1)
    alone = [
        (kind, count)
        for kind in range(len(runs))
        for count in range(1, room // int(length[kind]) + 1)
    ]
    single = np.zeros((len(alone), len(runs)), dtype=np.int64)
    for row, (kind, count) in zip(single, alone, strict=True):
        row[kind] = count
    last = np.array([kind for kind, _ in alone], dtype=np.int64)
    found, newest, kept = single, last, [_valid(single, covers, least)]
    for _ in range(params.pattern_runs - 1):
        if len(found) * len(single) > params.patterns_combined:
            break
        first, second = np.nonzero(newest[:, None] < last[None, :])
        fits = (found @ length)[first] + (single @ length)[second] <= room
        first, second = first[fits], second[fits]
        found, newest = found[first] + single[second], last[second]
        kept.append(_valid(found, covers, least))
    return np.concatenate(kept)[: params.patterns]


def _valid(found: IntArray, covers: IntArray, least: IntArray) -> IntArray:
    """Those in which every stage is absent or there often enough."""
    there = found @ covers
    often: BoolArray = ((there == 0) | (there >= least)).all(axis=1)
    return found[often]


class Counted(NamedTuple):
    """The answer.

    Attributes
    ----------
    leaves_of_pattern : ndarray, shape (F,)
    replicas_of_set : ndarray, shape (S,)
        Replicas cut in each way.
    """

    leaves_of_pattern: IntArray
    replicas_of_set: IntArray


def count(
    question: Question, capacity: IntArray, replicas: int, limits: Limits
) -> Counted | None:
    """Leaves of each pattern and replicas of each kind, few of them cut; None for no.

    Parameters
    ----------
    capacity : ndarray, shape (leaves,)
        Stages that each leaf has room for.
    """
    patterns, sizes, uses = question.patterns, question.sizes, question.uses
    program = Program()
    leaves = [program.column(most=len(capacity)) for _ in patterns]
    made = [program.column(most=replicas, price=int(u.sum())) for u in uses]
    program.row(map(Term, made), least=replicas, most=replicas)
    for held, used in zip(patterns.T, uses.T, strict=True):
        there = (Term(leaves[i], int(held[i])) for i in np.flatnonzero(held))
        needed = (Term(made[i], -int(used[i])) for i in np.flatnonzero(used))
        program.row([*there, *needed], least=0, most=0)
    for smaller, larger in pairwise([0, *np.unique(capacity).tolist(), inf]):
        # Larger leaves can take smaller patterns, so counts from above suffice.
        held = [Term(leaves[i]) for i in np.flatnonzero(sizes > smaller).tolist()]
        program.row(held, most=int((capacity >= larger).sum()))
    answer = solve(program, limits)
    if answer.counts is None:
        return None
    counts = np.array(answer.counts)
    return Counted(counts[: len(leaves)], counts[len(leaves) :])
