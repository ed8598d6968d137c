"""Deal counts out to named things.

Pools of them are taken from and given to by kind.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy import int64

Kind = TypeVar("Kind", bound=Hashable)
Name = TypeVar("Name")


class Pool(defaultdict[Kind, deque[Name]]):
    """What one domain has of each kind, by name."""

    def __init__(self) -> None:
        super().__init__(deque)

    def take(self, kind: Kind, count: int = 1) -> list[Name]:
        """The first ``count`` of a kind, taken out."""
        return [self[kind].popleft() for _ in range(count)]


def outward(
    pools: Mapping[int, Pool[Kind, Name]], parent: npt.NDArray[int64]
) -> dict[int, Pool[Kind, Name]]:
    """What the domains of the next tier have: all that is left in those inside.

    Parameters
    ----------
    pools : mapping of int to Pool
        By domain.
    parent : ndarray, shape (domains,)
        Domain of the next tier that holds each.
    """
    outer: dict[int, Pool[Kind, Name]] = {}
    for domain in sorted(pools):
        target = outer.setdefault(int(parent[domain]), Pool())
        for kind, names in pools[domain].items():
            target[kind] += names
    return outer
