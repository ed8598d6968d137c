"""The flows of a job's own traffic and communicators, as its ports see them.

What a communicator sends is known where it does not depend on who is where: traffic,
all-to-alls, messages and relays. Rings and trees are not. Shapes: F flows.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.job.model import Group, Job

KNOWN = ("all_to_all", "send_recv", "relay")


class Messages(NamedTuple):
    """Flows between ranks or units.

    Attributes
    ----------
    ends : ndarray, shape (2, F)
        Who sends, who receives.
    ports : ndarray, shape (2, F)
        At either end, numbered through.
    size_bytes : ndarray, shape (F,)
        In a step.
    runs : ndarray, shape (F,)
        Messages in a step.
    together : ndarray, shape (F,)
        Flows with the same number run at the same time.
    kind_of_port, kind_of_set : ndarray
        Kind of communicators that each port, and each set of flows that run at the same
        time, belongs to. Kinds run in turn.
    """

    ends: IntArray
    ports: IntArray
    size_bytes: FloatArray
    runs: FloatArray
    together: IntArray
    kind_of_port: IntArray
    kind_of_set: IntArray

    def between(self, label: IntArray) -> Messages:
        """Those between the units that ``label`` puts ranks into."""
        ends = label[self.ends]
        kept = ends[0] != ends[1]
        return self._replace(
            ends=ends[:, kept],
            ports=self.ports[:, kept],
            size_bytes=self.size_bytes[kept],
            runs=self.runs[kept],
            together=self.together[kept],
        )


class _Part(NamedTuple):
    """Flows that run at the same time; their ports are numbered from 0 up."""

    ends: IntArray
    ports: IntArray
    size_bytes: FloatArray
    runs: float


def messages_of(job: Job) -> Messages | None:
    """All flows of a job; None where there are others that depend on the placement."""
    groups = [group.collective for group in job.groups]
    has_others = job.model or any(
        role.job.model or role.job.groups for role in job.roles
    )
    if has_others or not set(groups) <= set(KNOWN):
        return None
    parts = [(kind, part) for kind, part in _parts(job) if part.ends.size]
    if not parts:
        return None
    own = [part for _, part in parts]
    kinds = np.array([kind for kind, _ in parts])
    numbers = [int(part.ports.max()) + 1 for part in own]
    first = (np.cumsum(numbers) - numbers).tolist()
    flows = [part.ends.shape[1] for part in own]
    return Messages(
        np.concatenate([part.ends for part in own], axis=1),
        np.concatenate(
            [part.ports + at for part, at in zip(own, first, strict=True)], axis=1
        ),
        np.concatenate([part.size_bytes for part in own]),
        np.repeat([part.runs for part in own], flows),
        np.repeat(np.arange(len(own)), flows),
        np.repeat(kinds, numbers),
        kinds,
    )


def _parts(job: Job) -> Iterator[tuple[int, _Part]]:
    """(kind, flows that run at the same time)."""
    kinds = count()
    if job.traffic is not None:
        flows = job.traffic
        ends = np.stack((flows.senders, flows.receivers))
        ports = ends + np.array([[0], [job.world_size]])
        yield next(kinds), _Part(ends, ports, flows.size_bytes, 1.0)
    for group in job.groups:
        kind = next(kinds)
        sizes = {len(ranks) for ranks in group.ranks} - {1}
        for size in sorted(sizes):
            rows = [ranks for ranks in group.ranks if len(ranks) == size]
            yield kind, _of_group(group, np.array(rows))


def _of_group(group: Group, members: IntArray) -> _Part:
    """The flows of groups of one size.

    A member of an all-to-all sends from a port of its own in each group, the hops of a
    relay are made in turn, as if they shared one, and messages share none.
    """
    rows, size = members.shape
    if group.collective == "all_to_all":
        one, other = np.nonzero(~np.eye(size, dtype=bool))
        ends = np.stack((members[:, one], members[:, other])).reshape(2, -1)
        port = np.arange(rows)[:, None] * size
        ports = np.stack((port + one, rows * size + port + other)).reshape(2, -1)
        sent = group.size_bytes / size
    else:
        ends = np.stack((members[:, :-1], members[:, 1:])).reshape(2, -1)
        number = np.arange(ends.shape[1])
        if group.collective == "relay":
            number //= size - 1
        ports = np.stack((number, number + number[-1] + 1))
        sent = group.size_bytes
    total = np.full(ends.shape[1], sent * group.per_step)
    return _Part(ends, ports, total, group.per_step)
