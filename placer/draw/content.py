"""What a map shows, whatever its level of detail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.draw.grouping import Grouping, Leaving
    from placer.draw.machine_view import BoolArray, IntArray, MachineView


@dataclass(frozen=True, eq=False)
class Content:
    """What a map shows.

    Attributes
    ----------
    view : MachineView
    groups : Grouping
    leaving : Leaving
    nodes : ndarray
        The nodes shown, in the order of the view.
    shown : ndarray, shape (R,)
        Whether each rank is on one of them.
    level : int
        Level whose domains are the cells; -1 for GPUs.
    """

    view: MachineView
    groups: Grouping
    leaving: Leaving
    nodes: IntArray
    shown: BoolArray
    level: int
