"""What a leaf domain can hold: runs of stages, of which no stage is there too seldom.

Shapes: P stages, K kinds of runs, F patterns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Different kinds of runs in one leaf, and how many combinations may be looked at and
# kept.
MOST_KINDS = 3
MOST_COMBINED = 3_000_000
MOST_PATTERNS = 20_000


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
        How many of each kind make up a replica of each way.
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


class Need(NamedTuple):
    """What must hold in every leaf.

    Attributes
    ----------
    least : ndarray, shape (P,)
        How often each stage is there, if it is there at all.
    variety : ndarray, shape (P,)
        Most different stages together with each, for every stage that the leaf holds.
    """

    least: IntArray
    variety: FloatArray


def leaf_patterns(runs: list[Run], need: Need, room: int) -> IntArray:
    """How many runs of each kind a leaf may hold together; shape (F, K).

    Parameters
    ----------
    runs : list of Run
        The kinds.
    need : Need
    room : int
        Stages that the largest leaf has room for.
    """
    covers = np.zeros((len(runs), len(need.least)), dtype=np.int64)
    for row, run in zip(covers, runs, strict=True):
        row[np.arange(run.start, run.start + run.length) % len(need.least)] = 1
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
    found, newest, kept = single, last, [_valid(single, covers, need)]
    for _ in range(MOST_KINDS - 1):
        if len(found) * len(single) > MOST_COMBINED:
            break
        first, second = np.nonzero(newest[:, None] < last[None, :])
        fits = (found @ length)[first] + (single @ length)[second] <= room
        first, second = first[fits], second[fits]
        found, newest = found[first] + single[second], last[second]
        kept.append(_valid(found, covers, need))
    return np.concatenate(kept)[:MOST_PATTERNS]


def _valid(found: IntArray, covers: IntArray, need: Need) -> IntArray:
    """Those in which every stage is absent or there often enough, among few others."""
    there = found @ covers
    often = ((there == 0) | (there >= need.least)).all(axis=1)
    found, there = found[often], there[often]
    most = np.where(there > 0, need.variety, np.inf).min(axis=1) * there.sum(axis=1)
    kept: IntArray = found[(there > 0).sum(axis=1) <= most]
    return kept
