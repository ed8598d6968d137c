"""Transfers between racks: runs of ranks so dealt out that partners are near.

A program counts which sorts of runs the domains hold (`domain_runs`). Here they become
ranks: runs of alike domains are dealt out evenly, and laid end to end along each
stretch of ranks, as an Eulerian walk over the places of its period (Hierholzer 1873).
Shapes: R ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, cycle
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.transfers.transfers import transfers_of
from placer.solve.construct.transfers.domain_runs import DomainRuns
from placer.solve.construct.transfers.run_sorts import Sorts
from placer.solve.count.deal import circuit
from placer.solve.tree.in_runs import fill_in_runs

if TYPE_CHECKING:
    from placer.solve.construct.transfers.domain_runs import Held
    from placer.solve.construct.transfers.run_sorts import Run, Sort, Stretch
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

Placed = tuple["Run", int]  # and its domain


def held_runs(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Runs that meet the needs of the least transfers that the bound allows."""
    if problem.goal.name != "time":
        return
    transfers = transfers_of(problem)
    runs = DomainRuns.of(problem)
    if transfers is None or runs is None:
        return
    machine, times, most = problem.machine, transfers.times, problem.params.run_kinds
    # The fewest kinds have needs at the longest time at which there are any.
    if len(times) > 1 and len(transfers.kinds(float(times[-2]))) > most:
        return
    least = transfers.least(incumbent.value, budget=budget)
    kinds = transfers.kinds(float(times[least]))
    held = runs.held(kinds, budget)
    if held is None:
        return
    domain_of_rank = _laid(Sorts.of(kinds).stretches, held)
    if domain_of_rank is None:
        return
    domain = machine.domain_of_node[problem.model.fabric.scale_up_tier]
    node = fill_in_runs(domain, machine.gpus_of_node, domain_of_rank)
    if node is not None:
        name = "runs that have partners near"
        incumbent.offer(name, machine.gpus_on(node))


def _laid(stretches: list[Stretch], held: list[Held]) -> IntArray | None:
    """Domain of each rank; None where runs make several closed walks, not one."""
    begins: defaultdict[int, dict[int, list[Placed]]] = defaultdict(dict)
    onward: dict[int, list[Placed]] = {}
    for sort, domain in chain.from_iterable(map(_dealt, held)):
        if len(sort) > 1:
            onward[sort[0].first] = [(run, domain) for run in sort]
        else:
            run = sort[0]
            begins[run.first].setdefault(run.begin, []).append((run, domain))
    walked: list[Placed] = []
    for stretch in stretches:
        ahead = sum(run.length for run, _ in walked) - stretch.first
        own, period = begins[stretch.first], stretch.period
        laid = circuit(own, lambda placed: placed[0].length, period, ahead % period)
        walked += [placed for _, placed in laid]
        walked += onward.get(stretch.first, [])
    found = np.concatenate([np.repeat(domain, run.length) for run, domain in walked])
    return found if len(found) == sum(one.length for one in stretches) else None


def _dealt(held: Held) -> Iterator[tuple[Sort, int]]:
    """Runs of alike domains, those of each sort in turn."""
    each = chain.from_iterable([sort] * n for sort, n in sorted(held.runs.items()))
    return zip(each, cycle(held.domains), strict=False)
