"""What the nodes of a round agree on through their store: ranks, or to meet again.

Each node tells of itself and the first works out an order. Two keys decide, each
written once by whoever is first: the order, and that all have read it. A node that is
gone before that has the others meet again, so that nobody waits for it in the job.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placer.injob.bounded import LateError, first_line

Probe = dict[str, Any]
_PROBE, _ORDER, _READY, _START = "probe/{}", "order", "ready", "start"
_AGAIN, _RANKS, _MASTER = "again", "ranks", "master"
_GONE, _SILENT = "gone", "silent"
# Between two looks at who is gone; c10d's own polls are as far apart.
_LOOK_S = 1.0
# A node that lives is waited for so long, and an order so long past its limit: what
# works it out has to be loaded.
MUTE_S, LOAD_S = 15.0, 30.0


class MeetAgainError(RuntimeError):
    """A node of the round is gone: the others must meet again."""


@dataclass(frozen=True)
class Agreed:
    """What a round agreed on."""

    rank: int  # node rank of this node
    master: tuple[str, int]  # address and port of the node of rank 0
    is_placed: bool  # whether ranks follow a placement


@dataclass(frozen=True)
class Round:
    """A round as a node sees it."""

    store: Any  # of this round alone
    # number and size: this node's number in c10d's order, and how many nodes there are.
    number: int
    size: int
    # Where this node may be met as rank 0: address and port.
    master: Callable[[], tuple[str, int]]
    is_broken: Callable[[], bool]  # whether a node of the round is gone
    # Called with what a reader of logs should know, by one of the nodes.
    tell: Callable[[str], None]

    def agree(
        self, own: Probe, ranks_of: Callable[[Sequence[Probe]], list[int]], limit: float
    ) -> Agreed:
        """Tell of this node and learn its rank.

        ``own``: this node's probe. ``ranks_of``: node ranks of nodes by their probes;
        asked at the first node. ``limit`` (s): of ``ranks_of``.
        """
        is_first = self.number == 0
        # In c10d's order it is rank 0, also where others find that there is no other.
        master = self.master() if is_first else None
        self.store.set(_PROBE.format(self.number), json.dumps([own, master]))
        if is_first:
            self._decide(_ORDER, self._order(ranks_of, master))
        elif why := self._missing([_ORDER], MUTE_S + LOAD_S + limit):
            self._decide(_ORDER, self._no_order(why))
        order = self._decided(_ORDER)
        ranks: list[int] | None = order.get(_RANKS)
        if ranks is None:
            address, port = order[_MASTER]
            return Agreed(self.number, (address, port), False)
        rank = ranks[self.number]
        if rank == 0:
            self.store.set(_MASTER, json.dumps(master or self.master()))
        return Agreed(rank, self._started(), True)

    def _order(
        self,
        ranks_of: Callable[[Sequence[Probe]], list[int]],
        master: tuple[str, int] | None,
    ) -> dict[str, Any]:
        """The decision of the first node."""
        keys = [_PROBE.format(number) for number in range(self.size)]
        why = self._missing(keys, MUTE_S)
        if why == _GONE:
            return {_AGAIN: "a node is gone before it told of itself"}
        try:
            if why:
                raise LateError(f"a node has not told of itself in {MUTE_S:g} s")
            told = [json.loads(text) for text in self.store.multi_get(keys)]
            return {_RANKS: ranks_of([probe for probe, _ in told])}
        except Exception as error:  # the job must start, whatever is wrong here
            self.tell(f"the order is c10d's: {first_line(error)[:300]}")
            return {_MASTER: master}

    def _no_order(self, why: str) -> dict[str, Any]:
        """The decision of a node that waited for one in vain."""
        first = _PROBE.format(0)
        if why == _GONE or not self.store.check([first]):
            return {_AGAIN: "a node is gone before there was an order"}
        self.tell("the order is c10d's: the first node does not work one out")
        return {_MASTER: json.loads(self.store.get(first))[1]}

    def _started(self) -> tuple[str, int]:
        """Start when all have read the order; one that lives will read it yet.

        Gives address and port of rank 0.
        """
        is_last = self.store.add(_READY, 1) == self.size
        why = None if is_last else self._missing([_START], MUTE_S)
        if why == _GONE or (why and not self.store.check([_MASTER])):
            self._decide(_START, {_AGAIN: "a node is gone before it read the order"})
        elif is_last or why:
            master = json.loads(self.store.get(_MASTER))
            self._decide(_START, {_MASTER: master})
        address, port = self._decided(_START)[_MASTER]
        return address, port

    def _decide(self, key: str, decision: Mapping[str, Any]) -> None:
        """Decide for all, unless somebody has."""
        written = json.dumps({**decision, "by": self.number})
        decided = self.store.compare_set(key, "", written).decode()
        if decided == written and _AGAIN in decision:
            self.tell(f"{decision[_AGAIN]}: the nodes meet again")

    def _decided(self, key: str) -> dict[str, Any]:
        decision: dict[str, Any] = json.loads(self.store.get(key))
        if _AGAIN in decision:
            raise MeetAgainError(decision[_AGAIN])
        return decision

    def _missing(self, keys: list[str], seconds: float) -> str | None:
        """Wait for keys; why there are not all of them, if they do not come."""
        started = looked = time.monotonic()
        # A wait of the store itself logs a warning whenever its time is over.
        while not self.store.check(keys):
            now = time.monotonic()
            if now - looked >= _LOOK_S:
                looked = now
                if self.is_broken():
                    return _GONE
            if now - started >= seconds:
                return _SILENT
            time.sleep(min(max((now - started) / 8, 0.01), _LOOK_S / 2))
        return None
