"""Groups that must leave an outer domain, since there is no room for all.

A leaf with room for ``r`` ranks holds ``r // s`` sets of tied groups, of ``s`` ranks,
and of every other set a group leaves its leaf. A stage has B sets, so of b sets outside
``b / B`` stages have one, rounded up: at best those where that matters least.

In a launch by nodes gradient groups of a stage may be tied without a rule: a node with
ranks of all of them takes them to its leaf. Where nodes are too few for short runs, as
`gradient_runs.py` finds, each stage is one set. See docs/method.md, "What no placement
avoids".
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.gradients.gradient_runs import GradientRuns
from placer.solve.bounds.network.limit import (
    Limit,
    gradient_groups,
    most_stages,
    slow_pipeline_s,
    slow_sync,
    with_slow_stages,
)
from placer.solve.problem.colocation import join
from placer.solve.tree.capacity import room_in_sets

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params


def far_gradients_s(step: Step, network: IdealNetwork, params: Params) -> float:
    """Least data-parallel time that gradient groups of outer tiers expose, s.

    Parameters
    ----------
    step : Step
        On ``network``.
    """
    model, least = step.model, step.exposed_data_parallel_s
    if step.sync is None:
        return least
    groups, axes = gradient_groups(model.job), model.job.parallelism
    stage = axes.coordinates["pp"]
    label = _tied_by_runs(network, groups, stage)
    for limit, stages in _outside(network, label, groups, stage):
        slow = slow_sync(model, network, limit)
        slower = (
            with_slow_stages(step, [(slow, stage) for stage in chosen])
            for chosen in combinations(
                range(axes.pp), most_stages(axes.pp, stages, params.slow_sets)
            )
        )
        least = max(least, min(one.exposed_data_parallel_s for one in slower))
    return least


def far_pipeline_s(
    step: Step, network: IdealNetwork, axis: str, params: Params
) -> float:
    """Least time of the slowest pipeline with tp, cp or ep groups of outer tiers, s.

    Parameters
    ----------
    step, network, params
        As above.
    """
    axes, least = step.model.job.parallelism, 0.0
    members = axes.ranks_of_group[axis]
    slot = axes.coordinates["pp"] * axes.dp + axes.coordinates["dp"]
    for limit, slots in _outside(network, network.label, members, slot):
        slow = step.model.step_on(network.with_limits(limit)).stage_times[axis]
        stages = ceil(Fraction(slots, axes.dp))
        seconds = slow_pipeline_s(step, axis, slow, stages, params.slow_sets)
        least = max(least, seconds)
    return least


def _outside(
    network: IdealNetwork, label: IntArray, groups: IntArray, slot_of_rank: IntArray
) -> Iterator[tuple[Limit, int]]:
    """Groups outside their domain of each tier, and slots that have some at the least.

    A slot is a stage, or a stage of one replica.
    """
    topology, capacity = network.fabric.topology, network.capacity_of_node
    room = room_in_sets(topology, capacity, network.label)
    for tier in range(network.fabric.scale_up_tier + 1, len(label) - 1):
        tied = np.unique(join(label[tier], groups), return_inverse=True)[1]
        sizes = np.bincount(tied)
        outside = len(sizes) - int((room[tier] // sizes.min()).sum())
        if outside > 0:
            # A set may have ranks of several slots, and counts for each.
            there = np.unique(np.stack((slot_of_rank, tied)), axis=1)[0]
            limit = Limit(groups, int(groups.shape[1]), far=tier)
            yield limit, ceil(Fraction(outside, int(np.bincount(there).max())))


def _tied_by_runs(
    network: IdealNetwork, groups: IntArray, stage_of_rank: IntArray
) -> IntArray:
    """Set of each rank at each tier, of a whole stage where runs tie its groups."""
    runs = GradientRuns.of(network, groups)
    stage = stage_of_rank[groups[:, 0]]
    of_stage = [np.flatnonzero(stage == one) for one in np.unique(stage)]
    if runs is None or any(runs.may_part(some) for some in of_stage):
        return network.label
    rows = groups[np.array(of_stage)].reshape(len(of_stage), -1)
    return np.array([join(label, rows) for label in network.label])
