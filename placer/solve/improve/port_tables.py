"""What compiled loops know of the busiest ports: plain arrays, and whether to use them.

numba is an optional extra. Compiling takes seconds, once: what is compiled is kept on
disk, and loaded in a tenth of a second from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Nothing is claimed by a change of this number.
UNCLAIMED = 1 << 40


class Tables(NamedTuple):
    """Flows, machine and uplinks, as in `PortLoads`. Shapes: Q tiers of uplinks."""

    ends: IntArray
    port: IntArray
    size_bytes: FloatArray
    runs: FloatArray
    together: IntArray
    flows: IntArray
    first: IntArray
    degree: IntArray
    ports: int
    above: IntArray
    tier: int
    scale_up_tier: int
    bandwidth: FloatArray
    latency: FloatArray
    factor: FloatArray
    uplink_tier: IntArray
    uplink_first: IntArray
    uplink_children: IntArray
    uplink_child: IntArray
    uplink_pace: FloatArray

    def contiguous(self) -> Tables:
        """The same with every array row by row: loops are compiled for no others."""
        return Tables(
            *(
                np.ascontiguousarray(one) if isinstance(one, np.ndarray) else one
                for one in self
            )
        )


class Pricing(NamedTuple):
    """How busy loads are, and what that costs.

    Attributes
    ----------
    busy : ndarray, shape (L,), s
    kind : ndarray, shape (L,)
    target, scale, share : ndarray, shape (kinds,)
        Seconds up to which a load costs nothing, those of the best, and the share of
        all kinds.
    doublings : int
        Times that the excess is squared.
    """

    busy: FloatArray
    kind: IntArray
    target: FloatArray
    scale: FloatArray
    share: FloatArray
    doublings: int
