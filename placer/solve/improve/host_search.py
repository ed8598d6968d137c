"""Local search on step time where groups that hosts cut lie in several outer domains.

In a launch by nodes a group that one host does not hold lies on hosts that follow each
other in the order of ranks. Where these are in different racks it talks over uplinks,
maybe beside others. Hosts take each other's runs: any two, or one whose run then lies
in the rack of the other part of its group. Hosts are annealed (`launch_walk.py`),
unless no group can lie in fewer racks than it does.

Shapes: N hosts, R ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.improve.launch_walk import offer_walked

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

NAME = "hosts annealed"
TRIES = 40  # placements priced for each host, at most
ANYWHERE = 0.5  # share of changes that take any two hosts
MISSES = 50  # changes that are drawn for one that is priced


def hosts_annealed(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Bring the parts of groups together in fewer outer domains."""
    job, machine, best = problem.job, problem.machine, incumbent.gpu_of_rank
    if problem.goal.name != "time" or best is None or job.launcher == "free":
        return
    if machine.node_tier or len(machine.tiers) == 1:
        return
    axes = job.parallelism
    size = axes.tp * axes.cp if axes.tp * axes.cp > 1 else axes.etp * axes.ep
    search = _Search(problem, machine.node_of_gpu[best], size)
    if len(search.apart(search.home)) > search.fewest_apart:
        offer_walked(
            problem,
            incumbent,
            budget,
            NAME,
            search,
            search.home,
            TRIES * len(search.home),
        )


class _Search:
    """Runs and the hosts that hold them.

    Parameters
    ----------
    host_of_rank : ndarray, shape (R,)
    size : int
        Ranks of the groups that should not lie in several outer domains.
    """

    def __init__(self, problem: Problem, host_of_rank: IntArray, size: int) -> None:
        machine = problem.machine
        self.room = machine.gpus_of_node
        used, first, self.run = np.unique(
            host_of_rank, return_index=True, return_inverse=True
        )
        # Of every host: first those that hold the runs, then those that hold none.
        idle = np.setdiff1d(np.arange(len(self.room)), used)
        self.home = np.concatenate((used, idle))
        self.length = np.bincount(self.run, minlength=len(self.home))
        self.outer = machine.domain_of_node[1]
        begin = np.sort(first)[1:]
        begin = begin[begin % size != 0]
        self.joints = np.stack((self.run[begin - 1], self.run[begin]), axis=1)
        # A group on n hosts lies in n / most outer domains at least, one more than
        # there are places where it goes on in another.
        hosts = np.unique(begin // size, return_counts=True)[1] + 1
        most = np.bincount(self.outer).max()
        self.fewest_apart = int((-(-hosts // most) - 1).sum())
        self.rng = np.random.default_rng(problem.seed)

    def apart(self, home: IntArray) -> IntArray:
        """Pairs of runs with a group that lies in several outer domains; (J, 2)."""
        outer = self.outer[home[self.joints]]
        return np.asarray(self.joints[outer[:, 0] != outer[:, 1]])

    def nodes(self, home: IntArray) -> IntArray:
        """Host of every rank."""
        return np.asarray(home[self.run])

    def changed(self, home: IntArray) -> IntArray | None:
        """The hosts of all places, two exchanged; None for none found."""
        pair = self._drawn(home)
        if pair is None:
            return None
        other = home.copy()
        other[pair] = home[pair[::-1]]
        return other

    def _drawn(self, home: IntArray) -> IntArray | None:
        """Two places whose hosts may be exchanged; None for none found."""
        apart = self.apart(home)
        for _ in range(MISSES):
            pair = self.rng.integers(len(home), size=2)
            if len(apart) and self.rng.random() >= ANYWHERE:
                one, other = self.rng.permutation(self.rng.choice(apart))
                outer = self.outer[home]
                near = np.flatnonzero(outer == outer[other])
                # With each other's hosts the two would be as far apart.
                pair = np.array((one, self.rng.choice(near)))
                if pair[1] == other:
                    continue
            if self._may(home, pair):
                return pair
        return None

    def _may(self, home: IntArray, pair: IntArray) -> bool:
        """Whether two hosts in several outer domains have room for each other's run."""
        hosts = home[pair]
        fits = (self.length[pair] <= self.room[hosts[::-1]]).all()
        return bool(fits and self.outer[hosts[0]] != self.outer[hosts[1]])
