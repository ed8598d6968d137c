"""What a map shows, whatever its level of detail."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placer.base.arrays import BoolArray, IntArray
    from placer.draw.grouping import Grouping, Leaving
    from placer.draw.machine_view import MachineView

# Groups with an outline, at most: more would hide what they should point out.
_MOST_OUTLINED = 1 / 3


@dataclass(frozen=True, eq=False)
class Content:
    """What a map shows."""

    view: MachineView
    groups: Grouping
    leaving: Leaving
    nodes: IntArray  # the nodes shown, in the order of the view
    shown: BoolArray  # (R,): whether each rank is on one of them
    level: int  # level whose domains are the cells; -1 for GPUs

    @cached_property
    def outlined(self) -> BoolArray:
        """Groups with an outline: those that leave their domain, if few; shape (G,)."""
        away = self.leaving.groups
        return away if away.mean() <= _MOST_OUTLINED else np.zeros_like(away)

    @cached_property
    def usual_ranks(self) -> int:
        """Ranks of most cells."""
        inside = self.view.domain_of_rank[self.level, self.shown]
        counts = np.unique(inside, return_counts=True)[1]
        return int(np.bincount(counts).argmax())
