"""The order of a pipeline's work: 1F1B, plain or interleaved, cut into blocks.

Every pipeline rank runs a fixed list of forward and backward chunks (Megatron-LM
d98e8a64, ``core/pipeline_parallel/schedules.py``): micro-batches in groups of ``p``,
the chunks of a group one after the other, ``2 (p-s-1) + (v-1) p`` forwards of warm-up
on rank ``s`` (``p-s-1`` without virtual stages), then one forward and one backward in
turn. A last group of fewer than ``p`` micro-batches keeps the places of a full one,
with nothing to do in the others; Megatron refuses it when ``v > 1``.

Forward ``i`` of a rank is chunk ``(i mod g) div p`` of micro-batch ``(i div g) p + i
mod p`` with ``g = v p``; backward ``i`` is that micro-batch and chunk ``v-1`` less
that.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class Operation(NamedTuple):
    """One forward or backward chunk of one micro-batch on one rank."""

    stage: int
    # ``stage`` for a forward, ``p + stage`` for a backward; ``2 p`` and ``2 p + 1`` for
    # those of the first chunk, ``2 p + 2`` and ``2 p + 3`` of the last.
    work: int
    source: int  # key of the operation whose result it needs; -1 for none
    # Its own key; -1 when nobody needs its result. One group of micro-batches later all
    # keys are larger by ``g``.
    key: int
    # The link its result travels on: ``r`` from rank ``r`` to the next, ``p + r`` back;
    # -1 when it stays on its rank.
    link: int


Block = tuple[Operation, ...]


@lru_cache(maxsize=256)
def blocks(num_stages: int, micro_batches: int, chunks: int) -> tuple[Block, ...]:
    """All operations in an order in which they can run, one block a group.

    Block ``j`` ends when rank 0 has finished the backwards of group ``j`` and holds
    nothing that these can do without, so blocks far from both ends are alike.
    """
    return _Builder(num_stages, micro_batches, chunks).build()


class _Builder:
    """Collects operations; a rank's list is walked by position, an index into it."""

    def __init__(self, num_stages: int, micro_batches: int, chunks: int) -> None:
        self.num_stages = num_stages
        self.micro_batches = micro_batches
        self.chunks = chunks
        self.group = chunks * num_stages
        self.total = -(-micro_batches // num_stages) * self.group
        self.done = [0] * num_stages

    def build(self) -> tuple[Block, ...]:
        ends = range(self.group - 1, self.total, self.group)
        return tuple(tuple(self._until(self._position(0, False, i))) for i in ends)

    def _until(self, position: int) -> list[Operation]:
        """What must still run for rank 0 to get past ``position``."""
        block = []
        targets = [(0, position)]
        while targets:
            stage, position = targets[-1]
            here = self.done[stage]
            if here > position:
                targets.pop()
                continue
            is_forward, i = self._item(stage, here)
            source = self._source(stage, is_forward, i)
            if self._is_real(i):
                if source is not None:
                    needed = self._position(*source)
                    if self.done[source[0]] <= needed:
                        targets.append((source[0], needed))
                        continue
                block.append(self._operation(stage, is_forward, i, source))
            self.done[stage] += 1
        return block

    def _operation(
        self, stage: int, is_forward: bool, i: int, source: tuple[int, bool, int] | None
    ) -> Operation:
        link = self._link(stage, is_forward, i)
        ends_here = not is_forward and stage == 0 and link < 0
        return Operation(
            stage,
            self._work(stage, is_forward, i),
            -1 if source is None else self._key(*source),
            -1 if ends_here else self._key(stage, is_forward, i),
            link,
        )

    def _work(self, stage: int, is_forward: bool, i: int) -> int:
        chunk = i % self.group // self.num_stages
        if not is_forward:
            chunk = self.chunks - 1 - chunk
        if stage == 0 and chunk == 0:
            return 2 * self.num_stages + (not is_forward)
        if stage == self.num_stages - 1 and chunk == self.chunks - 1:
            return 2 * self.num_stages + 2 + (not is_forward)
        return stage if is_forward else self.num_stages + stage

    def _source(
        self, stage: int, is_forward: bool, i: int
    ) -> tuple[int, bool, int] | None:
        """(stage, is forward, index) of the operation that ``i`` waits for."""
        last = self.num_stages - 1
        first_chunk = i % self.group < self.num_stages
        if is_forward:
            if stage:
                return stage - 1, True, i
            return None if first_chunk else (last, True, i - self.num_stages)
        if stage < last:
            return stage + 1, False, i
        if first_chunk:
            return last, True, i + self.group - self.num_stages
        return 0, False, i - self.num_stages

    def _link(self, stage: int, is_forward: bool, i: int) -> int:
        last_chunk = i % self.group >= self.group - self.num_stages
        if stage == (self.num_stages - 1 if is_forward else 0) and last_chunk:
            return -1
        if is_forward:
            return stage
        return self.num_stages + (stage - 1) % self.num_stages

    def _warm_up(self, stage: int) -> int:
        ahead = self.num_stages - stage - 1
        if self.chunks > 1:
            ahead = 2 * ahead + self.group - self.num_stages
        return min(ahead, self.total)

    def _item(self, stage: int, position: int) -> tuple[bool, int]:
        """(is forward, index) at a position of the rank's list."""
        warm_up = self._warm_up(stage)
        if position < warm_up:
            return True, position
        if position >= 2 * self.total - warm_up:
            return False, position - self.total
        turn, is_backward = divmod(position - warm_up, 2)
        return (False, turn) if is_backward else (True, warm_up + turn)

    def _position(self, stage: int, is_forward: bool, i: int) -> int:
        warm_up = self._warm_up(stage)
        if is_forward:
            return i if i < warm_up else 2 * i - warm_up
        return min(warm_up + 2 * i + 1, self.total + i)

    def _is_real(self, i: int) -> bool:
        micro_batch = i // self.group * self.num_stages + i % self.num_stages
        return micro_batch < self.micro_batches

    def _key(self, stage: int, is_forward: bool, i: int) -> int:
        rank = stage if is_forward else self.num_stages + stage
        return rank * (self.total + self.group) + i
