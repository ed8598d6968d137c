"""What an axis sends in a step: bytes by tier, and bytes on every shared uplink."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from placer.arrays import FloatArray
from placer.cost.links import LinkLoad

if TYPE_CHECKING:
    from placer.cost.communicators import CollectiveCost
    from placer.cost.exchange import ExchangeCost


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
    def of(cls, cost: CollectiveCost | ExchangeCost, times: float) -> Traffic:
        """The traffic of an operation that runs ``times`` times in a step."""
        return cls(cost.bytes_by_tier * times, cost.load.scaled(times))

    def times(self, rounds: float) -> Traffic:
        """So many rounds of it."""
        return Traffic(self.bytes_by_tier * rounds, self.load.scaled(rounds))

    def plus(self, other: Traffic) -> Traffic:
        """Both together."""
        return Traffic(
            self.bytes_by_tier + other.bytes_by_tier, self.load.plus(other.load)
        )

    def reversed(self) -> Traffic:
        """The answers: as many bytes the other way."""
        return Traffic(self.bytes_by_tier, self.load.reversed())


def total_load(traffic: Iterable[Traffic]) -> LinkLoad | None:
    """The load of all traffic together; None when there is none."""
    loads = [item.load for item in traffic]
    return reduce(LinkLoad.plus, loads) if loads else None


def total_traffic(traffic: Iterable[Traffic]) -> Traffic | None:
    """All traffic as one; None when there is none."""
    items = list(traffic)
    return reduce(Traffic.plus, items) if items else None
