"""The least hop cost inside hosts where each of them holds one run of ranks.

Of an edge whose ends are in different runs the host of the first end pays the rise of
the distance at that tier. So what a run and its islands pay depends on its first rank,
by its place in a block of all axes, and on its length. Groups of which no run holds two
ranks have all edges cut. Hosts with equal islands are a *sort*; `run_program.py` counts
hosts by sort, place and length. Where runs follow each other, all in one circuit from
place 0, they are a placement. Long groups are taken to go on without an end, and what
edges that are not there weigh is taken off again. See docs/method.md, "What runs cut
inside hosts, exactly".

Shapes: B ranks of a block, L ranks of the longest run, S sorts of hosts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.job.edges import hop_edges
from placer.solve.bounds.groups.run_program import RunColumn, consecutive, run_program
from placer.solve.count.deal import circuit
from placer.solve.count.engine import Answer, Limits, solve
from placer.solve.problem.launch import run_tiers
from placer.solve.tree.capacity import ancestor_of_domain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.job.model import Job
    from placer.topology.machine import Machine

Sizes = tuple[int, ...]

MOST = 1 << 13  # columns of a program: larger ones are left out
WORK = 1_000  # nodes of the tree of a program


@dataclass(frozen=True, eq=False)
class HopRuns:
    """Ways of a job through the hosts of a machine.

    Attributes
    ----------
    sorts : list of tuple of int
        GPUs of each island of a host.
    hosts : ndarray, shape (S,)
        How many hosts are of each sort.
    cost : ndarray, shape (S, B, L)
        What a host of each sort pays that holds a run; inf where it cannot.
    near : ndarray, shape (B, L + 1)
        What an island pays.
    far : float
        What edges pay that are longer than any run.
    ranks : int
        Of the job.
    tiers : tuple of int
        On which these costs arise.
    """

    sorts: list[Sizes]
    hosts: IntArray
    cost: FloatArray
    near: FloatArray
    far: float
    ranks: int
    tiers: tuple[int, ...]

    @classmethod
    def of(
        cls, topology: Machine, job: Job, rises: FloatArray, label: IntArray
    ) -> HopRuns | None:
        """Of a launch by nodes; None for others, and where there are too many sorts.

        Parameters
        ----------
        rises : ndarray, shape (T - 1,)
            Of the distance at each tier, none below 0.
        label : ndarray, shape (R,)
            Set of each rank that shares a host.
        """
        host = topology.node_tier
        islands = host == 1 and 0 in run_tiers(topology)
        if job.launcher == "free" or host >= len(rises):
            return None
        kinds = Counter(_islands_of(topology, 0 if islands else host))
        gpus = np.bincount(topology.domain_of_gpu[host])
        longest = min(int(gpus.max()), job.world_size)
        grain = consecutive(label)
        # The longest groups lose the least, one after the other.
        axes = sorted((axis for axis, *_ in hop_edges(job)), key=job.parallelism.size)
        for ended in range(len(axes), -1, -1):
            cut, far = cut_by_runs(job, longest, axes[ended:])
            own = grain if len(cut) % grain == 0 else 1
            if len(kinds) * (len(cut) // own) * (longest // own) <= MOST:
                break
        else:
            return None
        near = cut * rises[0 if islands else host]
        cost = np.array([_of_host(near, sizes) for sizes in kinds])
        cost = cost[:, :, 1:] + (cut * rises[host])[:, 1:] * islands
        begin, length = np.arange(len(cut))[:, None], np.arange(1, longest + 1)
        cost[:, (begin % own > 0) | (length % own > 0)] = np.inf
        if len(cut) == job.world_size:  # no run goes on past the only block
            cost[:, begin + length > len(cut)] = np.inf
        tiers = (0, host) if islands else (host,)
        return cls(
            [*kinds],
            np.array([*kinds.values()]),
            cost,
            near,
            far * float(rises[[*tiers]].sum()),
            job.world_size,
            tiers,
        )

    @cached_property
    def least(self) -> float:
        """What all hosts pay at the least."""
        answer, _ = self._answer
        if answer.is_proved and answer.counts is None:
            return 0.0  # the ranks do not fit: others say so
        return max(0.0, self.far + max(0.0, answer.bound))

    def hosts_in_turn(self) -> list[tuple[Sizes, Sizes]] | None:
        """GPUs of each island of hosts that pay so much, and the ranks that they hold.

        One host after the other holds all ranks. None where no circuit is known.
        """
        answer, columns = self._answer
        if answer.counts is None:
            return None
        ahead: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (sort, begin, length), count in zip(columns, answer.counts, strict=True):
            ahead[begin] += [(sort, length)] * count
        hosts = circuit(ahead, itemgetter(1), len(self.near))
        if sum(length for _, (_, length) in hosts) < self.ranks:
            return None
        return [
            (self.sorts[sort], _held(self.near, self.sorts[sort], begin, length))
            for begin, (sort, length) in hosts
        ]

    @cached_property
    def _answer(self) -> tuple[Answer, list[RunColumn]]:
        """What the program finds, and the sort, place and length of each column."""
        program, columns = run_program(self.cost, self.hosts, self.ranks)
        return solve(program, Limits(WORK, engine="highs")), columns


def _islands_of(topology: Machine, tier: int) -> Iterator[Sizes]:
    """GPUs of the domains of a tier on each host, in order."""
    home = ancestor_of_domain(topology, tier, topology.node_tier)
    gpus = np.bincount(topology.domain_of_gpu[tier])
    for host in range(int(home.max()) + 1):
        yield tuple(gpus[home == host].tolist())


def cut_by_runs(
    job: Job, longest: int, endless: Sequence[str] = ()
) -> tuple[FloatArray, float]:
    """Weight of edges that a run cuts, and that begin in it, (B, L + 1); of all others.

    Runs begin at each place of a block, and have each length from 0 on. An edge begins
    at the lower one of its ranks. The others are longer than any run. Groups of some
    axes are taken to be endless.
    """
    world, far = job.world_size, 0.0
    near = np.zeros((world, longest))
    for axis, weight, edges in hop_edges(job):
        low, high = np.sort(edges, axis=1).T
        is_near = high - low < longest
        far += weight * float((~is_near).sum())
        own = np.zeros((world, longest))
        np.add.at(own, (high[is_near], (high - low)[is_near]), weight)
        if axis in endless:
            whole = np.broadcast_to(own.max(axis=0), own.shape)
            far -= float((whole - own).sum())
            own = whole
        near += own
    near = near[: _block_of(near)]
    block = len(near)
    begun = np.zeros(block)
    for apart in range(1, longest):
        begun += np.roll(near[:, apart], -apart)
    # Of edges that end at a rank: those that begin at most so many ranks before.
    ended = np.cumsum(near, axis=1)
    found = np.zeros((block, longest + 1))
    for length in range(1, longest + 1):
        last = (np.arange(block) + length - 1) % block
        more = begun[last] - ended[last, length - 1]
        found[:, length] = found[:, length - 1] + more
    return found, far


def _block_of(near: FloatArray) -> int:
    """The least number of ranks after which all edges are as before."""
    world = len(near)
    sizes = (size for size in range(1, world) if world % size == 0)
    for size in sizes:
        of_block = near.reshape(-1, size, near.shape[1])
        if (of_block == of_block[0]).all():
            return size
    return world


def _of_host(near: FloatArray, sizes: Sizes) -> FloatArray:
    """What the islands of a host pay for a run of each place and length, (B, L + 1)."""
    found = np.full_like(near, np.inf)
    found[:, 0] = 0.0
    for room in sizes:
        before, found = found, found.copy()
        for length in range(1, min(room, near.shape[1] - 1) + 1):
            for begun in range(near.shape[1] - length):
                # The island begins where those before it end.
                own = np.roll(near[:, length], -begun)
                held = found[:, begun + length]
                np.minimum(held, before[:, begun] + own, out=held)
    return found


def _held(near: FloatArray, sizes: Sizes, begin: int, length: int) -> Sizes:
    """Ranks that each island of a host holds of a run, as cheap as can be."""
    if len(sizes) == 1:
        return (length,)
    ways: dict[int, tuple[float, Sizes]] = {0: (0.0, ())}
    for room in sizes:
        longer: dict[int, tuple[float, Sizes]] = {}
        for begun, (paid, held) in ways.items():
            for more in range(min(room, length - begun) + 1):
                cost = paid + float(near[(begin + begun) % len(near), more])
                known = longer.get(begun + more)
                if known is None or cost < known[0]:
                    longer[begun + more] = cost, (*held, more)
        ways = longer
    return ways[length][1]
