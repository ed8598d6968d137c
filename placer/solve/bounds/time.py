"""A lower bound on the step time of every placement.

``step >= min over the cases of (step of the case on the best network imaginable)``.

The step is priced on the best network imaginable (`ideal.py`) in a few cases that
together cover all placements: walking through tp, cp, ep and pp, either all groups of
the axis lie inside scale-up domains, or this is the first axis with a group outside. In
a case the axes known to be inside tie their ranks together, which limits how many
members of a gradient group a domain can hold and so the NICs that group can drive; an
axis with a group outside pays at least one group's crossing, and pipelines outside are
cut the more often the more NICs gradient groups drive (`nics.py`). A case in which the
tied ranks cannot all be placed does not count. The bound is the cheapest case.

Where a tp, cp or ep group is outside, pipelines may still be inside. The same trade
holds for them, with a pipeline that is cut nowhere among the choices.

Valid because the step is monotone in the time of every operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.bounds import Proof
from placer.solve.bounds.best_network import (
    are_together,
    best_network,
    joined,
    rooms_of,
)
from placer.solve.bounds.certain import certain
from placer.solve.bounds.company import in_company
from placer.solve.bounds.cut_groups import CutGroups, cut_by_tier
from placer.solve.bounds.expert_parts import StageParts
from placer.solve.bounds.floor import FREE, Floor
from placer.solve.bounds.graph_cut import over_uplinks
from placer.solve.bounds.heavy_flows import heavy_flows
from placer.solve.bounds.nics import NicTrade
from placer.solve.bounds.regions import least_over_links
from placer.solve.bounds.run_transfers import RunTransfers, in_runs
from placer.solve.bounds.speeds import slowest_stages
from placer.solve.bounds.transfers import Transfers, near_levels, one_way
from placer.solve.bounds.uplinks import floors
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.problem.objective import TimeObjective
from placer.solve.problem.params import Params
from placer.solve.tree.capacity import node_capacity

if TYPE_CHECKING:
    from placer.cost.step import Step, StepModel
    from placer.solve.bounds.ideal import IdealNetwork
    from placer.solve.bounds.run_patterns import RunPatterns
    from placer.solve.problem.compiled import Problem

IntArray = npt.NDArray[np.int64]

CASE_AXES = ("tp", "cp", "ep", "pp")
BEST = (
    "gradient groups on the most NICs their domains allow, rings over the fewest "
    "domains of each tier"
)


def least_step_time(problem: Problem, block: int, incumbent: float) -> Proof | None:
    """The bound on the step time; None for another objective.

    What holds for every launch holds for one by nodes too, and where nodes hold equal
    blocks it now and then says more.
    """
    if not isinstance(problem.goal, TimeObjective):
        return None
    least = _least(problem, block, problem.params, incumbent)
    if block <= 1 or least.value >= incumbent:
        return least
    # Parts of single ranks say no more than those of whole blocks.
    params = replace(problem.params, expert_rounds=0)
    return max(least, _least(problem, 1, params, incumbent))


def step_on_best_links(problem: Problem, block: int) -> float:
    """The step time if every group had the best links that it may have anywhere, s.

    No placement has a shorter step; `least_step_time` says more and takes longer.
    """
    colocation = colocation_of(problem.machine, problem.job, block)
    capacity = node_capacity(problem.machine, block)
    network = best_network(problem.model, colocation, colocation.label, capacity)
    return problem.model.step_on(network).step_time_s


def _least(problem: Problem, block: int, params: Params, incumbent: float) -> Proof:
    """The bound of a problem whose nodes hold so many ranks each."""
    model = problem.model
    colocation = colocation_of(problem.machine, problem.job, block)
    capacity = node_capacity(problem.machine, block)
    ideal = best_network(model, colocation, colocation.label, capacity)
    step = model.step_on(ideal)
    proofs = (
        time_bound(model, colocation, capacity, params, incumbent),
        slowest_stages(step),
        least_over_links(step, ideal),
        _beside_partners(model, ideal, params, incumbent),
        in_runs(model, ideal),
        in_company(model, ideal, params),
        over_uplinks(model, ideal, params),
        heavy_flows(model, ideal),
    )
    return max(proof for proof in proofs if proof is not None)


def time_bound(
    model: StepModel,
    colocation: Colocation,
    capacity_of_node: IntArray,
    params: Params | None = None,
    incumbent: float = inf,
) -> Proof:
    """The bound for placements whose ranks stay together as ``colocation`` says.

    Only the cheapest case is looked at more closely, as long as it is the cheapest.

    Parameters
    ----------
    model : StepModel
    colocation : Colocation
    capacity_of_node : ndarray, shape (N,)
        Ranks each node may hold.
    params : Params, optional
    incumbent : float, s
        Of a known placement: a bound that reaches it is not improved further.
    """
    cases = list(_cases(model, colocation, capacity_of_node, params or Params()))
    proofs = [next(case) for case in cases]
    while True:
        least = min(range(len(cases)), key=lambda index: proofs[index].value)
        closer = next(cases[least], None)
        if closer is None or proofs[least].value >= incumbent:
            return proofs[least]
        proofs[least] = max(proofs[least], closer, key=lambda proof: proof.value)


def nic_trade(
    model: StepModel,
    colocation: Colocation,
    capacity_of_node: IntArray,
    params: Params | None = None,
) -> NicTrade | None:
    """What pipelines that leave scale-up domains trade for NICs; None if none may.

    Parameters
    ----------
    model, sets, capacity_of_node, params
        As for `time_bound`.
    """
    scale_up = model.fabric.scale_up_tier
    axes = model.job.parallelism
    if model.job.model is None or axes.pp == 1:
        return None
    if scale_up in (-1, model.fabric.num_tiers - 1):  # nothing to leave, or nowhere
        return None
    if are_together(colocation.label[scale_up], axes.ranks_of_group["pp"]):
        return None
    network = best_network(model, colocation, colocation.label, capacity_of_node)
    rooms = rooms_of(model, capacity_of_node)
    return NicTrade.of(model.step_on(network), network, rooms, params or Params())


def stage_parts(
    model: StepModel, colocation: Colocation, capacity_of_node: IntArray
) -> StageParts | None:
    """What parts of expert groups make of a step; None where they do not matter.

    Parameters
    ----------
    model, colocation, capacity_of_node
        As for `time_bound`.
    """
    network = best_network(model, colocation, colocation.label, capacity_of_node)
    room = rooms_of(model, capacity_of_node)
    return StageParts.of(model.step_on(network), network, room)


def run_patterns(problem: Problem) -> RunPatterns | None:
    """Parts that runs leave of the groups of consecutive ranks; None without any."""
    parallelism = problem.job.parallelism
    axis = next((axis for axis in ("tp", "cp") if parallelism.size(axis) > 1), None)
    if axis is None or problem.job.model is None:
        return None
    network, params = _ideal_of(problem), problem.params
    room = rooms_of(problem.model, network.capacity_of_node)
    step = problem.model.step_on(network)
    return CutGroups.of(step, network, axis, room, params).run_patterns


def run_transfers(problem: Problem) -> RunTransfers | None:
    """Transfers where each scale-up domain holds a run; None where they do not."""
    return RunTransfers.of(_ideal_of(problem), problem.job.traffic)


def transfers_of(problem: Problem) -> Transfers | None:
    """Who needs partners near; None where nobody does."""
    traffic = problem.job.traffic
    if traffic is None:
        return None
    return Transfers.of(_ideal_of(problem), traffic, problem.params)


def transfers_by_rank(problem: Problem) -> Transfers | None:
    """The same of ranks one by one, as if nothing kept them together."""
    traffic, network = problem.job.traffic, _ideal_of(problem)
    if traffic is None:
        return None
    alone = np.broadcast_to(np.arange(network.label.shape[1]), network.label.shape)
    return Transfers.of(replace(network, label=alone), traffic, problem.params)


def _ideal_of(problem: Problem) -> IdealNetwork:
    """The best network for every placement of a problem."""
    block = problem.forced_block
    colocation = colocation_of(problem.machine, problem.job, block)
    capacity = node_capacity(problem.machine, block)
    return best_network(problem.model, colocation, colocation.label, capacity)


def _cases(
    model: StepModel, colocation: Colocation, capacity: IntArray, params: Params
) -> Iterator[Iterator[Proof]]:
    """Bounds of every case, the dearer to work out the later."""
    scale_up = model.fabric.scale_up_tier
    label = colocation.label
    room = rooms_of(model, capacity)
    for axis in CASE_AXES:
        if model.job.model is None or model.job.parallelism.size(axis) == 1:
            continue
        members = model.job.parallelism.ranks_of_group[axis]
        if scale_up < 0 or not are_together(label[scale_up], members):
            cuts = list(cut_by_tier(model, colocation, label, capacity, axis, params))
            for cut in cuts:
                yield _outside(cut, params)
            # Where no group leaves a scale-up domain none leaves one further out.
            if scale_up < 0 or any(cut.is_certain for cut in cuts[:1]):
                return
            label = joined(label, members, scale_up)
            if not _fit(np.unique(label[scale_up], return_counts=True)[1], room):
                return
    network = best_network(model, colocation, label, capacity)
    step = model.step_on(network)
    yield _in_turn([partial(_inside, step)], step, network, room, params)


def _outside(cut: CutGroups, params: Params) -> Iterator[Proof]:
    """Bounds when a group of an axis leaves its scale-up domain."""
    step, network, axis, room = cut.step, cut.network, cut.axis, cut.room
    axes = step.model.job.parallelism
    slow_s = 0.0 if axis == "pp" else cut.pipeline_s(params)
    cases = [] if axis == "pp" else [partial(_with_crossing, cut, slow_s)]
    inside = network.label[max(step.model.fabric.scale_up_tier, 0)]
    is_tied = are_together(inside, axes.ranks_of_group["pp"])
    if axis in ("tp", "pp") or (axes.pp > 1 and not is_tied):
        # Dear to make: only once this case is the cheapest.
        parts = cut.with_parts if axis == "tp" else None
        trade = cache(partial(NicTrade.of, step, network, room, params, parts))
        cases.append(partial(_with_cuts, trade, cut, slow_s))
    yield from _in_turn(cases, step, network, room, params)
    if axis != "pp":
        yield _in_parts(StageParts.of(step, network, room), params)


def _in_turn(
    cases: Sequence[Callable[[Floor], Proof]],
    step: Step,
    network: IdealNetwork,
    room: IntArray,
    params: Params,
) -> Iterator[Proof]:
    """Bounds of each case: alone, with what is certain, past uplinks of each tier."""
    for case in cases:
        yield case(FREE)
    known = certain(step, network, room, params)
    is_more = known.exposed_s > step.exposed_data_parallel_s or known.pipeline_s
    for case in cases if is_more else ():
        proof = case(known)
        text = f"{proof.argument}, and groups that no placement keeps near"
        yield proof._replace(argument=text)
    of_tiers = list(floors(step, network, params))
    for case in cases:
        for of_tier in of_tiers:
            over = min(
                (case(floor.above(known)) for floor in of_tier),
                key=lambda one: one.value,
            )
            text = f"{over.argument}, and what has to pass thin uplinks"
            yield over._replace(argument=text)


def _inside(step: Step, floor: Floor) -> Proof:
    """Least step time with all groups inside their scale-up domains."""
    argument = f"every tp, cp, ep and pp group at its nearest tier, {BEST}"
    return Proof(_above(step, floor), argument)


def _above(step: Step, floor: Floor, slow_s: float = 0.0) -> float:
    """The step time, its pipeline at least as slow as this, none below its floor, s."""
    pipeline_s = step.pipeline_s(tuple(step.stage_times))
    return (
        step.step_time_s
        - pipeline_s
        + max(pipeline_s, slow_s, floor.pipeline_s)
        + max(0.0, floor.exposed_s - step.exposed_data_parallel_s)
    )


def _fit(sizes: IntArray, room: IntArray) -> bool:
    """Whether sets may fit the domains; False is certain."""
    smallest = int(sizes.min())
    places = int((room // smallest).sum())
    return bool(sizes.max() <= room.max()) and places >= len(sizes)


def _with_crossing(cut: CutGroups, slow_s: float, floor: Floor) -> Proof:
    """Least step time when a tp, cp or ep group leaves its domain."""
    text = f"cheapest when a {cut.axis} group leaves its {cut.where}, {BEST}"
    return Proof(_above(cut.step, floor, slow_s), text)


def _in_parts(parts: StageParts | None, params: Params) -> Proof:
    """Least step time for parts of expert groups that fit scale-up domains."""
    value = parts.least(params) if parts else 0.0
    argument = (
        "expert groups in parts that fit the scale-up domains, "
        "the smallest of a group setting its pace"
    )
    return Proof(value, f"{argument}, {BEST}")


def _with_cuts(
    trade: Callable[[], NicTrade], cut: CutGroups, slow_s: float, floor: Floor
) -> Proof:
    """Least step time that NICs and cuts allow when a group of an axis is outside."""
    floor = floor.above(Floor(pipeline_s=slow_s))
    value, level = trade().least(floor, is_cut=cut.axis == "pp")
    fewest, most = int(level.members.min()), int(level.members.max())
    members = f"{fewest} to {most}" if fewest < most else f"{most}"
    return Proof(
        value,
        f"cheapest when a {cut.axis} group leaves its {cut.where}, gradient groups "
        f"having at least {members} members (NICs) in each domain they touch, by "
        "stage, and pipelines cut so often that this fits, rings over the fewest "
        "domains of each tier",
    )


def _beside_partners(
    model: StepModel, network: IdealNetwork, params: Params, incumbent: float
) -> Proof | None:
    """Least step time of all times that transfers may take; None without transfers."""
    if model.job.traffic is None:
        return None
    found = []
    for traffic in one_way(model.job.traffic):
        levels = near_levels(network, traffic, incumbent, params)
        beside = (replace(network, near=near) for near in levels)
        times = [model.step_on(one).step_time_s for one in beside]
        if times:
            found.append(min(incumbent, *times))
    if not found:
        return None
    argument = (
        "ranks that their NIC would keep too long have partners near, which take room "
        "in scale-up domains"
    )
    return Proof(max(found), argument)
