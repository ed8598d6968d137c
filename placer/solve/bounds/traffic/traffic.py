"""Bounds on the step time that traffic between ranks sets.

Each argument says how long all traffic takes at the least; no step is shorter than one
with traffic as slow, and all else at its best. Ranks that need partners near also crowd
others out, so what else a step has is priced for every time that transfers may take.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.bounds import Proof
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.bounds.network.near import Near
from placer.solve.bounds.traffic.company import least_in_company
from placer.solve.bounds.traffic.two_sides import least_between_sides
from placer.solve.bounds.transfers.run_transfers import least_in_runs
from placer.solve.bounds.transfers.transfers import (
    kept_near,
    near_levels,
    transfers_each_way,
)

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.bounds.transfers.transfers import Transfers
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

# Least seconds of all traffic on the best network for every placement.
Argument = Callable[["IdealNetwork", "RankTraffic", "Params", "Budget"], float]

ARGUMENTS: tuple[tuple[Argument, str], ...] = (
    (
        least_in_runs,
        "every host holds one run of consecutive ranks, all others are far",
    ),
    (
        least_in_company,
        "of the ranks of a scale-up domain one keeps its NIC busy so long, with those "
        "outside",
    ),
    (
        least_between_sides,
        "uplinks carry what domains send of two sides that they must hold together",
    ),
)


def least_of_traffic(
    model: StepModel, network: IdealNetwork, params: Params, budget: Budget
) -> Proof | None:
    """Least step time with traffic as slow as any argument says; None without any.

    When the budget ends, those before it are all.
    """
    traffic = model.job.traffic
    if traffic is None:
        return None
    found = [(0.0, "")]
    for least, text in ARGUMENTS:
        if not budget.is_over():
            found.append((least(network, traffic, params, budget), text))
    seconds, argument = max(found)
    return Proof(step_with(model, network, seconds), argument)


def step_with(model: StepModel, network: IdealNetwork, seconds: float) -> float:
    """Least step time with traffic that takes so long, s."""
    return model.step_on(replace(network, near=Near(seconds))).step_time_s


def beside_partners(
    problem: Problem, block: int, known: Proof, incumbent: float, budget: Budget
) -> Proof:
    """Least step time of all times that transfers may take, where more than known.

    It is less, or what is known, when the budget ends first.
    """
    network, found = best_of_problem(problem, block), [0.0]

    def step_s(near: Near) -> float:
        return problem.model.step_on(replace(network, near=near)).step_time_s

    def says_more(transfers: Transfers, index: int) -> bool:
        seconds = float(transfers.times[index])
        return step_s(kept_near(transfers.directions, seconds, seconds)) > known.value

    for transfers in filter(None, transfers_each_way(problem, block)):
        times = range(int(np.searchsorted(transfers.times, incumbent)))
        first = bisect_left(times, True, key=partial(says_more, transfers))
        if not first or not transfers.may_keep_to(first - 1, budget):
            levels = near_levels(
                transfers, incumbent, problem.params.near_levels, first, budget
            )
            found.append(min(incumbent, *map(step_s, levels)))
    if max(found) <= known.value:
        return known
    argument = (
        "ranks that their NIC would keep too long have partners near, which take room "
        "in scale-up domains"
    )
    return Proof(max(found), argument)
