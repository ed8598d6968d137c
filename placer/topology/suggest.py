"""Did-you-mean for node names, quick on machines with many nodes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from placer.documents import closest

_NEIGHBOURS = 500
_MAX_HINTS = 10


class Suggester:
    """Hints for unknown node names.

    A name is compared with its neighbours in sorted order only, and after some hints
    none is given: a wrong list of thousands of hosts must not take minutes to refuse.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names
        self._sorted: list[str] = []
        self._given = 0

    @property
    def has_ended(self) -> bool:
        """Whether it has given all the hints that it gives."""
        return self._given == _MAX_HINTS

    def hint(self, name: str) -> str:
        """Hint that names a node like ``name``.

        When none is near the first hint says how nodes are called, those after it are
        empty.
        """
        if self.has_ended:
            return ""
        self._given += 1
        self._sorted = self._sorted or sorted(self._names)
        at = bisect_left(self._sorted, name)
        near = self._sorted[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS]
        # One of the two may be the full domain name of the other.
        same = [one for one in near if name == _label(one) or one == _label(name)]
        hint = f'did you mean "{same[0]}"?' if same else closest(name, near)
        if hint or self._given > 1 or not near:
            return hint
        names = [*self._names]
        ends = dict.fromkeys((names[0], names[-1]))
        return "hosts are called like " + " and ".join(f'"{one}"' for one in ends)


def _label(name: str) -> str:
    """The name without its domain."""
    return name.partition(".")[0]
