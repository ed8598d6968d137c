"""Which hosts hold which runs of ranks, where uplinks further out are thin.

Runs are few beside ranks: bytes between each two are worked out once, and runs change
places under annealing, a change in some microseconds. See docs/method.md, "Hosts
seated".

Shapes: N hosts, R ranks, S sorts of traffic, T tiers with thin uplinks, D domains.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.cost.gradients import REPLICATE, sync_groups
from placer.solve.construct.by_nodes.cut_at_nodes import cut_fills
from placer.solve.run.cooling import accepts, cooling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.cost.step import Step
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

NAME = "hosts seated"
MOST_HOSTS = 256  # on more a walk takes too long to end well
STARTS = 3  # of the best launches, and of the fastest pipelines with cut groups
CHANGES, MOST_CHANGES = 250, 40_000  # for each host, and at most
LOOK = 256  # changes between two looks at the clock
# A mean of high power is nearly the busiest uplink, and others count where they are
# nearly as busy.
POWER = 8
SOME = 2  # runs that change hosts at once, in the mean
HOT, COLD = 0.05, 1e-4  # shares of what all uplinks take at the beginning


def seated_hosts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Seat the best launches so far, and those whose pipelines are fastest.

    In a third of the time that is left: others find better ones on many hosts.
    """
    if problem.goal.name != "time" or problem.job.launcher == "free":
        return
    if not incumbent.is_worth_searching:
        return
    seats = Seats.of(problem)
    if seats is None:
        return
    budget = budget.share(3)
    model, machine = problem.model, problem.machine
    starts = {}
    for _, gpus in islice(cut_fills(problem), problem.fills_priced):
        if budget.is_over():
            return
        step = model.step(gpus)
        nodes = machine.node_of_gpu[gpus]
        runs = np.flatnonzero(np.diff(nodes)).tobytes()
        starts[runs] = step.pipeline_s(tuple(step.stage_times)), nodes
    cut = sorted(starts.values(), key=lambda one: one[0])[:STARTS]
    best = [machine.node_of_gpu[gpus] for gpus in incumbent.elite[:STARTS]]
    for nodes in (*best, *(nodes for _, nodes in cut)):
        if incumbent.ends() or budget.is_over():
            return
        incumbent.offer(NAME, machine.gpus_on(seats.seated(nodes, budget)))


class Seats:
    """Hosts, the uplinks above them, and what ranks send each other.

    Parameters
    ----------
    tiers : list of int
        With thin uplinks.
    """

    def __init__(self, problem: Problem, tiers: list[int]) -> None:
        machine, fabric = problem.machine, problem.model.fabric
        self.problem, self.room = problem, machine.gpus_of_node
        # The domains of all such tiers one after the other.
        first = np.cumsum([0, *(len(fabric.uplink_capacity[t]) for t in tiers)])
        homes = [machine.domain_of_node[t - 1] for t in tiers]
        self.home = np.array(homes) + first[:-1, None]
        self.uplink = np.concatenate([fabric.uplink_capacity[t] for t in tiers])

    @classmethod
    def of(cls, problem: Problem) -> Seats | None:
        """None where no uplink is thin, or hosts are too many or have islands."""
        machine = problem.machine
        if problem.job.model is None or machine.node_tier:
            return None
        tiers = problem.model.fabric.thin_tiers
        if not tiers or len(machine.gpus_of_node) > MOST_HOSTS:
            return None
        return cls(problem, tiers)

    def seated(self, node_of_rank: IntArray, budget: Budget) -> IntArray:
        """Node of every rank when its runs have changed places; shape (R,)."""
        ends = np.flatnonzero(np.diff(node_of_rank))
        used = node_of_rank[np.append(ends, -1)]
        run = np.append(0, np.cumsum(np.diff(node_of_rank) != 0))
        host = np.append(used, np.setdiff1d(np.arange(len(self.room)), used))
        length = np.bincount(run, minlength=len(host))
        step = self.problem.model.step(self.problem.machine.gpus_on(node_of_rank))
        walk = _Walk(self, host, length, self._between(run, len(host), step))
        return np.asarray(walk.go(budget)[run])

    def _between(self, run: IntArray, hosts: int, step: Step) -> FloatArray:
        """Bytes that runs send each other in a step, by sort; shape (S, N, N)."""
        found = [np.zeros((hosts, hosts))]
        for groups, sent in self._gradients():
            _add_ring(found[0], run[groups], sent)
        axes = self.problem.job.parallelism
        for axis, time in step.stage_times.items():
            if axis == "pp":  # whose messages compute hides, or all hosts send
                continue
            groups, size = run[axes.ranks_of_group[axis]], axes.size(axis)
            found.append(np.zeros((hosts, hosts)))
            others = range(1, size if axis == "ep" else 2)
            sent = float(time.traffic.bytes_by_tier.sum()) / groups.size / len(others)
            for by in others:
                _add_ring(found[-1], groups, sent, by)
        for each in found:
            np.fill_diagonal(each, 0.0)
        return np.array(found)

    def _gradients(self) -> Iterator[tuple[IntArray, float]]:
        """Groups, and bytes of each hop of their rings in a step."""
        job, sizes = self.problem.job, self.problem.model.volumes
        axes, groups = job.parallelism, sync_groups(job, sizes)
        shape, frozen = (axes.pp, axes.vp), job.data_parallel.shards_weights
        parameters = {
            sort: held(*shape) + held(*shape, frozen=frozen)
            for sort, held in (
                ("dp", sizes.dense_parameters),
                ("edp", sizes.expert_parameters),
            )
        }
        for name, members in groups.items():
            sort = name.removesuffix(REPLICATE)
            shards = groups[sort].shape[1] if name != sort else 1
            sent = float(parameters[sort].sum(axis=1).max()) / shards
            yield members, sent * job.bytes.gradient


def _add_ring(between: FloatArray, run: IntArray, sent: float, by: int = 1) -> None:
    """Add what members of rings send to the next but so many, runs of members given."""
    np.add.at(between, (run, np.roll(run, -by, axis=1)), sent)


class _Walk:
    """Runs that change hosts.

    Parameters
    ----------
    host, length : ndarray, shape (N,)
        Of each run; those of no ranks are for hosts that are left out.
    between : ndarray, shape (S, N, N), bytes
        Sent in a step.
    """

    def __init__(
        self, seats: Seats, host: IntArray, length: IntArray, between: FloatArray
    ) -> None:
        self.seats, self.host, self.length = seats, host.copy(), length
        self.both = between + between.transpose(0, 2, 1)
        # What each run sends, and what passes between it and each domain.
        self.sent = between.sum(axis=2)
        self.rng = np.random.default_rng(seats.problem.seed)
        inside = np.zeros((len(host), len(seats.uplink)))
        for home in seats.home:
            inside[np.arange(len(host)), home[host]] = 1.0
        self.near = self.both @ inside
        kept = (self.near * inside).sum(axis=1) / 2
        self.load = self.sent @ inside - kept

    def go(self, budget: Budget) -> IntArray:
        """The best hosts, after changes that are colder and colder; shape (N,)."""
        hosts = len(self.host)
        energy = least = self._energy()
        scale, best = energy, self.host.copy()
        changes = min(CHANGES * hosts, MOST_CHANGES)
        for heat in cooling(HOT, COLD, changes, budget, LOOK):
            one, other = self.rng.integers(hosts, size=2).tolist()
            most = min(abs(one - other), hosts - max(one, other))
            number = min(int(self.rng.geometric(1 / SOME)), most)
            ones = np.arange(one, one + number)
            others = np.arange(other, other + number)
            if not number or not self._fit(ones, others):
                continue
            before = self.load.copy()
            self._exchange(ones, others)
            after = self._energy()
            if not accepts(after - energy, scale * heat, self.rng.random):
                self._exchange(ones, others)
                self.load = before
                continue
            energy = after
            if energy < least:
                least, best = energy, self.host.copy()
        return best

    def _fit(self, ones: IntArray, others: IntArray) -> bool:
        """Whether the hosts of runs have room for as many others, one by one."""
        room, length = self.seats.room[self.host], self.length
        is_held = (length[ones] <= room[others]) & (length[others] <= room[ones])
        return bool(is_held.all())

    def _energy(self) -> float:
        """Seconds of the busiest uplink, nearly, summed over sorts of traffic."""
        seconds = self.load / self.seats.uplink
        top = seconds.max(axis=1)
        share = seconds / np.where(top > 0, top, 1.0)[:, None]
        return float((top * (share**POWER).sum(axis=1) ** (1 / POWER)).sum())

    def _exchange(self, ones: IntArray, others: IntArray) -> None:
        """Runs change hosts with as many others, one by one."""
        sent, near = self.sent, self.near
        for one, other in zip(ones.tolist(), others.tolist(), strict=True):
            between = self.both[:, one, other]
            more = sent[:, other] - sent[:, one]
            change = self.both[:, other] - self.both[:, one]
            for home in self.seats.home:
                here, there = home[self.host[one]], home[self.host[other]]
                if here == there:
                    continue
                self.load[:, here] += (
                    between + more + near[:, one, here] - near[:, other, here]
                )
                self.load[:, there] += (
                    between - more + near[:, other, there] - near[:, one, there]
                )
                near[:, :, here] += change
                near[:, :, there] -= change
            self.host[[one, other]] = self.host[[other, one]]
