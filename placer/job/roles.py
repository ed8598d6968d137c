"""Roles of a workload, and what they transfer to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.job.axes import AXES, EXPERT_AXES

if TYPE_CHECKING:
    from placer.job.model import Job


@dataclass(frozen=True, eq=False)
class Role:
    """What some instances do alike: training, rollouts, prefill, decoding.

    Attributes
    ----------
    name : str
    job : Job
        Of one instance, its ranks numbered from 0.
    instances : int
    steps : float
        Steps of its job in a cycle.
    first_rank : int
        Of the first instance, in the workload; the others follow.
    """

    name: str
    job: Job
    instances: int
    steps: float
    first_rank: int

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
        found = self.job.parallelism.ranks_of_group.get(axis)
        own = found if found is not None else _own_groups(self.job, axis)
        for offset in self.offsets:
            for members in own:
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
    """What one role sends another in a cycle.

    Attributes
    ----------
    sender, receiver : str
        Names of roles.
    pattern : str
        ``reshard``, ``broadcast``, ``paired`` or ``all_to_all``.
    size_bytes : float, bytes
        In a cycle: of one copy (``reshard``, ``broadcast``), of one pair of instances
        (``paired``), or of all ranks together (``all_to_all``).
    overlap : bool
        Whether it hides behind the roles.
    expert_share : float
        Share of the bytes that is cut by experts rather than over ``tp``.
    fixed_time : float, s
        In a cycle, beside the bytes: gathering, quantizing, loading.
    """

    sender: str
    receiver: str
    pattern: str
    size_bytes: float
    overlap: bool = False
    expert_share: float = 0.0
    fixed_time: float = 0.0


def _own_groups(job: Job, name: str) -> list[IntArray]:
    return [
        np.array(ranks, dtype=np.int64)
        for group in job.groups
        if group.name == name
        for ranks in group.ranks
    ]
