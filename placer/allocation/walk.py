"""What walks through all that jobs may get have in common: the best that they met."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from placer.allocation.together import Together, together
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.allocation.offers import Offer, Offers
    from placer.allocation.question import Question
    from placer.allocation.shared import Uses


@dataclass(eq=False)
class Walk:
    """A walk from the best offer of each job alone.

    Attributes
    ----------
    offers : Offers
    uses : Uses
    alone : sequence of Offer
    best : Together or None
        The best that is known.
    is_complete : bool
        Whether nothing is left out that may be better.
    """

    offers: Offers
    uses: Uses
    alone: Sequence[Offer]
    best: Together | None
    is_complete: bool = field(default=True, init=False)

    @property
    def question(self) -> Question:
        """What the jobs ask for."""
        return self.offers.question

    @property
    def _limit(self) -> float:
        """What costs as much is no better than the best."""
        return inf if self.best is None else self.best.cost * (1 - EXACT)

    def _weight(self, index: int) -> float:
        return self.question.jobs[index].weight

    def _meet(self, offers: Sequence[Offer]) -> None:
        """An offer for each job."""
        now = together(self.question, self.uses, offers)
        if now.cost < self._limit:
            self.best = now
