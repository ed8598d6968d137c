"""A lower bound on the step time of every placement.

``step >= min over the cases of (step of the case on the best network imaginable)``.

Walking through tp, cp, ep and pp, either all groups of the axis lie inside scale-up
domains, or this is the first axis with a group outside, which pays for one crossing.
Axes inside tie their ranks together, and so limit the NICs of gradient groups. Where
pipelines are outside, they are cut the more often the more NICs gradient groups drive
(`nics.py`). A case in which
the tied ranks cannot all be placed does not count. Where a tp, cp or ep group is
outside, pipelines may still be inside, cut nowhere. Valid because the step is monotone
in the time of every operation.

By hand: three tp groups of four on two nodes of six. A node holds one of them whole, so
that all lie inside does not count. What is left is a step with a tp group on two nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from placer.base.arrays import IntArray
from placer.cost.least_cases import CaseClaim
from placer.cost.step import Step, StepModel
from placer.solve.bounds import Proof
from placer.solve.bounds.case import Case
from placer.solve.bounds.expert_parts import StageParts
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.bounds.limits import FREE, Floor
from placer.solve.bounds.nics import NicTrade
from placer.solve.bounds.uplinks import certain
from placer.solve.problem.colocation import (
    Colocation,
    are_together,
    colocation_of,
    join,
)
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.tree.domains import room_in_sets

# What a kind of groups of the user's own takes, in s: thousands take too long.
KIND_S = 3e-4
CASE_AXES = ("tp", "cp", "ep", "pp")
BEST = (
    "gradient groups on the most NICs their domains allow, rings over the fewest "
    "domains of each tier"
)


def least_step(
    problem: Problem, block: int, incumbent: float = inf, budget: Budget = ENDLESS
) -> Proof | None:
    """The bound on the step time of a problem; None where it has too many groups.

    Only the cheapest case is looked at more closely, as long as it is the cheapest.

    ``incumbent`` (s): of a known placement: a bound that reaches it is not improved
    further. ``budget``: when it ends the bound is not improved further either.
    """
    if len(problem.job.groups) * KIND_S > budget.seconds_left:
        return None
    colocation = colocation_of(problem.machine, problem.job, block)
    cases = [*_cases(problem.model, colocation, problem.params)]
    proofs = [next(case) for case in cases]
    while True:
        least = min(range(len(cases)), key=lambda index: proofs[index].value)
        is_enough = proofs[least].value >= incumbent or budget.is_over()
        closer = None if is_enough else next(cases[least], None)
        if closer is None:
            claims = tuple(one for proof in proofs for one in proof.cases)
            is_claimed = _is_known(problem, block) and len(claims) == len(proofs)
            enough = is_claimed and min(claims).seconds >= proofs[least].value
            return proofs[least]._replace(cases=claims if enough else ())
        proofs[least] = max(proofs[least], closer, key=lambda proof: proof.value)


def _is_known(problem: Problem, block: int) -> bool:
    """Whether `priced_step` knows all that a job, and blocks of ranks, ask for."""
    job, machine = problem.job, problem.machine
    others = job.groups, job.traffic, job.roles, job.rules.at_most
    # It counts islands in turn, or not at all.
    in_turn = not block and machine.gpu_index is None
    return (
        not any(map(bool, others))
        and job.require.keys() <= job.parallelism.ranks_of_group.keys()
        and (block == 1 or not machine.node_tier or in_turn)
    )


def _cases(
    model: StepModel, colocation: Colocation, params: Params
) -> Iterator[Iterator[Proof]]:
    """Bounds of every case, the dearer to work out the later."""
    scale_up, axes = model.fabric.scale_up_tier, model.job.parallelism
    label = colocation.label
    # Nobody leaves the outermost domain.
    may_leave = model.job.model is not None and scale_up < len(label) - 1
    for axis in CASE_AXES if may_leave else ():
        members = axes.ranks_of_group[axis]
        if axes.size(axis) == 1:
            continue
        if scale_up >= 0 and are_together(label[scale_up], members):
            continue
        case = Case.of(model, colocation, params, label)
        yield _bounds(case, axis)
        if scale_up < 0:
            return
        label = _joined(label, members, scale_up)
        if case.network.leaves_scale_up(members) or not _fit(label, case.network):
            return
    case = Case.of(model, colocation, params, label)
    yield _bounds(case)


def _joined(label: IntArray, members: IntArray, tier: int) -> IntArray:
    """The sets of each tier where groups lie whole in domains of a tier."""
    label = label.copy()
    for t in range(tier, len(label)):
        label[t] = join(label[t], members)
    return label


def _bounds(case: Case, axis: str = "") -> Iterator[Proof]:
    """Bounds when a group of an axis leaves its scale-up domain, or none does."""
    known, axes = certain(case), case.step.model.job.parallelism
    is_more = known.pipeline_s or known.exposed_s > case.step.exposed_data_parallel_s
    text = ", and thin uplinks that no placement spares" if is_more else ""
    if not axis:
        argument = f"every tp, cp, ep and pp group at its nearest tier, {BEST}{text}"
        claim = CaseClaim(_above(case.step, FREE))
        yield Proof(_above(case.step, known), argument, cases=(claim,))
        return
    leaves = f"cheapest when a {axis} group leaves its scale-up domain"
    slow_s = 0.0 if axis == "pp" else case.cut_s(axis)
    if axis != "pp":
        claim = CaseClaim(_above(case.step, FREE, slow_s), axis)
        value, argument = _above(case.step, known, slow_s), f"{leaves}, {BEST}{text}"
        yield Proof(value, argument, cases=(claim,))
    inside = case.network.label[max(case.network.fabric.scale_up_tier, 0)]
    is_tied = are_together(inside, axes.ranks_of_group["pp"])
    if axis in ("tp", "pp") or (axes.pp > 1 and not is_tied):
        floor = known._replace(pipeline_s=max(known.pipeline_s, slow_s))
        trade = NicTrade.of(case)
        value, level = trade.least(floor, is_cut=axis == "pp")
        free, _ = trade.least(Floor(slow_s), is_cut=axis == "pp")
        counts = tuple(tuple(one.members.tolist()) for one in trade.levels)
        fewest, most = int(level.members.min()), int(level.members.max())
        members = f"{fewest} to {most}" if fewest < most else f"{most}"
        yield Proof(
            value,
            f"{leaves}, gradient groups having at least {members} members (NICs) in "
            "each domain they touch, by stage, and pipelines cut so often that this "
            f"fits, rings over the fewest domains of each tier{text}",
            cases=(CaseClaim(free, axis, counts),),
        )
    parts = None if axis == "pp" else StageParts.of(case)
    if parts is not None:
        argument = (
            "expert groups in parts that fit the scale-up domains, "
            f"the smallest of a group setting its pace, {BEST}"
        )
        value, times, prices = parts.least(case.params)
        claim = CaseClaim(value, axis, times=times, prices=prices)
        yield Proof(value, argument, cases=(claim,))


def _above(step: Step, floor: Floor, slow_s: float = 0.0) -> float:
    """The step time, its pipeline at least as slow as this, none below its floor, s."""
    pipeline_s = step.pipeline_s(step.axes)
    slower_s = max(0.0, slow_s - pipeline_s, floor.pipeline_s - pipeline_s)
    more_s = max(0.0, floor.exposed_s - step.exposed_data_parallel_s)
    return step.step_time_s + slower_s + more_s


def _fit(label: IntArray, network: IdealNetwork) -> bool:
    """Whether the sets of all tiers may fit the domains; False is certain."""
    topology, capacity = network.fabric.topology, network.capacity_of_node
    rooms = room_in_sets(topology, capacity, label)
    for sets, room in zip(label, rooms, strict=True):
        sizes = np.unique(sets, return_counts=True)[1]
        if sizes.max() > room.max() or (room // sizes.min()).sum() < len(sizes):
            return False
    return True
