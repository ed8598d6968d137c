"""Deal counts out to named things.

Pools of them are taken from and given to by kind; runs are laid end to end.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy import int64

Kind = TypeVar("Kind", bound=Hashable)
Name = TypeVar("Name")
Run = TypeVar("Run")


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


def circuit(
    ahead: Mapping[int, list[Run]],
    length: Callable[[Run], int],
    period: int,
    begin: int = 0,
) -> list[tuple[int, Run]]:
    """Runs end to end, each once, that lead back to a place, and where each begins.

    Those that no such walk reaches are left out (Hierholzer 1873).

    Parameters
    ----------
    ahead : mapping of int to list
        Runs that begin at each place of a period, as many as lead there.
    """
    left = {place: list(runs) for place, runs in ahead.items()}
    found: list[tuple[int, Run]] = []
    open_runs: list[tuple[int, Run]] = []
    place = begin
    while True:
        if left.get(place):
            open_runs.append((place, left[place].pop()))
            place = (place + length(open_runs[-1][1])) % period
        elif open_runs:
            found.append(open_runs.pop())
            place = found[-1][0]
        else:
            return found[::-1]
