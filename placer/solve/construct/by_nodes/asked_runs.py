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

from placer.arrays import BoolArray, IntArray
from placer.solve.bounds.case import cut_by_runs
from placer.solve.tree.capacity import parent_of_domain
from placer.solve.tree.fill import in_tree_order, in_turn

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

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
    cut = cut_by_runs(problem)
    patterns = cut.run_patterns if cut is not None else None
    lengths = patterns.lengths() if patterns is not None else None
    if patterns is None or lengths is None:
        return None
    return on_hosts(problem, lengths, patterns.size)


def on_hosts(problem: Problem, lengths: IntArray, size: int) -> IntArray:
    """GPU of every rank for runs that scale-up domains can hold.

    Parameters
    ----------
    lengths : ndarray, shape (M,)
        Of the runs.
    size : int
        Ranks of the groups that should be cut inside one outer domain.
    """
    machine, tier = problem.machine, problem.model.fabric.scale_up_tier
    is_end = np.cumsum(lengths) % size == 0
    outer = parent_of_domain(machine, min(tier + 1, len(machine.tiers) - 1))
    gpus = np.bincount(machine.domain_of_gpu[tier])
    hosts = hosts_for(lengths, is_end, gpus, outer)
    return in_turn(machine.domain_of_gpu[tier], np.repeat(hosts, lengths))


def _for_hop_cost(problem: Problem) -> IntArray | None:
    """GPU of every rank for the fewest edges that hosts and their islands cut."""
    from placer.solve.bounds.hops.hop_cuts import hop_runs

    runs, machine = hop_runs(problem), problem.machine
    asked = runs.hosts_in_turn() if runs is not None else None
    if runs is None or asked is None:
        return None
    inner = runs.tiers[0]
    home = machine.domain_of_node[machine.node_tier]
    domain, first = np.unique(machine.domain_of_node[inner], return_index=True)
    gpus = np.bincount(machine.domain_of_gpu[inner])
    free: dict[tuple[int, ...], list[IntArray]] = {}
    for host in in_tree_order(machine, machine.node_tier)[::-1].tolist():
        islands = domain[home[first] == host]
        free.setdefault(tuple(gpus[islands].tolist()), []).append(islands)
    held = [
        np.repeat(free[sort].pop(), lengths) for sort, lengths in asked if sum(lengths)
    ]
    return in_turn(machine.domain_of_gpu[inner], np.concatenate(held))


def hosts_for(
    lengths: IntArray, is_end: BoolArray, gpus: IntArray, outer: IntArray
) -> IntArray:
    """The host of each run; those of groups that are cut lie in one outer domain.

    Where no outer domain has hosts for them any more they lie in several. Where small
    hosts are used up by then, the longest runs of all take the largest hosts.

    Parameters
    ----------
    lengths : ndarray, shape (M,)
        Of runs that the hosts can hold.
    is_end : ndarray of bool, shape (M,)
        Whether a group ends with the run.
    gpus, outer : ndarray, shape (N,)
        Of each host: its GPUs, and the domain around it.
    """
    by_size = np.argsort(gpus, kind="stable").tolist()
    free: dict[int, list[int]] = {}
    for host in by_size:
        free.setdefault(int(outer[host]), []).append(host)
    found, last = np.empty_like(lengths), int(outer[0])
    for runs in np.split(np.arange(len(lengths)), np.flatnonzero(is_end)[:-1] + 1):
        by_length = runs[np.argsort(-lengths[runs], kind="stable")]
        # The domain that was last filled, then those with the least left.
        for domain in sorted(free, key=lambda one: (one != last, len(free[one]))):
            taken = _first_with_room(lengths[by_length], free[domain], gpus)
            if taken is not None:
                last = domain
                break
        else:
            by_length = runs  # those that follow each other in one domain if possible
            anywhere = [host for hosts in free.values() for host in hosts]
            taken = _first_with_room(lengths[by_length], anywhere, gpus)
        if taken is None:
            found[np.argsort(-lengths)] = np.argsort(-gpus)[: len(lengths)]
            return found
        found[by_length] = taken
        for host in taken:
            free[int(outer[host])].remove(host)
    return found


def _first_with_room(
    lengths: IntArray, hosts: list[int], gpus: IntArray
) -> list[int] | None:
    """The first of some hosts with room for each run in turn; None if too few."""
    left, taken = list(hosts), []
    for length in lengths.tolist():
        fits = next((host for host in left if gpus[host] >= length), None)
        if fits is None:
            return None
        left.remove(fits)
        taken.append(fits)
    return taken
