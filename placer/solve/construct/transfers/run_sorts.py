"""Sorts of runs: consecutive ranks, told apart by whom they hold and not by where.

Ranks that need the same partners, and as many, make a *needy kind*. Along the ranks of
a role the kinds repeat with a short period, so a run is of one sort with every other
one that begins at the same place of the period and is as long. By hand: eight ranks of
kinds 0 1 0 1 0 1 0 1 have runs of two sorts of each length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray

if TYPE_CHECKING:
    from placer.solve.problem.needs import Kind


class Run(NamedTuple):
    """Consecutive ranks of a stretch.

    Attributes
    ----------
    first : int, rank
        Of the stretch.
    begin, length : int
        The former counted in the stretch's period.
    """

    first: int
    begin: int
    length: int


# Two runs where one of a node reaches from a stretch to the next.
Sort = tuple[Run, ...]


class Stretch(NamedTuple):
    """Consecutive ranks whose kinds repeat.

    Attributes
    ----------
    first, length, period : int, ranks
    """

    first: int
    length: int
    period: int


@dataclass(frozen=True, eq=False)
class Sorts:
    """The sorts of runs of a job's ranks.

    Attributes
    ----------
    stretches : list of Stretch
        All ranks, cut wherever nothing of before comes again.
    """

    kinds: Sequence[Kind]
    stretches: list[Stretch]

    @classmethod
    def of(cls, kinds: Sequence[Kind]) -> Sorts:
        """The sorts that kinds, one at least, tell apart."""
        masks = [mask for kind in kinds for mask in (kind.ranks, kind.partners)]
        alike = np.unique(np.stack(masks), axis=1, return_inverse=True)[1].ravel()
        last = np.zeros(int(alike.max()) + 1, dtype=np.int64)
        last[alike] = np.arange(len(alike))
        is_end = np.maximum.accumulate(last[alike]) == np.arange(len(alike))
        found, first = [], 0
        for end in (np.flatnonzero(is_end) + 1).tolist():
            found.append(Stretch(first, end - first, _period(alike[first:end])))
            first = end
        return cls(kinds, found)

    def up_to(self, longest: int) -> Iterator[Sort]:
        """Sorts of so many ranks at the most, of one stretch or of two.

        Those of three are left out: no stretch is that short.
        """
        lengths = range(1, longest + 1)
        for stretch in self.stretches:
            for begin, length in product(range(stretch.period), lengths):
                yield (Run(stretch.first, begin, length),)
        for one, other in pairwise(self.stretches):
            for end, beginning in product(lengths, lengths):
                if end + beginning <= longest:
                    begin = (one.length - end) % one.period
                    yield Run(one.first, begin, end), Run(other.first, 0, beginning)

    def needy(self, sort: Sort) -> set[int]:
        """Kinds that have needs in a run of this sort."""
        ranks = self._ranks(sort)
        return {k for k, kind in enumerate(self.kinds) if kind.ranks[ranks].any()}

    def partners(self, sort: Sort) -> IntArray:
        """Partners of each kind in a run of this sort; shape (K,)."""
        ranks = self._ranks(sort)
        return np.array([kind.partners[ranks].sum() for kind in self.kinds])

    def _ranks(self, sort: Sort) -> IntArray:
        """The ranks of one such run, moved to the first period."""
        period = {stretch.first: stretch.period for stretch in self.stretches}
        found = [
            run.first + (run.begin + np.arange(run.length)) % period[run.first]
            for run in sort
        ]
        return np.concatenate(found)


def length_of(sort: Sort) -> int:
    """Ranks of a run of this sort."""
    return sum(run.length for run in sort)


def _period(values: IntArray) -> int:
    """The shortest number of places after which values repeat."""
    return next(
        step
        for step in range(1, len(values) + 1)
        if (values[step:] == values[: len(values) - step]).all()
    )
