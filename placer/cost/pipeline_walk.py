"""Walks a pipeline's work, operation by operation, for one replica or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from placer.arrays import FloatArray

if TYPE_CHECKING:
    from placer.cost.pipeline_order import Block

Time = TypeVar("Time", float, FloatArray)


@dataclass
class PipelineWalk(Generic[Time]):
    """What has been done so far; times are floats, or arrays of many replicas.

    Attributes
    ----------
    work_s, hop_s : sequence, length 2 p + 4 and 2 p, s
        Time of each kind of work and each link of `Operation`.
    overlap : bool
        Whether a rank computes on while its message travels.
    largest : callable
        Maximum of two times.
    clock : list, length p
        When each rank has finished what it was given.
    free : dict
        When each link has, unless its sender has waited for it.
    arrived : dict
        When results arrive that nobody has used yet, by key.
    """

    work_s: Sequence[Time]
    hop_s: Sequence[Time]
    overlap: bool
    largest: Callable[[Time, Time], Time]
    clock: list[Time]
    free: dict[int, Time] = field(default_factory=dict)
    arrived: dict[int, Time] = field(default_factory=dict)

    def do(self, block: Block) -> None:
        """Run the operations of a block."""
        clock, free, arrived = self.clock, self.free, self.arrived
        largest, overlap = self.largest, self.overlap
        for stage, work, source, key, link in block:
            end = clock[stage]
            if source >= 0:
                end = largest(end, arrived.pop(source))
            end = end + self.work_s[work]
            clock[stage] = end
            if link >= 0:
                if link in free:
                    end = largest(end, free[link])
                end = end + self.hop_s[link]
                if overlap:
                    free[link] = end
                else:
                    clock[stage] = end
            if key >= 0:
                arrived[key] = end

    def do_next(self, block: Block, group: int) -> None:
        """Run a block for the group after the one that it was last run for.

        A group's keys are larger by ``group`` than those of the group before.
        """
        self.arrived = {key - group: time for key, time in self.arrived.items()}
        self.do(block)

    def state(self) -> list[Time]:
        """Everything that the future depends on, in a fixed order."""
        free = [self.free[link] for link in sorted(self.free)]
        arrived = [self.arrived[key] for key in sorted(self.arrived)]
        return self.clock + free + arrived

    def resume(self, state: Sequence[Time]) -> None:
        """Go on from another state of the same order."""
        times = iter(state)
        self.clock = [next(times) for _ in self.clock]
        self.free = {link: next(times) for link in sorted(self.free)}
        self.arrived = {key: next(times) for key in sorted(self.arrived)}
