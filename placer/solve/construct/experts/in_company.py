"""Expert groups side by side in the stages whose gradients nothing hides.

A group that reduces expert gradients drives one NIC on hosts that hold one expert group
each, and two on hosts that hold the same half of two. The stages that compute hides
least are the first ones. There as many units as NICs are asked for lie in the same
parts on the same domains, in *bundles*; all others as what is left allows. Shapes: U
units, D domains along the tree, P stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, IntArray
from placer.cost.rings import build_rings
from placer.solve.bounds.experts.part_gradients import EXPERTS, HeldStages
from placer.solve.construct.experts.parts_asked import Asked, asked_of
from placer.solve.construct.units.parts import Unit, even_parts, whole_units

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent


def in_company(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Expert groups in bundles in the first stages, or in more of them."""
    is_small = problem.job.world_size <= problem.params.exchange_ranks
    if problem.goal.name == "time" and is_small:
        incumbent.offer_all(islice(company_fills(problem), problem.fills_priced))


def company_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) for all that stages may ask for."""
    for asked in asked_of(problem):
        outer = asked.ground.outer
        for case in asked.parts.companies:
            ways = product((0 * outer, outer), (False, True))
            for within, is_near in ways if case.members.max() > 1 else ():
                held = bundled(asked, case.members, within, is_near=is_near)
                if held is not None:
                    node_of_rank = asked.node_of_rank(asked.slot(), held)
                    yield (
                        "ep groups side by side",
                        problem.machine.gpus_on(node_of_rank),
                    )


def bundled(
    asked: Asked, members: IntArray, within: IntArray, *, is_near: bool
) -> IntArray | None:
    """Pieces of each unit in each domain, None where they do not fit; shape (U, D).

    Parameters
    ----------
    members : ndarray, shape (P,)
        Of each group that reduces expert gradients, wherever it has some.
    within : ndarray, shape (D,)
        No bundle and no unit lies in several of these.
    is_near : bool
        Whether units of a replica follow each other along the tree, where they are not
        in bundles; else units of a stage do.
    """
    slot, size = asked.slot(), asked.parts.units.pieces
    room = asked.ground.room.copy()
    held = np.zeros((slot.size, len(room)), dtype=np.int64)
    for stage in np.argsort(-members, kind="stable").tolist():
        units, asks = slot[:, stage].ravel(), int(members[stage])
        bundles = np.array_split(units, max(1, len(units) // asks)) if asks > 1 else []
        for each in sorted({len(bundle) for bundle in bundles}):
            some = [bundle for bundle in bundles if len(bundle) == each]
            laid = shared_out(room // each, within, size, len(some))
            if laid is None or each < asks:
                return None
            for bundle, parts in zip(some, laid, strict=True):
                for domain, pieces in parts:
                    held[bundle, domain] = pieces
                    room[domain] -= each * pieces
    # Others that must be in parts are of stages in the middle: those do nothing else.
    alone = np.flatnonzero(members == 1)
    middle = np.argsort(abs(2 * alone + 1 - slot.shape[1]), kind="stable")
    units = slot[:, alone[middle]].transpose(1, 0, 2).ravel()
    laid = shared_out(room, within, size, len(units))
    if laid is None:
        return None
    whole = sum(len(parts) == 1 for parts in laid)
    first, last = units[: len(units) - whole], units[len(units) - whole :]
    if is_near:
        last = last[np.argsort(asked.cohort[last], kind="stable")]
    for unit, parts in zip((*last, *first), laid, strict=True):
        for domain, pieces in parts:
            held[unit, domain] = pieces
    return held


def stages_in_company(
    asked: Asked, step: Step, gpu_of_rank: IntArray, share: float
) -> BoolArray:
    """Stages whose expert gradients have several NICs, and need them; shape (P,).

    With one NIC the stage would make the step longer by such a share at the least.
    """
    model, parts = step.model, asked.parts
    groups = model.job.parallelism.ranks_of_group["edp"]
    stage = model.job.parallelism.coordinates["pp"][groups[:, 0]]
    nics = np.full(model.job.parallelism.pp, groups.shape[1])
    np.minimum.at(nics, stage, build_rings(model.fabric, gpu_of_rank[groups]).nics)
    alone = HeldStages(parts.step, parts.network).exposed({EXPERTS: 1})
    more = np.array(list(map(sum, alone))) - step.exposed_data_parallel_s
    needed: BoolArray = (nics > 1) & (more > share * step.step_time_s)
    return needed


def shared_out(
    room: IntArray, within: IntArray, size: int, count: int
) -> list[Unit] | None:
    """So many units on domains, the whole ones first; None if they do not fit.

    As many are whole as leave room for the others in even parts.

    Parameters
    ----------
    room, within : ndarray, shape (D,)
        Pieces, and what no unit in parts lies in several of.
    size, count : int
        Pieces of a unit, and units.
    """
    most = min(count, int((room // size).sum()))
    for wholes in dict.fromkeys(most * quarter // 4 for quarter in (4, 3, 2, 1, 0)):
        whole, left = whole_units(room, size, wholes)
        if wholes == count:
            return whole
        if left.sum() >= size * (count - wholes):
            parted = even_parts(left, within, size, count - wholes, 1)
            if parted is not None:
                return [*whole, *parted]
    return None
