"""torchrun's rendezvous backend ``placer`` for a job that is placed when it starts.

`placer.launch.rendezvous` is for a job whose plan gave it a node map. Whatever torch's
own c10d rendezvous agrees on stands: who takes part, how many, when to start again.
Then the nodes agree on an order through its store (`agreement`). The keys of a round
are new ones, as torch prefixes them by round; the last plan that a job was started by
is kept beside the rounds.
"""

from __future__ import annotations

import json
import math
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any
from uuid import uuid4

from placer.base.errors import InputError
from placer.injob.again import LIMIT_S, Order, placed_again
from placer.injob.agreement import Round
from placer.injob.probe import probe

_TORCH = "torch.distributed.elastic.rendezvous"
_BACKEND = "placer"
_TRIES = 5
# What torch 2.4 and later keep of where workers meet; they ask where there is none.
_MEETING = {"_bootstrap_store_info", "_shared_tcp_store_server"}


def create(parameters: Any) -> Any:
    """The rendezvous of a node: torch's c10d, with node ranks by placement."""
    limit = _limit(parameters.config.get("limit"))
    dynamic = import_module(f"{_TORCH}.dynamic_rendezvous")
    backend, store = import_module(f"{_TORCH}.c10d_rendezvous_backend").create_backend(
        parameters
    )
    inner = dynamic.create_handler(store, backend, parameters)
    return PlacedRendezvous(
        inner, store, own_probe(sys.argv[1:]), parameters.local_addr, limit
    )


def _limit(given: str | None) -> float:
    """Seconds for a placement, of ``--rdzv-conf=limit=10``."""
    try:
        limit = float(given or LIMIT_S)
        if 0 <= limit < math.inf:
            return limit
    except ValueError:
        pass
    raise InputError(f'expected seconds, got "{given}"', key="--rdzv-conf=limit")


def own_probe(command: Sequence[str]) -> dict[str, Any]:
    """What this node is, with the workers that its agent starts as its GPUs."""
    found = probe()
    found["agent"] = uuid4().hex[:8]
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

    ``inner``: Torch's own, which answers everything else. ``base``: its store, which
    lasts over rounds. ``own``: this node's probe. ``address``: where others reach this
    node; by default its full name. ``limit`` (s): for a placement.
    """

    def __init__(
        self,
        inner: Any,
        base: Any,
        own: dict[str, Any],
        address: str | None,
        limit: float,
    ) -> None:
        self._inner = inner
        self._base = base
        self._own = own
        self._address = address or socket.getfqdn()
        self._limit = limit
        self._last = f"placer/last/{inner.get_run_id()}"
        self._server: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get_backend(self) -> str:
        """The name that torchrun asked for."""
        return _BACKEND

    def next_rendezvous(self) -> Any:
        """Torch's next round, its nodes numbered by the placement."""
        # Torch would ask its rank 0 where the workers meet, and wait if that is gone.
        asked = _MEETING & vars(self._inner).keys()
        vars(self._inner).update(dict.fromkeys(asked, _BACKEND))
        for left in reversed(range(_TRIES)):
            try:
                info = self._inner.next_rendezvous()
                return self._placed(info, trusts_heartbeats=left > 0)
            except RuntimeError:
                # Of torch's own errors none is one: whoever is gone ends a round alone.
                if not left:
                    raise
        raise AssertionError

    def _placed(self, info: Any, trusts_heartbeats: bool) -> Any:
        api = import_module(f"{_TORCH}.api")
        store = import_module("torch.distributed").PrefixStore(_BACKEND, info.store)
        kept: list[dict[str, Any]] = []

        def ranks_of(probes: Sequence[dict[str, Any]]) -> list[int]:
            order = self._order(probes)
            kept.append(order.kept)
            return [rank for rank in order.ranks if rank is not None]  # all have one

        is_broken = self._watch(info.world_size) if trusts_heartbeats else bool
        nodes = Round(
            store, info.rank, info.world_size, self._open_port, is_broken, tell
        )
        agreed = nodes.agree(self._own, ranks_of, self._limit)
        if agreed.rank:
            self._server = None
        if kept and agreed.is_placed:
            self._base.set(self._last, json.dumps(kept[0]))
        master = api.RendezvousStoreInfo(*agreed.master)
        return api.RendezvousInfo(info.store, agreed.rank, info.world_size, master)

    def _order(self, probes: Sequence[dict[str, Any]]) -> Order:
        started = time.monotonic()
        has_last = self._base.check([self._last])
        last = json.loads(self._base.get(self._last)) if has_last else None
        order = placed_again(distinct(probes), last, sys.argv, self._limit, tell)
        tell(f"{len(probes)} nodes in order after {time.monotonic() - started:.1f} s")
        return order

    def _watch(self, size: int) -> Callable[[], bool]:
        """Whether a node of this round is gone, or somebody waits for the next one."""
        holder = self._inner._state_holder
        number = holder.state.round

        def is_broken() -> bool:
            if self._inner.num_nodes_waiting():
                return True
            state = holder.state
            return state.round != number or len(state.participants) < size

        return is_broken

    def _open_port(self) -> tuple[str, int]:
        """Where workers can meet on this node, by a store of this round."""
        if not self._inner.use_agent_store:
            module = import_module("torch.distributed.elastic.utils.distributed")
            return self._address, module.get_free_port()
        distributed = import_module("torch.distributed")
        # It listens on every address; by which others reach it must not matter here.
        self._server = distributed.TCPStore(
            "localhost", 0, is_master=True, multi_tenant=True
        )
        return self._address, self._server.port


def distinct(probes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The probes, agents on one host told apart."""
    uses = Counter(one["host"] for one in probes)
    return [
        one | {"host": f"{one['host']}-{one['agent']}"}
        if uses[one["host"]] > 1
        else one
        for one in probes
    ]


def tell(text: str) -> None:
    """A line for who reads the logs; rank 0 alone has some."""
    sys.stderr.write(f"placer: {text}\n")
    sys.stderr.flush()
