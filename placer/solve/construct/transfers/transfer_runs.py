"""Transfers between hosts: the runs of ranks that keep most partners together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.solve.bounds.transfers.run_transfers import run_transfers
from placer.solve.tree.fill import in_turn

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent


def transfer_runs(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Ranks in order on hosts, cut where the transfers then take the least time.

    The longest runs are on the largest hosts; alike hosts are taken in order.
    """
    if problem.goal.name != "time":
        return
    runs = run_transfers(problem)
    lengths = runs.lengths() if runs is not None else None
    if lengths is None:
        return
    machine, tier = problem.machine, problem.model.fabric.scale_up_tier
    host_of_gpu = machine.domain_of_gpu[tier]
    room = np.bincount(host_of_gpu)
    hosts = np.argsort(-room, kind="stable")[: len(lengths)]
    longest_first = np.argsort(-lengths, kind="stable")
    host_of_run = np.empty(len(lengths), dtype=np.int64)
    host_of_run[longest_first] = hosts
    for size in np.unique(room[hosts]):
        alike = room[host_of_run] == size
        host_of_run[alike] = np.sort(host_of_run[alike])
    gpu_of_rank = in_turn(host_of_gpu, np.repeat(host_of_run, lengths))
    incumbent.offer("runs that keep partners together", gpu_of_rank)
