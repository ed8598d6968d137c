"""Placements with pipelines cut alike, by what the bound says is the best compromise.

`nics` lists compromises between NICs of gradient groups and cuts of pipelines:
how many members of a gradient group a domain must hold, and how pipelines may be cut. A
program says whether the machine's domains can be filled that way; the best compromise
that can be had fills the tree. Where one replica must be cut, others may be cut as
often without a longer step, and then two, three or more of them share their domains.
Domains that whole stages do not fill may be filled by the members of context parallel
groups, each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray
from placer.solve.bounds.nics import nic_trade
from placer.solve.construct.stages.cut_patterns import (
    Question,
    count,
    leaf_patterns,
    runs_of,
)
from placer.solve.construct.stages.cut_stages import Stages, leaf_of_stage
from placer.solve.count.engine import Limits
from placer.solve.problem.objective import TimeObjective

if TYPE_CHECKING:
    from placer.solve.bounds.nics import Level, NicTrade
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

TOGETHER = "members of a gradient group together"
# Two pipeline times that differ by less are one.
SAME = 1e-9


class Target(NamedTuple):
    """A compromise to aim at.

    Attributes
    ----------
    seconds : float, s
        Least step time.
    ways : ndarray of bool, shape (S,)
        Which sets of cuts are good enough.
    """

    seconds: float
    level: Level
    ways: BoolArray

    def is_weaker(self, other: Target) -> bool:
        """Whether it exposes no less and cuts no less than ``other``."""
        exposed, others = self.level.exposed_s, other.level.exposed_s
        cuts = self.seconds - exposed, other.seconds - others
        return exposed >= others and cuts[0] >= cuts[1] * (1 - SAME)


def cut_alike(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Pipelines cut alike so that gradient groups share domains."""
    if isinstance(problem.goal, TimeObjective):
        value, params = float(incumbent.value), problem.params
        if params.asks_enough:  # nothing worse will do
            value = min(value, params.enough_value * (1 + SAME))
        for name, gpu_of_rank in cut_placements(problem, value, budget):
            incumbent.offer(name, gpu_of_rank)


def cut_placements(
    problem: Problem, value: float, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of the best compromises that can be had.

    Nothing where pipelines stay inside scale-up domains, or stages do not.

    Parameters
    ----------
    problem : Problem
        To minimise step time.
    value : float, s
        Step time to beat.
    budget : Budget
        Asked between programs.
    """
    model = problem.model
    trade = nic_trade(model, problem.colocation, problem.params)
    if trade is None:
        return
    params = problem.params
    is_thin = model.fabric.has_thin_leaves
    for units in _units(problem):
        patterns_left = params.all_cut_patterns
        tried: set[bytes] = set()
        had: dict[int, list[Target]] = {stages.lanes: [] for stages in units}
        for target, stages in product(_targets(trade, value), units):
            if budget.is_over() or patterns_left <= 0 or target.seconds >= value:
                break
            known = had[stages.lanes]
            # Messages wait for thin uplinks, which no promise counts. Those that
            # promise less than the first are expected to miss it by as much.
            if known and (is_thin or any(target.is_weaker(one) for one in known)):
                continue
            question = _question(target, trade, stages, params)
            if question is None or question.key in tried:
                continue
            tried.add(question.key)
            patterns_left -= len(question.patterns)
            limits = Limits(
                params.cut_nodes, budget.seconds_left, problem.seed, engine="highs"
            )
            found = count(question, stages.capacity, stages.replicas, limits)
            if found is None:
                continue
            known.append(target)
            leaf = leaf_of_stage(question, found, stages)
            members = int(target.level.members.max())
            node_of_rank = stages.node_of_rank(leaf)
            gpu_of_rank = model.topology.gpus_on(node_of_rank)
            value = min(value, model.step(gpu_of_rank).step_time_s)
            yield f"pipelines cut alike, {members} {TOGETHER}", gpu_of_rank
        if any(had.values()):
            return


def _units(problem: Problem) -> Iterator[list[Stages]]:
    """Units to be tried together, the better ones first.

    Whole stages, and those of each member of a cp group by itself, the members of a
    replica cut alike: where they are not, each waits for the cuts of all others.
    """
    of = partial(Stages.of, problem.model, problem.colocation, problem.capacity)
    whole = of()
    axes = problem.job.parallelism
    lanes = of(parts_cp=True) if axes.cp > 1 and axes.ep == 1 else None
    yield [units for units in (whole, lanes) if units is not None]
    if lanes is not None:
        yield [replace(lanes, lanes=1)]


def _targets(trade: NicTrade, value: float) -> list[Target]:
    """Compromises that promise less than ``value``, the most promising first."""
    crossings = trade.crossings
    found = []
    for level in trade.levels:
        fits = crossings.fits(level.need)
        times = np.unique(crossings.seconds[fits])
        apart = np.diff(times, prepend=-np.inf) > SAME * times
        for time in times[apart].tolist():
            seconds = trade.other_s + level.exposed_s + time
            if seconds < value:
                ways = fits & (crossings.seconds <= time * (1 + 2 * SAME))
                found.append(Target(seconds, level, ways))
    return sorted(found, key=lambda target: target.seconds)


def _question(
    target: Target, trade: NicTrade, stages: Stages, params: Params
) -> Question | None:
    """What the program is asked for a target, None when there is too much to it."""
    ways = trade.crossings.cuts[target.ways]
    if len(ways) > params.cut_ways:
        return None
    sets = [runs_of(cuts) for cuts in ways]
    runs = sorted({run for way in sets for run in way})
    least = -(-target.level.members // stages.members)
    room = int(stages.capacity.max())
    patterns = leaf_patterns(runs, least, room, params)
    uses = np.array([[stages.lanes * way.count(run) for run in runs] for way in sets])
    return Question(runs, sets, patterns, uses) if len(patterns) else None
