"""What is known to hold groups back on an otherwise ideal network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Limit:
    """What holds some groups back that are otherwise at their best.

    Attributes
    ----------
    groups : ndarray, shape (g, n)
    nics : int
        Most members in the domain that has the fewest; with fewer than ``n`` the groups
        leave their scale-up domain.
    shared_pace : float, s/B
        Least seconds that a byte of a ring, or of PAT, takes on an uplink.
    links_pace : float, s/B
        Least seconds that a byte of a ring takes on a link between domains, or one of
        the buffer in a double tree; half of it in PAT.
    """

    groups: IntArray
    nics: int
    shared_pace: float = 0.0
    links_pace: float = 0.0

    @property
    def leaves(self) -> bool:
        """Whether the groups are known to leave their scale-up domain."""
        return self.nics < int(self.groups.shape[1])
