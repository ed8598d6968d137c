"""Runs of ranks on hosts, of such lengths as the bounds ask for.

Groups that hosts cannot all hold whole are cut where runs end. The bound on the step
time (`run_patterns.py`) knows the parts that a replica has if it is to be fast, that on
the hop cost (`hop_runs.py`) which edges it is cheapest to cut, and both know which
lengths runs then have. Hosts that hold so many ranks take the runs in turn, along the
tree.

Shapes: M runs, R ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.bounds.cut import hop_runs
from placer.solve.bounds.time import run_patterns
from placer.solve.construct.cut_at_nodes import in_turn
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]

NAME = "runs as long as the bound asks for"


def asked_runs(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Runs with which no replica waits for long, or with the fewest edges cut."""
    if problem.forced_block or (problem.job.model is None and not problem.job.weights):
        return
    of = _for_time if problem.goal.name == "time" else _for_hop_cost
    gpu_of_rank = of(problem)
    if gpu_of_rank is not None:
        incumbent.offer(NAME, gpu_of_rank)


def _for_time(problem: Problem) -> IntArray | None:
    """GPU of every rank for the parts that the slowest replica should have."""
    patterns = run_patterns(problem)
    lengths = patterns.lengths() if patterns is not None else None
    if patterns is None or lengths is None:
        return None
    tier = problem.model.fabric.scale_up_tier
    hosts = _along_tree(problem, tier)
    host_of_rank = np.repeat(hosts_for(lengths, hosts, patterns.gpus), lengths)
    return in_turn(problem.machine.domain_of_gpu[tier], host_of_rank)


def _for_hop_cost(problem: Problem) -> IntArray | None:
    """GPU of every rank for the fewest edges that hosts and their islands cut."""
    runs, machine = hop_runs(problem), problem.machine
    asked = runs.hosts_in_turn() if runs is not None else None
    if runs is None or asked is None:
        return None
    inner = runs.tiers[0]
    home = machine.domain_of_node[machine.node_tier]
    domain, first = np.unique(machine.domain_of_node[inner], return_index=True)
    gpus = np.bincount(machine.domain_of_gpu[inner])
    free: dict[tuple[int, ...], list[IntArray]] = {}
    for host in _along_tree(problem, machine.node_tier)[::-1].tolist():
        islands = domain[home[first] == host]
        free.setdefault(tuple(gpus[islands].tolist()), []).append(islands)
    held = [
        np.repeat(free[sort].pop(), lengths) for sort, lengths in asked if sum(lengths)
    ]
    return in_turn(machine.domain_of_gpu[inner], np.concatenate(held))


def _along_tree(problem: Problem, tier: int) -> IntArray:
    """Domains of a tier along the machine's tree."""
    machine = problem.machine
    order = machine.domain_of_node[tier][tree_order(machine)]
    return np.array([*dict.fromkeys(order.tolist())])


def hosts_for(lengths: IntArray, hosts: IntArray, gpus: IntArray) -> IntArray:
    """The host of each run, those of a size in turn; small ones for what they hold.

    Parameters
    ----------
    lengths : ndarray, shape (M,)
        Of runs that the hosts can hold.
    hosts : ndarray, shape (N,)
        In the order in which they are taken.
    gpus : ndarray, shape (N,)
        Of each host by number.
    """
    sizes = np.unique(gpus)
    wanted = np.searchsorted(sizes, lengths)
    found = np.empty_like(lengths)
    for sort, size in enumerate(sizes.tolist()):
        runs = np.flatnonzero(wanted == sort)
        free = hosts[gpus[hosts] == size]
        over = len(runs) - len(free)
        if over > 0:
            # Larger hosts take some of the runs, here and there.
            later = np.linspace(0, len(runs) - 1, over).astype(np.int64)
            wanted[runs[later]] += 1
            runs = np.delete(runs, later)
        found[runs] = free[: len(runs)]
    return found
