"""Runs of ranks with which the slowest replica is as fast as can be.

Groups that nodes cannot all hold whole are cut where nodes end. The bound on the step
time (`run_patterns.py`) knows the parts that a replica has if it is to be fast, and
which lengths runs then have. Nodes that hold so many ranks take the runs in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.bounds.time import run_patterns
from placer.solve.construct.cut_at_nodes import in_turn
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]


def patterned_runs(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Runs with the parts of groups that the bound asks for."""
    if problem.goal.name != "time" or problem.forced_block:
        return
    patterns, machine = run_patterns(problem), problem.machine
    lengths = patterns.lengths() if patterns is not None else None
    if patterns is None or lengths is None:
        return
    tier = problem.model.fabric.scale_up_tier
    host_of_node = machine.domain_of_node[tier]
    hosts = np.array([*dict.fromkeys(host_of_node[tree_order(machine)].tolist())])
    taken = hosts_for(lengths, hosts, patterns.gpus)
    host_of_rank = np.repeat(taken, lengths)
    gpu_of_rank = in_turn(machine.domain_of_gpu[tier], host_of_rank)
    incumbent.offer("runs with parts for the slowest replica", gpu_of_rank)


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
