"""What an axis sends in a step: bytes by tier, and bytes on every shared uplink."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placer.cost.exchange import ExchangeCost
from placer.cost.links import LinkLoad
from placer.cost.rings import RingCost

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Traffic:
    """Bytes of one axis and step.

    Attributes
    ----------
    bytes_by_tier : ndarray, shape (T,), bytes
        Sent by all ranks, by the tier of the hop.
    load : LinkLoad
    """

    bytes_by_tier: FloatArray
    load: LinkLoad

    @classmethod
    def of(cls, cost: RingCost | ExchangeCost, times: float) -> Traffic:
        """The traffic of an operation that runs ``times`` times in a step."""
        return cls(cost.bytes_by_tier * times, cost.load.scaled(times))


def total_load(traffic: Iterable[Traffic]) -> LinkLoad | None:
    """The load of all traffic together; None when there is none."""
    loads = [item.load for item in traffic]
    if not loads:
        return None
    up = [np.sum(rows, axis=0) for rows in zip(*(a.up for a in loads), strict=True)]
    down = [np.sum(rows, axis=0) for rows in zip(*(a.down for a in loads), strict=True)]
    return LinkLoad(up, down)


def total_traffic(traffic: Iterable[Traffic]) -> Traffic | None:
    """All traffic as one; None when there is none."""
    items = list(traffic)
    load = total_load(items)
    if load is None:
        return None
    return Traffic(np.sum([item.bytes_by_tier for item in items], axis=0), load)
