"""What ranks send each other beyond the traffic of the axes: own groups, and flows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.documents.keys import (
    BOOLEAN,
    SIZE,
    TEXT,
    Key,
    also,
    integer,
    key,
    list_of,
    number,
    one_of,
    special,
)

COLLECTIVES = (
    "all_to_all",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "send_recv",
    "relay",
)
_GROUP_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


def _ranks_schema() -> dict[str, Any]:
    rank = {"type": "integer", "minimum": 0, "maximum": 10**9}
    group = {"type": "array", "items": rank, "minItems": 1}
    listed = {"type": "array", "items": group, "minItems": 1}
    return {"anyOf": [{"const": "all"}, listed]}


@dataclass(frozen=True)
class Group:
    """A communicator of the user's own; its ``size_bytes`` are a buffer's."""

    name: str = key(
        also(
            TEXT,
            _GROUP_NAME.fullmatch,
            "cannot be used as a name",
            "letters, digits, dots, - and _, at most 63, a letter first",
            pattern=f"^{_GROUP_NAME.pattern}$",
        ),
        "name in the score",
    )
    collective: str = key(
        one_of(COLLECTIVES),
        "`all_to_all`, `all_reduce`, `all_gather`, `reduce_scatter`, `send_recv` (each "
        "rank to the next, all at once) or `relay` (each rank to the next, one after "
        "the other)",
    )
    size_bytes: float = key(SIZE, "buffer of a rank", called="bytes")
    per_step: float = key(
        number(0.0, 1e9),
        "how often it runs in a step",
        implied=lambda _: 1.0,
        absent="`1`",
    )
    overlap: bool = key(
        BOOLEAN,
        "whether it hides behind compute",
        implied=lambda _: False,
        absent="`false`",
    )
    ranks: tuple[tuple[int, ...], ...] = key(
        special(_ranks_schema),
        "global ranks of each group; `all` is one group of the whole world",
    )

    @property
    def num_members(self) -> int:
        """Members of all its groups."""
        return sum(map(len, self.ranks))


class Flows:
    """The keys of ``traffic``."""

    file = Key(
        TEXT,
        "a CSV file with lines `from,to,bytes`; an npz file with a square matrix "
        "`[from, to]` or the arrays `from`, `to` and `bytes`; or traces. Relative to "
        "the folder of the job file",
        absent="",
    )
    steps = Key(
        integer(),
        "how many steps each trace holds",
        0,
        absent="those that the profiler marked",
    )
    without = Key(
        list_of(TEXT),
        "calls in traces to leave out, by PyTorch's names: `[broadcast]`",
        (),
    )
    senders = Key(
        list_of(integer(0)),
        "ranks that send, in the job file itself instead of `file`",
        absent="",
        called="from",
    )
    receivers = Key(
        list_of(integer(0)), "the rank that each sends to", absent="", called="to"
    )
    sizes = Key(list_of(SIZE), "how much each sends", absent="", called="bytes")
    overlap = Key(BOOLEAN, "whether it hides behind compute", False)
    together: ClassVar[dict[str, Any]] = {
        "oneOf": [{"required": ["file"]}, {"required": ["from", "to", "bytes"]}]
    }


class RankFlows(NamedTuple):
    """Bytes between ranks; shapes (F,)."""

    senders: IntArray
    receivers: IntArray
    size_bytes: FloatArray

    @classmethod
    def of(cls, senders: Any, receivers: Any, sizes: Any) -> RankFlows:
        """Flows of anything that arrays can be made of."""
        return cls(
            np.asarray(senders, dtype=np.int64),
            np.asarray(receivers, dtype=np.int64),
            np.asarray(sizes, dtype=np.float64),
        )

    def merged(self) -> RankFlows:
        """One flow for each pair of different ranks that sends anything, in order."""
        sent = (self.senders != self.receivers) & (self.size_bytes > 0)
        senders, receivers = self.senders[sent], self.receivers[sent]
        count = int(receivers.max(initial=0)) + 1
        keys, which = np.unique(senders * count + receivers, return_inverse=True)
        total = np.bincount(which, self.size_bytes[sent], len(keys))
        return RankFlows.of(keys // count, keys % count, total)


@dataclass(frozen=True, eq=False)
class RankTraffic:
    """What ranks send each other in a step: F flows, any pair once at most."""

    # senders and receivers, (F,): ordered by sender, then receiver.
    senders: IntArray
    receivers: IntArray
    size_bytes: FloatArray  # (F,), bytes: above 0
    overlap: bool = False  # whether it hides behind compute
    # Share of a NIC's rate that what one rank sends another reaches.
    pair_share: float = 1.0
    fixed_s: float = 0.0  # s: what is done before and after the bytes move

    def to_document(self) -> dict[str, Any]:
        """As the job file has it when it names no other file."""
        return {
            "overlap": self.overlap,
            "from": self.senders.tolist(),
            "to": self.receivers.tolist(),
            "bytes": self.size_bytes.tolist(),
        }
