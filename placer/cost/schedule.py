"""The pipeline schedule: longest path through 1F1B, plain or interleaved.

Every pipeline rank runs a fixed list of forward and backward chunks (Megatron-LM d98e8a64,
``core/pipeline_parallel/schedules.py``): micro-batches in groups of ``p``, the chunks of a
group one after the other, ``2 (p-s-1) + (v-1) p`` forwards of warm-up on rank ``s``
(``p-s-1`` without virtual stages), then one forward and one backward in turn. With ``v > 1``
the last rank also sends to the first: the stages form a closed ring.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class Stages(NamedTuple):
    """One replica's pipeline.

    Attributes
    ----------
    forward, backward : tuple of float, length p, s
        Time of one chunk of one micro-batch on each pipeline rank.
    hop : tuple of float, length p, s
        Message from each rank to the next; the last entry closes the ring.
    """

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    hop: tuple[float, ...]


# A max-plus linear system runs periodically after a short transient (Baccelli et al. 1992,
# *Synchronization and Linearity*, 3.7); a few groups of micro-batches cover it.
TRANSIENT_GROUPS = 4


@lru_cache(maxsize=65536)
def pipeline_time(
    stages: Stages, micro_batches: int, chunks: int, overlap: bool
) -> float:
    """Seconds from the first forward to the last backward of a replica.

    Parameters
    ----------
    stages : Stages
    micro_batches, chunks : int
        ``m`` and ``v``.
    overlap : bool
        Whether a rank computes on while its message travels.

    Notes
    -----
    Long runs are extended from the periodic part, group of ``p`` micro-batches by group.
    """
    group = len(stages.hop)
    longest = (TRANSIENT_GROUPS + 1) * group + micro_batches % group
    if micro_batches <= longest:
        return simulate(stages, micro_batches, chunks, overlap)
    period = simulate(stages, longest, chunks, overlap) - simulate(
        stages, longest - group, chunks, overlap
    )
    rest = (micro_batches - longest) // group
    return simulate(stages, longest, chunks, overlap) + rest * period


@lru_cache(maxsize=65536)
def simulate(stages: Stages, micro_batches: int, chunks: int, overlap: bool) -> float:
    """The same by simulating every chunk of every micro-batch."""
    return _Simulation(stages, micro_batches, chunks, overlap).run()


class _Simulation:
    """Ends of all forwards and backwards, each rank's list walked as inputs arrive."""

    def __init__(
        self, stages: Stages, micro_batches: int, chunks: int, overlap: bool
    ) -> None:
        self.stages = stages
        self.num_stages = len(stages.hop)
        self.chunks = chunks
        self.overlap = overlap
        self.forwards = _chunk_order(self.num_stages, micro_batches, chunks)
        self.position = {key: i for i, key in enumerate(self.forwards)}
        total = len(self.forwards)
        self.arrival_forward = [[-1.0] * total for _ in range(self.num_stages)]
        self.arrival_backward = [[-1.0] * total for _ in range(self.num_stages)]
        self.clock = [0.0] * self.num_stages
        self.link_forward = [0.0] * self.num_stages
        self.link_backward = [0.0] * self.num_stages
        for i, (_, chunk) in enumerate(self.forwards):
            if chunk == 0:
                self.arrival_forward[0][i] = 0.0

    def run(self) -> float:
        """Seconds until the last backward ends."""
        work = [self._work_list(stage) for stage in range(self.num_stages)]
        done = [0] * self.num_stages
        remaining = sum(len(items) for items in work)
        while remaining:
            for stage, items in enumerate(work):
                while done[stage] < len(items) and self._step(
                    stage, *items[done[stage]]
                ):
                    done[stage] += 1
                    remaining -= 1
        return max(self.clock)

    def _work_list(self, stage: int) -> list[tuple[bool, int]]:
        """(is forward, index) of everything the stage runs, in order."""
        total = len(self.forwards)
        warm_up = self.num_stages - stage - 1
        if self.chunks > 1:
            warm_up = 2 * warm_up + (self.chunks - 1) * self.num_stages
        warm_up = min(warm_up, total)
        items = [(True, i) for i in range(warm_up)]
        for i in range(total - warm_up):
            items += [(True, warm_up + i), (False, i)]
        return items + [(False, i) for i in range(total - warm_up, total)]

    def _step(self, stage: int, is_forward: bool, i: int) -> bool:
        """Run one item if its input has arrived; whether it ran."""
        arrivals = self.arrival_forward if is_forward else self.arrival_backward
        ready = arrivals[stage][i]
        if ready < 0:
            return False
        times = self.stages.forward if is_forward else self.stages.backward
        end = max(self.clock[stage], ready) + times[stage]
        self.clock[stage] = end
        if is_forward:
            self._send_forward(stage, i, end)
        else:
            self._send_backward(stage, i, end)
        return True

    def _send_forward(self, stage: int, i: int, end: float) -> None:
        micro_batch, chunk = self.forwards[i]
        last = self.num_stages - 1
        if stage < last:
            arrival = self._travel(self.link_forward, stage, stage, end)
            self.arrival_forward[stage + 1][i] = arrival
        elif chunk < self.chunks - 1:
            arrival = self._travel(self.link_forward, stage, stage, end)
            following = self.position[micro_batch, chunk + 1]
            self.arrival_forward[0][following] = arrival
        else:
            # Backward runs the chunks the other way round: its first is the last chunk.
            self.arrival_backward[last][self.position[micro_batch, 0]] = end

    def _send_backward(self, stage: int, i: int, end: float) -> None:
        micro_batch, mirrored = self.forwards[i]
        if stage > 0:
            arrival = self._travel(self.link_backward, stage, stage - 1, end)
            self.arrival_backward[stage - 1][i] = arrival
        elif mirrored < self.chunks - 1:
            last = self.num_stages - 1
            arrival = self._travel(self.link_backward, stage, last, end)
            following = self.position[micro_batch, mirrored + 1]
            self.arrival_backward[last][following] = arrival

    def _travel(self, free: list[float], stage: int, hop: int, end: float) -> float:
        """When a message sent at ``end`` over ``hop`` arrives; a link carries one at a time."""
        arrival = max(end, free[hop]) + self.stages.hop[hop]
        free[hop] = arrival
        if not self.overlap:
            self.clock[stage] = arrival
        return arrival


def _chunk_order(
    num_stages: int, micro_batches: int, chunks: int
) -> list[tuple[int, int]]:
    """(micro-batch, chunk) of every forward, in the order each rank runs them."""
    order = []
    for first in range(0, micro_batches, num_stages):
        group = range(first, min(first + num_stages, micro_batches))
        order += [(mb, chunk) for chunk in range(chunks) for mb in group]
    return order
