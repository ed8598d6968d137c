"""Placements for machines whose hosts are not alike.

Slow hosts stay idle where the others hold the job. Where they do not, hosts are filled
from the fastest to the slowest, so that the slow ones share stages and pipelines: a
stage is as slow as its slowest GPU, and a step as its slowest replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.construct.fills.fills import fullest_fills, nested_fills
from placer.solve.problem.starts import starts
from placer.solve.problem.submachine import Submachine

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent


def fastest_first(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Hosts from the fastest to the slowest, those that are not needed left out."""
    incumbent.offer_all(fastest_fills(problem))


def fastest_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) on the fastest hosts, for each speed to stop at."""
    machine = problem.machine
    if problem.goal.name != "time" or machine.compute_factor is None:
        return
    speed = machine.speed_of_node
    fastest = np.lexsort((np.arange(len(speed)), -speed))
    for slowest in np.unique(speed)[::-1].tolist():
        nodes = fastest[speed[fastest] >= slowest]
        if machine.gpus_of_node[nodes].sum() < problem.job.world_size:
            continue
        part = Submachine(machine, machine.select(nodes), nodes)
        own = problem.on(part.topology, problem.job)
        fills = islice(nested_fills(own), problem.fills_priced)
        for name, gpu_of_rank in chain(starts(own), fullest_fills(own), fills):
            yield f"{name}, fastest hosts first", part.gpu_in_whole(gpu_of_rank)
