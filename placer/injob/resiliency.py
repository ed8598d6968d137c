"""nvidia-resiliency-ext: ranks by placement in jobs that restart inside a process.

Its wrapper asks a ``RankAssignment`` at the start and after each fault which rank a
process has (``inprocess/rank_assignment.py``): here one that keeps to a placement.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from placer.api.options import seconds_of
from placer.base.errors import InputError
from placer.base.units import counted
from placer.injob.again import LIMIT_S, placed_again
from placer.injob.bounded import first_line, needed
from placer.injob.probe import node_name, probe
from placer.injob.rendezvous import tell

_PACKAGE = "nvidia-resiliency-ext"
_SEAT, _ORDER, _LAST = "placer/seat/{}", "placer/order", "placer/last"
_ORDER_S = 30.0


def rank_assignment(
    nodes: int | None = None, *, multiple_of: int = 1, time_limit: float | str = LIMIT_S
) -> Any:
    """A ``RankAssignment`` of nvidia-resiliency-ext that places the ranks.

    For ``inprocess.Wrapper(rank_assignment=...)``. At the start the nodes say what they
    are and their ranks follow a placement; after a fault those that are left keep their
    ranks as far as the best placement allows, and spares take the places of those lost.
    A node that has lost a process is out with all that it has.

    ``nodes``: how many take part, the others being spares; by default all that there
    are. ``multiple_of``: only so many nodes take part as this divides. ``time_limit``
    (s): for a placement. Where none is had in time the nodes keep their order. Raises
    `InputError` if nvidia-resiliency-ext is missing.
    """
    module = needed("nvidia_resiliency_ext.inprocess.rank_assignment", _PACKAGE)
    mode = needed("nvidia_resiliency_ext.inprocess.state", _PACKAGE).Mode
    ranks = _Ranks(nodes, multiple_of, seconds_of(time_limit))

    class PlacedRanks(module.RankAssignment):  # type: ignore[misc, name-defined]
        """Ranks by a placement, kept as far as it allows."""

        def __call__(self, ctx: Any) -> Any:
            seat = ranks.seat(ctx.store, ctx.state, ctx.terminated_ranks)
            if seat is None:
                raise module.RankDiscarded(f"{node_name()} has lost a process")
            is_active = seat["active_rank"] is not None
            here = mode.ACTIVE if is_active else mode.INACTIVE
            ctx.state = replace(ctx.state, mode=here, **seat)
            ctx.terminated_ranks = set()
            return ctx

    return PlacedRanks()


@dataclass
class _Ranks:
    """The host of every process by its rank so far, and what each host says."""

    nodes: int | None
    multiple_of: int
    limit: float
    base: Any = None
    hosts: list[str] = field(default_factory=list)
    said: dict[str, dict[str, Any]] = field(default_factory=dict)

    def seat(
        self, store: Any, state: Any, gone: set[int]
    ) -> dict[str, int | None] | None:
        """What changes in the state of this process; None where it is out."""
        if self.base is None:
            self.base = store
            self._meet(state.rank, state.world_size)
        lost = {self.hosts[rank] for rank in gone}
        host = self.hosts[state.rank]
        if host in lost:
            return None
        own = sum(name not in lost for name in self.hosts[: state.rank])
        local = self.hosts[: state.rank].count(host)
        self.hosts = [name for name in self.hosts if name not in lost]
        order = self._order(store, own == 0)
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            first = next(name for name, rank in order.items() if rank == 0)
            os.environ["MASTER_ADDR"] = self.said[first]["address"]
        size, rank = self.hosts.count(host), order[host]
        return {
            "rank": own,
            "world_size": len(self.hosts),
            "active_rank": None if rank is None else rank * size + local,
            "active_world_size": size * (len(order) - [*order.values()].count(None)),
        }

    def _meet(self, own: int, size: int) -> None:
        """The host of each process, and the probe of each host."""
        host, store = node_name(), self.base
        store.set(_SEAT.format(own), host)
        seats = store.multi_get([_SEAT.format(rank) for rank in range(size)])
        self.hosts = [name.decode() for name in seats]
        sizes = sorted(set(Counter(self.hosts).values()))
        if len(sizes) > 1:
            shown = " and ".join(map(str, sizes))
            raise InputError(f"nodes run {shown} processes: all must run as many")
        if self.hosts.index(host) == own:
            address = os.environ.get("PLACER_MASTER_ADDR") or socket.getfqdn()
            more = {"host": host, "gpus": self.hosts.count(host), "address": address}
            store.set(_SEAT.format(host), json.dumps(probe() | more))
        for name in dict.fromkeys(self.hosts):
            self.said[name] = json.loads(store.get(_SEAT.format(name)))

    def _order(self, store: Any, is_first: bool) -> dict[str, int | None]:
        """The node rank of each host, None of a spare, as the first process says."""
        hosts = list(dict.fromkeys(self.hosts))
        wanted = min(self.nodes or len(hosts), len(hosts))
        wanted -= wanted % self.multiple_of
        if not wanted:
            message = (
                f"{counted(len(hosts), 'node')} left, not the {self.multiple_of} needed"
            )
            raise InputError(message)
        spare = [None] * (len(hosts) - wanted)
        answer = json.dumps([*range(wanted), *spare])
        if is_first:
            answer = self._placed(hosts, wanted) or answer
        else:  # who is tired of waiting decides, too
            with suppress(RuntimeError):
                store.wait([_ORDER], timedelta(seconds=_ORDER_S + self.limit))
        # All take what stands there first; the key is new in each round.
        decided = store.compare_set(_ORDER, "", answer).decode()
        return dict(zip(hosts, json.loads(decided), strict=True))

    def _placed(self, hosts: Sequence[str], wanted: int) -> str | None:
        """The node ranks by a placement; None where none is had in time."""
        base, probes = self.base, [self.said[host] for host in hosts]
        try:
            last = json.loads(base.get(_LAST)) if base.check([_LAST]) else None
            found = placed_again(probes, last, sys.argv, self.limit, tell, nodes=wanted)
        except Exception as error:  # the job must go on, whatever is wrong here
            tell(f"the nodes keep their order: {first_line(error)}")
            return None
        base.set(_LAST, json.dumps(found.kept))
        return json.dumps(found.ranks)
