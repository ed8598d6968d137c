"""What ranks send each other beyond the traffic of the axes: own groups, and flows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.documents import Section, Value, open_document
from placer.documents.files import beside
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
from placer.documents.records import read
from placer.job.axes import AXES, EXPERT_AXES, MAX_WORLD_SIZE

COLLECTIVES = (
    "all_to_all",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "send_recv",
    "relay",
)
MAX_MEMBERS = 1 << 20

_TAKEN = (*AXES, *EXPERT_AXES, "vp", "dp_cp")
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


def decode_groups(job: Section, world_size: int) -> tuple[Group, ...]:
    """All communicators of a job; problems go to the job's document.

    A ``world_size`` of 0 means that it is unknown and ranks cannot be checked.
    """
    value = job.get("groups")
    if value is None or value.kind != "mapping":
        return _decode_list(job, world_size)
    name = value.section().text("file")
    if job.document.problems:
        return ()
    document = open_document(beside(job.document.source, name))
    groups = _decode_list(document.root, world_size)
    if not document.root.has("groups"):
        document.root.problem('the key "groups" is missing')
    document.finish()
    return groups


def _decode_list(job: Section, world_size: int) -> tuple[Group, ...]:
    names: set[str] = set()
    groups = []
    members = 0
    for value in job.items("groups"):
        section = value.section()
        group = _decode_group(section, world_size)
        if group.name in names:
            message = f'there is another group called "{group.name}"'
            section.problem(message, "name", "list all its members in one entry")
        names.add(group.name)
        groups.append(group)
        members += sum(map(len, group.ranks))
        if members > MAX_MEMBERS:
            value.problem(f"more than {MAX_MEMBERS} members in all groups together")
            break
    return tuple(groups)


def _decode_group(section: Section, world_size: int) -> Group:
    group = read(section, Group, ranks=_ranks(section, world_size))
    if group.name in _TAKEN:
        message = f'"{group.name}" is the name of an axis'
        section.problem(message, "name", "choose another")
    return group


def _ranks(section: Section, world_size: int) -> tuple[tuple[int, ...], ...]:
    """Members of each group; ``all`` is one group of the whole world."""
    value = section.get("ranks", required=True)
    if value is None:
        return ()
    if value.kind == "text":
        if value.content != "all":
            hint = "write a list of lists of ranks, or all"
            value.problem(f"expected ranks, got {value.shown()}", hint)
        elif not world_size and not section.document.problems:
            value.problem("no parallelism says how many these are", "list the ranks")
        return (tuple(range(world_size)),)
    rows = value.items()
    if value.kind == "list" and not rows:
        value.problem("the list of groups is empty")
    highest = (world_size or MAX_WORLD_SIZE) - 1
    problems_before = len(section.document.problems)
    members = tuple(tuple(row.integers(maximum=highest)) for row in rows)
    if len(section.document.problems) == problems_before:
        _check_members(rows, members)
    return members


def _check_members(rows: list[Value], members: tuple[tuple[int, ...], ...]) -> None:
    seen: set[int] = set()
    for row, ranks in zip(rows, members, strict=True):
        if not ranks:
            row.problem("the group has no members")
        for index, rank in enumerate(ranks):
            if rank in seen:
                message = f"rank {rank} is already in a group of this name"
                row.items()[index].problem(message)
                break
            seen.add(rank)


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
