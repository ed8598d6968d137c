"""torchrun's rendezvous backend ``placer`` without a map: c10d's, its nodes in order.

Whatever torch's own c10d rendezvous agrees on stands: who takes part, how many, when
to start again. Then the nodes exchange probes through its store, the first of them
works out an order, and each gets its node rank. The keys of a round are new ones, as
torch prefixes them by round; the last plan is kept beside the rounds.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from typing import Any

from placer.injob.again import placed_again
from placer.injob.planned import LIMIT_S
from placer.injob.probe import probe

_TORCH = "torch.distributed.elastic.rendezvous"
_BACKEND = "placer"
_PROBE, _ORDER, _LAST = "placer/probe/{}", "placer/order", "placer/last"
_MASTER = "placer/master"
# Until every node has told of itself, and until the first has worked out an order.
_PROBES_S, _ORDER_S = 15.0, 30.0
_TRIES = 3
_OF_A_ROUND = {"_bootstrap_store_info", "_shared_tcp_store_server"}
_C10D = json.dumps({})


def create(parameters: Any) -> Any:
    """The rendezvous of a node: torch's c10d, with node ranks by placement."""
    dynamic = import_module(f"{_TORCH}.dynamic_rendezvous")
    backend, store = import_module(f"{_TORCH}.c10d_rendezvous_backend").create_backend(
        parameters
    )
    inner = dynamic.create_handler(store, backend, parameters)
    limit = float(parameters.config.get("limit") or LIMIT_S)
    return PlacedRendezvous(
        inner, own_probe(sys.argv[1:]), parameters.local_addr, limit
    )


def own_probe(command: Sequence[str]) -> dict[str, Any]:
    """What this node is, with the workers that its agent starts as its GPUs."""
    found = probe()
    found["agent"] = f"{os.getpid()}"
    found["gpus"] = _workers(command) or found["gpus"] or 1
    return found


def _workers(command: Sequence[str]) -> int | None:
    """What ``--nproc-per-node`` says; None where it is no number."""
    said = os.environ.get("PET_NPROC_PER_NODE", "1")
    for word, following in zip(command, [*command[1:], ""], strict=True):
        option, _, value = word.replace("_", "-").partition("=")
        if option == "--nproc-per-node":
            said = value or following
        elif not word.startswith("-") and word.endswith(".py"):
            break
    return int(said) if said.isdecimal() and int(said) else None


class PlacedRendezvous:
    """A rendezvous of torch whose node ranks follow a placement.

    Parameters
    ----------
    inner : RendezvousHandler
        Torch's own, which answers everything else.
    own : dict
        This node's probe.
    address : str or None
        Where others reach this node; by default its full name.
    limit : float, s
        For a placement.
    """

    def __init__(
        self, inner: Any, own: dict[str, Any], address: str | None, limit: float
    ) -> None:
        self._inner = inner
        self._own = own
        self._address = address
        self._limit = limit
        self._server: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get_backend(self) -> str:
        """The name that torchrun asked for."""
        return _BACKEND

    def next_rendezvous(self) -> Any:
        """Torch's next round, its nodes numbered by the placement."""
        for left in reversed(range(_TRIES)):
            # Torch 2.13 keeps the address of its rank 0 from round to round and tells
            # it once: a node that is new in a round would wait for it in vain.
            vars(self._inner).update(
                dict.fromkeys(_OF_A_ROUND & vars(self._inner).keys())
            )
            info = self._inner.next_rendezvous()
            try:
                return self._placed(info)
            except (RuntimeError, OSError) as error:
                # Whoever has rank 0 is gone; without it nobody can start.
                if not left:
                    raise
                tell(f"rank 0 does not answer ({error}): the nodes meet again")
        raise AssertionError

    def _placed(self, info: Any) -> Any:
        api = import_module(f"{_TORCH}.api")
        store, size = info.store, info.world_size
        store.set(_PROBE.format(info.rank), json.dumps(self._own))
        order = self._order(store, info.rank, size)
        rank = order[info.rank] if order else info.rank
        master = self._master(store, rank)
        return api.RendezvousInfo(store, rank, size, master)

    def _order(self, store: Any, rank: int, size: int) -> list[int] | None:
        """Node rank of each node by its number in c10d's order; None for that order.

        It is decided once: whoever writes it first, the first node or one that is tired
        of waiting, has decided for all.
        """
        own = (lambda: self._answer(store, size)) if rank == 0 else None
        answer = decided(store, _ORDER, own, _C10D, _ORDER_S + self._limit)
        order: list[int] | None = json.loads(answer).get("ranks")
        return order

    def _answer(self, store: Any, size: int) -> str:
        base = store.underlying_store
        keys = [_PROBE.format(rank) for rank in range(size)]
        started = time.monotonic()
        try:
            store.wait(keys, timedelta(seconds=_PROBES_S))
            probes = [json.loads(text) for text in store.multi_get(keys)]
            last = json.loads(base.get(_LAST)) if base.check([_LAST]) else None
            found = placed_again(distinct(probes), last, sys.argv, self._limit, tell)
        except Exception as error:  # the job must start, whatever is wrong here
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            tell(f"the order is c10d's: {why[:300]}")
            return _C10D
        base.set(_LAST, json.dumps(found.kept))
        tell(f"{size} nodes in order after {time.monotonic() - started:.1f} s")
        return json.dumps({"ranks": found.ranks})

    def _master(self, store: Any, rank: int) -> Any:
        """Where the workers meet: at the node of rank 0, by a store of this round."""
        api = import_module(f"{_TORCH}.api")
        distributed = import_module("torch.distributed")
        port = None
        address = self._address or socket.getfqdn()
        self._server = None
        if rank == 0 and self._inner.use_agent_store:
            self._server = distributed.TCPStore(
                address, 0, is_master=True, multi_tenant=True
            )
            port = self._server.port
        apart = distributed.PrefixStore(_MASTER, store)
        return api.RendezvousStoreInfo.build(rank, apart, address, port)


def decided(
    store: Any, key: str, own: Callable[[], str] | None, otherwise: str, seconds: float
) -> str:
    """What all take: what stands there first.

    Parameters
    ----------
    store : torch.distributed.Store
    key : str
        New in each round.
    own : callable or None
        Works it out; None for those who wait for it.
    otherwise : str
        What one who is tired of waiting decides.
    seconds : float
        How long they wait.
    """
    if own is None:
        with suppress(RuntimeError):
            store.wait([key], timedelta(seconds=seconds))
    answer = own() if own else otherwise
    return str(store.compare_set(key, "", answer).decode())


def distinct(probes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The probes, agents on one host told apart by their processes."""
    uses = Counter(one["host"] for one in probes)
    return [
        one | {"host": f"{one['host']}-p{one['agent']}"}
        if uses[one["host"]] > 1
        else one
        for one in probes
    ]


def tell(text: str) -> None:
    """A line for who reads the logs; rank 0 alone has some."""
    sys.stderr.write(f"placer: {text}\n")
    sys.stderr.flush()
