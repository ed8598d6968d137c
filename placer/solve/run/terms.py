"""What a search that is part of another one is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms under which a search works.

    Attributes
    ----------
    mend : callable
        A placement as it may be kept, None when it may not; called with the GPU of
        every rank, shape (R,).
    bound : callable
        (lower bound, what it rests on), given the value of a known placement.
    exact : bool
        Whether the best of all placements that pass is the best there is.
    known : tuple of (str, ndarray)
        Placements to start from, with what found them.
    """

    mend: Callable[[IntArray], IntArray | None]
    bound: Callable[[float], tuple[float, str]]
    exact: bool
    known: tuple[tuple[str, IntArray], ...] = ()
