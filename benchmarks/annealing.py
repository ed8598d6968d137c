"""Simulated annealing with code of its own, on the objective itself.

Two units of as many ranks change places, or a unit goes to free GPUs of a node. A unit
is a rank, a tensor parallel group or a whole stage; where nodes hold consecutive ranks,
it is all ranks of a node. On hop cost the edges of both are priced, on time the step.

Shapes: R ranks, D neighbours at most, T tiers, U units.
"""

from __future__ import annotations

from math import exp
from time import process_time
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.step import StepModel
from placer.job.edges import hop_edges

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

NAME = "annealing"
# Moves tried to learn what one costs; heat at the start and the end, relative to that.
SAMPLE, HEAT = 40, (0.5, 0.003)
TO_FREE = 0.2  # share of moves


def annealed(
    topology: Topology,
    job: Job,
    objective: str,
    start: IntArray,
    seconds: float,
    seed: int = 0,
) -> IntArray:
    """The best placement met in so many seconds of CPU; shape (R,).

    Parameters
    ----------
    topology : Topology
    job : Job
    objective : str
        ``hop-cost`` or ``time``.
    start : ndarray, shape (R,)
        A legal placement.
    seconds : float, s
    seed : int
    """
    rng = np.random.default_rng(seed)
    began = process_time()
    price = (_HopPrice if objective == "hop-cost" else _StepPrice)(topology, job, start)
    moves = _Moves(topology, job, start, rng)
    sampled = [abs(price.delta(*moves.draw())) for _ in range(SAMPLE)]
    usual = float(np.median([one for one in sampled if one > 0] or [0.0]))
    cost = lowest = 0.0
    best = start
    while (done := (process_time() - began) / seconds) < 1:
        heat = usual * HEAT[0] * (HEAT[1] / HEAT[0]) ** done
        ranks, gpus = moves.draw()
        delta = price.delta(ranks, gpus)
        if delta > 0 and (heat <= 0 or rng.random() >= exp(-delta / heat)):
            continue
        price.move(ranks, gpus)
        moves.move(ranks, gpus)
        cost += delta
        if cost < lowest - 1e-12 * abs(price.start):
            lowest, best = cost, price.gpu_of_rank.copy()
    return best


class _Moves:
    """Exchanges that keep what the start keeps."""

    def __init__(
        self, topology: Topology, job: Job, start: IntArray, rng: np.random.Generator
    ) -> None:
        self.rng, self.gpu_of_rank = rng, start.copy()
        self.node_of_gpu = topology.node_of_gpu
        self.is_free = np.ones(topology.num_gpus, dtype=bool)
        self.is_free[start] = False
        self.levels = _levels(topology, job, start)
        tier = _tier_of_tp(topology, job)
        self.domain_of_gpu = topology.domain_of_gpu[tier]

    def draw(self) -> tuple[IntArray, IntArray]:
        """Ranks that move, and the GPUs they go to."""
        units = self.levels[self.rng.integers(len(self.levels))]
        first = units[self.rng.integers(len(units))]
        if self.rng.random() < TO_FREE:
            seats = self._free(len(first))
            if seats is not None:
                return first, seats
        second = units[self.rng.integers(len(units))]
        if first[0] == second[0]:
            return first[:0], first[:0]
        ranks = np.concatenate((first, second))
        gpus = self.gpu_of_rank[np.concatenate((second, first))]
        return ranks, gpus

    def _free(self, size: int) -> IntArray | None:
        """GPUs of one domain that are free, None where too few are."""
        free = np.flatnonzero(self.is_free)
        if len(free) < size:
            return None
        domain = self.domain_of_gpu[free[self.rng.integers(len(free))]]
        here = free[self.domain_of_gpu[free] == domain]
        return here[:size] if len(here) >= size else None

    def move(self, ranks: IntArray, gpus: IntArray) -> None:
        """Make the move."""
        self.is_free[self.gpu_of_rank[ranks]] = True
        self.is_free[gpus] = False
        self.gpu_of_rank[ranks] = gpus


def _levels(topology: Topology, job: Job, start: IntArray) -> list[IntArray]:
    """Units of every size that may change places, each (U, ranks of a unit)."""
    axes = job.parallelism
    if job.launcher != "free":
        node = topology.node_of_gpu[start]
        by_node = np.argsort(node, kind="stable")
        held = np.split(by_node, np.flatnonzero(np.diff(node[by_node])) + 1)
        sizes = {len(one) for one in held}
        levels = [np.array([u for u in held if len(u) == s]) for s in sorted(sizes)]
        return [units for units in levels if len(units) > 1]
    stage = max(axes.tp * axes.cp, axes.etp * axes.ep)
    sizes = {axes.tp, axes.tp * axes.cp, stage, stage * 2, stage * 8}
    ranks = np.arange(job.world_size)
    return [
        ranks.reshape(-1, size)
        for size in sorted(sizes)
        if job.world_size % size == 0 and job.world_size > size
    ]


def _tier_of_tp(topology: Topology, job: Job) -> int:
    """Tier whose domains must hold a unit that goes to free GPUs."""
    names = [tier.name for tier in topology.tiers]
    if job.launcher != "free" or "tp" not in job.require:
        return 0
    return names.index(job.require["tp"])


class _HopPrice:
    """Hop cost by the edges of the ranks that move."""

    def __init__(self, topology: Topology, job: Job, start: IntArray) -> None:
        edges = [(a.weight, a.edges) for a in hop_edges(job)]
        ends = np.concatenate([pair for _, pair in edges])
        weight = np.concatenate([np.full(len(pair), w) for w, pair in edges])
        source = ends.T.ravel()
        order = np.argsort(source, kind="stable")
        degree = np.bincount(source, minlength=job.world_size)
        column = np.arange(len(source)) - np.repeat(np.cumsum(degree) - degree, degree)
        self.other = np.zeros((job.world_size, int(degree.max())), dtype=np.int64)
        self.weight = np.zeros(self.other.shape)
        self.other[source[order], column] = ends[:, ::-1].T.ravel()[order]
        self.weight[source[order], column] = np.tile(weight, 2)[order]
        self.domain = np.ascontiguousarray(topology.domain_of_gpu[:-1])
        self.distance = np.array([tier.distance for tier in topology.tiers])
        self.gpu_of_rank = start.copy()
        self.moves_too = np.ones(job.world_size)
        every = np.arange(job.world_size)
        self.start = 0.5 * self._cost(every)

    def _cost(self, ranks: IntArray) -> float:
        """Cost of the edges of some ranks, those between two of them once."""
        at = self.gpu_of_rank
        own = self.domain[:, at[ranks], None]
        apart = own != self.domain[:, at[self.other[ranks]]]
        hops = self.distance[apart.sum(axis=0)]
        shares = self.weight[ranks] * self.moves_too[self.other[ranks]]
        return float((hops * shares).sum())

    def delta(self, ranks: IntArray, gpus: IntArray) -> float:
        """What the move adds to the cost."""
        self.moves_too[ranks] = 0.5
        before, old = self._cost(ranks), self.gpu_of_rank[ranks]
        self.gpu_of_rank[ranks] = gpus
        after = self._cost(ranks)
        self.gpu_of_rank[ranks] = old
        self.moves_too[ranks] = 1.0
        return after - before

    def move(self, ranks: IntArray, gpus: IntArray) -> None:
        """Make the move."""
        self.gpu_of_rank[ranks] = gpus


class _StepPrice:
    """Step time, priced in full."""

    def __init__(self, topology: Topology, job: Job, start: IntArray) -> None:
        self.model = StepModel(topology, job)
        self.gpu_of_rank = start.copy()
        self.start = self.value = self.model.step(start).step_time_s
        self.last = self.value

    def delta(self, ranks: IntArray, gpus: IntArray) -> float:
        """What the move adds to the step, s."""
        changed = self.gpu_of_rank.copy()
        changed[ranks] = gpus
        self.last = self.model.step(changed).step_time_s
        return self.last - self.value

    def move(self, ranks: IntArray, gpus: IntArray) -> None:
        """Make the move that was priced last."""
        self.gpu_of_rank[ranks] = gpus
        self.value = self.last
