"""What the crossings of a pipeline cost at the least, and where they must fall.

A *lane* is one pipeline group: a rank of every stage. The hops between stages that lie
in different scale-up domains are its *cuts*; between two cuts it runs through one
domain. Behind a thin uplink messages wait for each other. Shapes: P stages, S sets of
cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from math import comb, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.schedule import pipeline_times

if TYPE_CHECKING:
    from placer.cost.step import Step

MOST_SETS = 1000  # of equally many cuts that are timed
BATCH = 64  # that are timed at once


class Need(NamedTuple):
    """What a domain must have for the stages that run through it.

    Attributes
    ----------
    ranks : ndarray, shape (P,)
        Ranks that it holds of each stage, if any.
    room : int
        Ranks that the largest domain may hold.
    """

    ranks: IntArray
    room: int


@dataclass(frozen=True, eq=False)
class Crossings:
    """Sets of cuts of a lane, with the least pipeline time of each.

    Attributes
    ----------
    cuts : ndarray of bool, shape (S, P)
        Which hops cross; the last entry is the hop that closes the ring. A pipeline of
        one chunk sends nothing there and is open there at no cost.
    seconds : ndarray, shape (S,), s
        Pipeline time of a replica with these cuts and nothing else out of place.
    waiting : callable, optional
        The same of hops that take no less than this, (S, P), s.
    sent_s, message_s : float, s
        A message on the widest uplink, and out of a domain.
    """

    cuts: BoolArray
    seconds: FloatArray
    waiting: Callable[[FloatArray], FloatArray] | None = None
    sent_s: float = 0.0
    message_s: float = 0.0

    @classmethod
    def of(cls, step: Step, message_s: float, sent_s: float = 0.0) -> Crossings:
        """The sets of cuts when a message out of a domain takes ``message_s``.

        A closed ring is cut nowhere or twice at least. A number of cuts that has more
        than `MOST_SETS` is not timed: a bound on fewer cuts stands in for it.
        """
        job = step.model.job
        stages, closed = job.parallelism.pp, job.parallelism.vp > 1
        hops = stages if closed else stages - 1
        rows = [
            chosen
            for count in range(hops + 1)
            if comb(hops, count) <= MOST_SETS and not (closed and count == 1)
            for chosen in combinations(range(hops), count)
        ]
        cuts = np.zeros((len(rows), stages), dtype=bool)
        for row, chosen in zip(cuts, rows, strict=True):
            row[list(chosen)] = True
        seconds = times_of_hops(step, cuts * message_s)
        cuts[:, hops:] = True
        waiting = partial(times_of_hops, step) if closed else None
        return cls(cuts, seconds, waiting, sent_s, message_s)

    def fits(self, need: Need) -> BoolArray:
        """Which sets leave runs that fit a domain; shape (S,)."""
        return np.asarray((self._run_sums(need.ranks) <= need.room).all(axis=1))

    def least_seconds(self, need: Need, fewest: int) -> float:
        """Least pipeline time of a lane with ``fewest`` cuts or more, s; inf for none.

        Parameters
        ----------
        fewest : int
            Cuts that the lane has at the least.
        """
        needed = fewest_cuts(need)
        if needed is None:
            return inf
        fewest = max(fewest, needed - self._free)
        most = self.cuts.shape[1] - self._free
        counts = self._counts
        known = np.unique(counts)
        timed = known[known >= fewest]
        fit = np.flatnonzero(self.fits(need) & (counts >= fewest))
        found = self.seconds[fit]
        if self.sent_s * need.ranks.max() > self.message_s and needed:
            found = self._with_waiting(need, fit[np.argsort(found, kind="stable")])
        if len(timed) < most - fewest + 1:
            # Some numbers of cuts are not timed: more cuts never take less time, so the
            # next smaller number stands in for them.
            missing = next(c for c in range(fewest, most + 1) if c not in timed)
            below = known[known <= missing].max()
            found = np.append(found, self.seconds[counts == below])
        return float(found.min(initial=inf))

    def _with_waiting(self, need: Need, sets: IntArray) -> FloatArray:
        """Times of sets, fastest first, until none is faster: messages wait for others.

        Where no domain has ranks of all stages, as many messages leave it as it has
        ranks of any, and as many enter it. Lanes that are open may leave at their end.
        """
        if self.waiting is None:
            return self.seconds[sets]
        found = np.full(1, inf)
        for some in np.array_split(sets, -(-len(sets) // BATCH)) if len(sets) else ():
            if self.seconds[some[0]] >= found.min():
                break
            run, cuts = self._run_of_stage[some], self.cuts[some]
            most = np.zeros(cuts.shape)
            for stage, ranks in enumerate(need.ranks.tolist()):
                most = np.maximum(most, ranks * (run == run[:, stage, None]))
            here = self.sent_s * np.maximum(most, np.roll(most, -1, axis=1))
            hop = np.where(cuts, np.maximum(here, self.message_s), 0.0)
            found = np.append(found, self.waiting(hop))
        return found

    @property
    def is_open(self) -> bool:
        """Whether the lanes are chains, not closed rings."""
        return self._free > 0

    @cached_property
    def _free(self) -> int:
        """Cuts that every set has at no cost."""
        return int(self.cuts.sum(axis=1).min())

    @cached_property
    def _counts(self) -> IntArray:
        counts: IntArray = self.cuts.sum(axis=1) - self._free
        return counts

    @cached_property
    def _run_of_stage(self) -> IntArray:
        """Number of the run that each stage is in, the last one before the first."""
        ended = np.cumsum(self.cuts, axis=1)
        run = np.hstack((np.zeros((len(ended), 1), dtype=np.int64), ended[:, :-1]))
        return np.asarray(np.where(run == ended[:, -1:], 0, run))

    def _run_sums(self, room_of_stage: IntArray) -> IntArray:
        sets, stages = self.cuts.shape
        place = self._run_of_stage + stages * np.arange(sets)[:, None]
        spread = np.broadcast_to(room_of_stage, self.cuts.shape)
        sums = np.bincount(place.ravel(), spread.ravel(), sets * stages)
        found: IntArray = np.rint(sums.reshape(sets, stages)).astype(np.int64)
        return found


def fewest_cuts(need: Need) -> int | None:
    """Fewest cuts of a ring of stages whose runs fit, 0 if it fits whole.

    None if a stage alone does not. Runs are made as long as they can be from every
    stage in turn, which is best for one of the starts.
    """
    stages, room = len(need.ranks), need.room
    if need.ranks.max() > room:
        return None
    if need.ranks.sum() <= room:
        return 0
    fewest = stages
    for start in range(stages):
        runs, held = 1, 0
        for ranks in np.roll(need.ranks, -start).tolist():
            held += ranks
            if held > room:
                runs, held = runs + 1, ranks
        fewest = min(fewest, runs)
    return fewest


def times_of_hops(step: Step, message_s: FloatArray) -> FloatArray:
    """Pipeline times of lanes whose hops take no less than this; (S, P) to (S,), s."""
    stages, job = message_s.shape[1], step.model.job
    plain = step.patterns(tuple(step.stage_times))[0]
    patterns = np.tile(plain, (len(message_s), 1))
    hop = patterns[:, 2 * stages : 3 * stages]
    np.maximum(hop, message_s, out=hop)
    schedule = job.micro_batches, job.parallelism.vp, job.overlap.pp
    return pipeline_times(patterns, *schedule)
