"""Runs of ranks on hosts for expert groups, cut where stages have time for it.

A stage with more work than others, such as the one with the output layer, sets the pace
of all pipelines: its expert groups should be whole, and those of other stages may lie
in small parts. So each stage has a least part that it may have in a step of some
length. A shortest path along the ranks says whether hosts hold them in such runs, and
which cut the least. The shortest step for which they do is taken, and the next ones.

By hand: groups of 4 in six stages of sixteen replicas on 16 hosts of 7. Runs of 6 hold
all in halves, and the last stage waits for its own. Runs of 4 in the last stage keep
those whole, where one group in three of the others has a single rank on a host.

Shapes: S pieces of a unit, R pieces of all, P stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.experts.expert_parts import stage_parts
from placer.solve.construct.by_nodes.asked_runs import on_hosts
from placer.solve.problem.colocation import colocation_of, join
from placer.solve.tree.fill import in_turn

if TYPE_CHECKING:
    from placer.solve.bounds.experts.expert_parts import StageParts
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

NAME = "runs as long as stages have time for"
TRIED = 3  # lengths of a step
MOST_STATES = 2_000_000  # of a path


def paced_runs(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Runs with which no stage waits for longer than it has time."""
    is_free = problem.job.launcher == "free" or problem.forced_block
    if problem.goal.name != "time" or is_free:
        return
    parts = stage_parts(problem.model, colocation_of(problem.machine, problem.job, 0))
    if parts is None or not are_runs(parts):
        return
    ranks, machine = parts.units.ranks, problem.machine
    tier = parts.network.fabric.scale_up_tier
    for lengths, rooms in islice(paced_lengths(parts, budget), TRIED):
        gpus = on_hosts(problem, lengths * ranks, parts.units.pieces * ranks)
        incumbent.offer(NAME, gpus)
        free = {
            room: np.flatnonzero(parts.room == room).tolist() for room in set(rooms)
        }
        domains = [free[room].pop(0) for room in rooms]
        domain = np.repeat(domains, lengths * ranks)
        incumbent.offer(NAME, in_turn(machine.domain_of_gpu[tier], domain))


def are_runs(parts: StageParts) -> bool:
    """Whether each domain is a node that holds a run of pieces, units being runs."""
    network, units = parts.network, parts.units
    tier = network.fabric.scale_up_tier
    if not network.in_runs or tier not in network.run_tiers:
        return False
    label = network.label[tier]
    if units.ranks == 1:
        label = np.arange(len(label))
    unit = join(label, parts.step.model.job.parallelism.ranks_of_group["ep"])
    return _follow(label, units.ranks) and _follow(unit, units.ranks * units.pieces)


def _follow(label: IntArray, ranks: int) -> bool:
    """Whether sets of so many ranks each have ranks that follow each other."""
    rows = label.reshape(-1, ranks)
    return bool((rows == rows[:, :1]).all())


def paced_lengths(
    parts: StageParts, budget: Budget
) -> Iterator[tuple[IntArray, list[int]]]:
    """Lengths of the runs, in pieces, for the shortest step and then longer ones.

    With the room of the host of each.
    """
    seconds = parts.seconds(parts.network.fabric.scale_up_tier + 1)
    stages = parts.step.model.job.parallelism.pp
    sizes, fastest = list(seconds), min(seconds.values())
    # Of a replica of which one stage has such parts and no other waits.
    times = np.full((stages * len(sizes), stages), fastest)
    at, level = np.divmod(np.arange(len(times)), len(sizes))
    times[np.arange(len(times)), at] = np.array(list(seconds.values()))[level]
    steps = parts.step_times(times).reshape(stages, len(sizes))
    levels = np.unique(steps)
    path = HostPath(parts, seconds)
    first, last = 0, len(levels)
    while first < last and not budget.is_over():
        middle = (first + last) // 2
        is_in_time = path.runs(_least(steps, sizes, levels[middle])) is not None
        first, last = (first, middle) if is_in_time else (middle + 1, last)
    for value in levels[first:].tolist():
        runs = path.runs(_least(steps, sizes, value))
        if runs is None or budget.is_over():
            return
        yield runs


def _least(steps: FloatArray, sizes: list[int], value: float) -> IntArray:
    """The least part that units of each stage may have in a step of so long; (P,)."""
    return np.asarray(np.array(sizes)[(steps <= value).argmax(axis=1)], dtype=np.int64)


class HostPath:
    """Paths along all pieces, host by host.

    Parameters
    ----------
    seconds : mapping of int to float, s
        Of a unit, by its least part.
    """

    def __init__(self, parts: StageParts, seconds: dict[int, float]) -> None:
        self.size = parts.units.pieces
        ranks = parts.units.ranks * self.size
        self.stage = parts.step.model.job.parallelism.coordinates["pp"][::ranks]
        rooms, hosts = np.unique(parts.room[parts.room > 0], return_counts=True)
        self.rooms = rooms.tolist()
        self.shape = tuple((hosts + 1).tolist())
        whole = min(seconds.values())
        self.wait = {part: time - whole for part, time in seconds.items()}

    def runs(self, least: IntArray) -> tuple[IntArray, list[int]] | None:
        """What each host that is used holds, and its room; None if they cannot.

        Parameters
        ----------
        least : ndarray, shape (P,)
            Pieces of the least part of a unit, by stage.
        """
        ranks = self.size * len(self.stage)
        if ranks * int(np.prod(self.shape)) > MOST_STATES:
            return None
        cost = np.full((ranks + 1, *self.shape), np.inf)
        way = np.zeros(cost.shape, dtype=np.int64)
        cost[(0,) * cost.ndim] = 0.0
        for begin in range(ranks):
            for sort, room in enumerate(self.rooms):
                here = cost[begin][_all_but(sort, len(self.shape), -1)]
                for held in range(1, min(room, ranks - begin) + 1):
                    after = _all_but(sort, len(self.shape), 0)
                    there = cost[begin + held][after]
                    more = here + self._wait(begin, begin + held, least)
                    is_less = more < there
                    there[is_less] = more[is_less]
                    way[begin + held][after][is_less] = held * len(self.rooms) + sort
        at = np.unravel_index(int(cost[ranks].argmin()), self.shape)
        if not np.isfinite(cost[ranks][at]):
            return None
        found, rooms, used = list[int](), list[int](), list(map(int, at))
        while ranks:
            held, sort = divmod(int(way[(ranks, *used)]), len(self.rooms))
            found.append(held)
            rooms.append(self.rooms[sort])
            ranks -= held
            used[sort] -= 1
        return np.array(found[::-1]), rooms[::-1]

    def _wait(self, begin: int, end: int, least: IntArray) -> float:
        """What stages wait for parts on a host, s; infinite where one is too small."""
        total = 0.0
        for unit in range(begin // self.size, -(-end // self.size)):
            first = unit * self.size
            part = min(end, first + self.size) - max(begin, first)
            if part < self.size:
                if part < least[self.stage[unit]]:
                    return np.inf
                total += self.wait.get(min(part, self.size - part), 0.0)
        return total


def _all_but(axis: int, axes: int, end: int) -> tuple[slice, ...]:
    """All of an array but the first (0) or the last (-1) along an axis."""
    some = slice(1, None) if end == 0 else slice(None, -1)
    return tuple(some if one == axis else slice(None) for one in range(axes))
