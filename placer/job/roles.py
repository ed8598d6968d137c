"""Roles of a workload, and what they transfer to each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from placer.base.arrays import IntArray
from placer.documents.keys import (
    BOOLEAN,
    SIZE,
    TEXT,
    TIME,
    Key,
    also,
    integer,
    key,
    list_of,
    map_of,
    number,
    one_of,
    special,
)
from placer.documents.records import mapping_schema, nested
from placer.job.axes import AXES, EXPERT_AXES
from placer.job.rules import Rules
from placer.job.started import Started

if TYPE_CHECKING:
    from placer.job.model import Job


MAX_INSTANCES, MAX_RANKS = 1 << 16, 1 << 20

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


def job_or_name() -> dict[str, Any]:
    """JSON Schema of a job that is named or written out."""
    ways = [{"required": [name]} for name in ("parallelism", "groups", "traffic")]
    return {"anyOf": [TEXT.schema(), {"type": "object", "anyOf": ways}]}


@dataclass(frozen=True, eq=False)
class Role:
    """What some instances do alike: training, rollouts, prefill, decoding."""

    name: str = key(
        also(
            TEXT,
            _NAME.fullmatch,
            "cannot be used as a name",
            "letters, digits, - and _, at most 63, a letter first",
        ),
        "letters, digits, `-` and `_`, a letter first",
    )
    job: Job = key(
        special(job_or_name),
        "the job of one instance: a file beside this one, a preset, or the keys of "
        "a job",
    )
    instances: int = key(
        integer(1, MAX_INSTANCES), "how many of them", implied=lambda _: 1, absent="`1`"
    )
    steps: float = key(
        number(0.0, 1e9),
        "steps of its job in a cycle; with 0 the role is placed, but not timed",
        absent="`every`",
    )
    # Of the first instance, in the workload; the others follow.
    first_rank: int = field(kw_only=True)

    gpus = Key(
        integer(1, MAX_RANKS),
        "GPUs of one instance: `dp` follows",
        0,
        absent="of the job",
    )
    require = Key(
        map_of(TEXT), "axis or group: tier, beside what the job requires", dict
    )

    @property
    def world_size(self) -> int:
        """Ranks of all instances."""
        return self.instances * self.job.world_size

    @property
    def offsets(self) -> range:
        """First rank of each instance."""
        size = self.job.world_size
        return range(self.first_rank, self.first_rank + self.world_size, size)

    @property
    def is_silent(self) -> bool:
        """Whether an instance sends nothing itself."""
        return not (self.job.model or self.job.groups or self.job.traffic)

    def groups(self, axis: str) -> Iterator[IntArray]:
        """Groups of an axis or of the user's own, all instances; shapes (members,)."""
        own = [np.array(r) for g in self.job.groups if g.name == axis for r in g.ranks]
        found = self.job.parallelism.ranks_of_group.get(axis, own)
        for offset in self.offsets:
            for members in found:
                yield members + offset

    @property
    def axes(self) -> tuple[str, ...]:
        """All that can be required of the role, as ``role.axis``."""
        own = (group.name for group in self.job.groups)
        return tuple(f"{self.name}.{axis}" for axis in (*AXES, *EXPERT_AXES, *own))

    def axis(self, name: str) -> str:
        """The axis that ``role.axis`` names; empty where it is another role's."""
        role, _, axis = name.partition(".")
        return axis if role == self.name else ""


@dataclass(frozen=True)
class Transfer:
    """What one role sends another in a cycle; files say it of each time."""

    sender: str = key(TEXT, "the role that sends", called="from")
    receiver: str = key(TEXT, "the role that receives", called="to")
    pattern: str = key(
        one_of(("reshard", "broadcast", "paired", "all_to_all")),
        "who sends to whom",
        implied=lambda _: "reshard",
        absent="`reshard`",
    )
    size_bytes: float = key(
        SIZE,
        "what is sent each time, by the pattern",
        absent="required",
        called="bytes",
    )
    every = Key(number(1e-9, 1e9), "steps from one transfer to the next", 1.0)
    token_bytes = Key(
        SIZE,
        "instead of `bytes`, for serving: a cycle is one second",
        0.0,
        absent="",
        called="bytes_per_token",
    )
    tokens_per_s = Key(
        number(0.0, 1e15),
        "instead of `every`, for serving: tokens of all instances",
        0.0,
        absent="",
    )
    overlap: bool = key(
        BOOLEAN, "whether it hides behind the roles; alike for all transfers", False
    )
    expert_share: float = key(
        number(0.0, 1.0),
        "share of the bytes that `ep` cuts; the rest is cut by `tp`",
        0.0,
        absent="from the model",
    )
    fixed_time: float = key(
        TIME,
        "what each transfer takes beside its bytes: gathering, quantizing, loading; "
        "the longest counts",
        0.0,
        newer=True,
    )

    together: ClassVar[dict[str, Any]] = {
        "oneOf": [
            {"required": ["bytes"]},
            {"required": ["bytes_per_token", "tokens_per_s"]},
        ]
    }


@dataclass(frozen=True)
class Workload:
    """What a file says of roles and transfers."""

    name: str = key(TEXT, "name of the workload")
    roles: tuple[Role, ...] = key(
        special(lambda: list_of(nested(Role)).schema() | {"minItems": 1}),
        "jobs that run side by side; ranks are numbered role by role",
    )
    transfers: tuple[Transfer, ...] = key(
        special(lambda: list_of(nested(Transfer)).schema() | {"minItems": 1}),
        "what roles send each other",
    )
    launcher: str = key(
        special(lambda: mapping_schema([Started.ranks])),
        "what ranks the launcher can express",
        "node-contiguous",
        absent="",
    )
    rules: Rules = key(
        nested(Rules), "pins, nodes to avoid, replicas a domain, spare nodes", Rules
    )
    description: str = key(TEXT, "one line for `placer job list`", "")
    sources: tuple[str, ...] = key(list_of(TEXT), "where each figure comes from", ())
