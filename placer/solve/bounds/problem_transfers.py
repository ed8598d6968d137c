"""The best network imaginable, and the transfers, of a problem.

Bound and constructions ask who needs partners near; it is worked out once.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from placer.solve.bounds import Proof
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.bounds.run_transfers import RunTransfers
from placer.solve.bounds.transfers import (
    Near,
    Transfers,
    kept_near,
    near_levels,
    one_way,
)
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.tree.capacity import node_capacity

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.solve.problem.compiled import Problem

IntArray = npt.NDArray[np.int64]

# By the ranks of a node that stay together.
_TRANSFERS: WeakKeyDictionary[Problem, dict[int, list[Transfers | None]]] = (
    WeakKeyDictionary()
)


def ideal_network(
    model: StepModel, colocation: Colocation, label: IntArray, capacity: IntArray
) -> IdealNetwork:
    """The best network for ranks that stay together as ``label`` says."""
    block = colocation.block
    network = IdealNetwork(model.fabric, label, capacity, block == 0, block != 1)
    at_most = model.job.rules.at_most
    if not at_most:
        return network
    # A domain lies in one of each tier further out, which may hold so many.
    most = [float(at_most.get(tier.name, np.inf)) for tier in model.topology.tiers]
    most = np.minimum.accumulate(most[::-1])[::-1].tolist()
    replica = model.job.parallelism.coordinates["dp"]
    return replace(network, replica=replica, most_replicas=tuple(most))


def ideal_of(problem: Problem, block: int) -> IdealNetwork:
    """The best network for placements of a problem, so many ranks on a node."""
    colocation = colocation_of(problem.machine, problem.job, block)
    capacity = node_capacity(problem.machine, block)
    return ideal_network(problem.model, colocation, colocation.label, capacity)


def run_transfers(problem: Problem) -> RunTransfers | None:
    """Transfers where each scale-up domain holds a run; None where they do not."""
    network = ideal_of(problem, problem.forced_block)
    return RunTransfers.of(network, problem.job.traffic)


def transfers_of(problem: Problem) -> Transfers | None:
    """Who needs partners near; None where nobody does."""
    found = _transfers(problem, problem.forced_block)
    return found[0] if found else None


def transfers_by_rank(problem: Problem) -> Transfers | None:
    """The same of ranks one by one, as if nothing kept them together."""
    traffic = problem.job.traffic
    if traffic is None:
        return None
    network = ideal_of(problem, problem.forced_block)
    alone = np.broadcast_to(np.arange(network.label.shape[1]), network.label.shape)
    return Transfers.of(replace(network, label=alone), traffic, problem.params)


def _transfers(problem: Problem, block: int) -> list[Transfers | None]:
    """All transfers of a problem, then each way by itself; worked out once."""
    known = _TRANSFERS.setdefault(problem, {})
    if block not in known:
        traffic = problem.job.traffic
        known[block] = []
        if traffic is not None:
            network = ideal_of(problem, block)
            known[block] = [
                Transfers.of(network, way, problem.params) for way in one_way(traffic)
            ]
    return known[block]


def beside_partners(
    problem: Problem, block: int, known: Proof, incumbent: float
) -> Proof:
    """Least step time of all times that transfers may take, where more than known."""
    network, found = ideal_of(problem, block), [0.0]

    def step_s(near: Near) -> float:
        return problem.model.step_on(replace(network, near=near)).step_time_s

    def says_more(transfers: Transfers, index: int) -> bool:
        seconds = float(transfers.times[index])
        return step_s(kept_near(transfers.directions, seconds, seconds)) > known.value

    for transfers in filter(None, _transfers(problem, block)):
        times = range(int(np.searchsorted(transfers.times, incumbent)))
        first = bisect_left(times, True, key=partial(says_more, transfers))
        if not first or not transfers.may_keep_to(first - 1):
            levels = near_levels(
                transfers, incumbent, problem.params.near_levels, first
            )
            found.append(min(incumbent, *map(step_s, levels)))
    if max(found) <= known.value:
        return known
    argument = (
        "ranks that their NIC would keep too long have partners near, which take room "
        "in scale-up domains"
    )
    return Proof(max(found), argument)
