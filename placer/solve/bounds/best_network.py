"""The best network imaginable for ranks that stay together, and room for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.solve.problem.colocation import Colocation

IntArray = npt.NDArray[np.int64]


def best_network(
    model: StepModel, colocation: Colocation, label: IntArray, capacity: IntArray
) -> IdealNetwork:
    """The best network for ranks that stay together as ``label`` says.

    Parameters
    ----------
    model : StepModel
    colocation : Colocation
    label : ndarray, shape (T, R)
        Set of each rank at each tier.
    capacity : ndarray, shape (N,)
        Ranks each node may hold.
    """
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


def rooms_of(model: StepModel, capacity: IntArray) -> IntArray:
    """Ranks that each scale-up domain may hold; single GPUs where there is none.

    Parameters
    ----------
    model : StepModel
    capacity : ndarray, shape (N,)
        Ranks each node may hold.
    """
    if model.fabric.scale_up_tier < 0:
        return np.ones(1, dtype=np.int64)
    domain = model.topology.domain_of_node[model.fabric.scale_up_tier]
    return np.bincount(domain, capacity).astype(np.int64)


def are_together(label: IntArray, members: IntArray) -> bool:
    """Whether the ranks of each group stay together.

    Parameters
    ----------
    label : ndarray, shape (R,)
    members : ndarray, shape (g, n)
    """
    rows = label[members]
    return bool((rows == rows[:, :1]).all())


def joined(label: IntArray, members: IntArray, tier: int) -> IntArray:
    """The sets of each tier where groups lie whole in domains of a tier.

    Parameters
    ----------
    label : ndarray, shape (T, R)
    members : ndarray, shape (g, n)
    tier : int
    """
    label = label.copy()
    for t in range(tier, len(label)):
        label[t] = join(label[t], members)
    return label
