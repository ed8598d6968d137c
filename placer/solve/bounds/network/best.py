"""The best network imaginable of a problem, from what it must keep together."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.bounds.network.ideal import IdealNetwork
from placer.solve.problem.colocation import colocation_of
from placer.solve.tree.capacity import node_capacity

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.solve.bounds.network.fewest import Counts
    from placer.solve.problem.colocation import Colocation
    from placer.solve.problem.compiled import Problem


def best_of_problem(problem: Problem, block: int | None = None) -> IdealNetwork:
    """The best network for every placement of a problem.

    Parameters
    ----------
    block : int, optional
        Consecutive ranks of a node; by default those that the launch forces.
    """
    block = problem.forced_block if block is None else block
    colocation = colocation_of(problem.machine, problem.job, block)
    return best_network(problem.model, colocation)


def best_network(
    model: StepModel, colocation: Colocation, label: IntArray | None = None
) -> IdealNetwork:
    """The best network for ranks that stay together as a colocation says.

    Parameters
    ----------
    label : ndarray, shape (T, R), optional
        Set of each rank, where more than the colocation ties is supposed.
    """
    label = colocation.label if label is None else label
    block = colocation.block
    capacity = node_capacity(model.topology, block)
    network = IdealNetwork(model.fabric, label, capacity, block == 0, block != 1)
    at_most = model.job.rules.at_most
    if not at_most:
        return network
    # A domain lies in one of each tier further out, which may hold so many.
    most = [float(at_most.get(tier.name, np.inf)) for tier in model.topology.tiers]
    most = np.minimum.accumulate(most[::-1])[::-1].tolist()
    replica = model.job.parallelism.coordinates["dp"]
    return replace(network, replica=replica, most_replicas=tuple(most))


def step_on_best_links(problem: Problem, block: int) -> float:
    """The step time if every group had the best links that it may have anywhere, s.

    No placement has a shorter step; the bounds say more and take longer.
    """
    return problem.model.step_on(best_of_problem(problem, block)).step_time_s


@dataclass(frozen=True, eq=False)
class Leaving(IdealNetwork):
    """The best network for groups that leave their domains of the first tiers."""

    tiers: int = 0

    @classmethod
    def of(cls, network: IdealNetwork, tiers: int) -> Leaving:
        """The network when every group leaves domains of so many tiers."""
        known = [one.name for one in fields(network) if one.init]
        return cls(**{name: getattr(network, name) for name in known}, tiers=tiers)

    def _fewest_domains(self, members: IntArray) -> Counts:
        fewest, room, most = super()._fewest_domains(members)
        inner = slice(0, self.tiers + 1)
        fewest[inner] = np.maximum(fewest[inner], min(2, members.shape[1]))
        return fewest, room, most
