"""Which replicas wait for which units, so that rings of gradients leave few domains.

Parts set the time of each unit, wherever it belongs. A ring of expert gradients goes
from a unit of one set of replicas to the unit of the same stage of the next, and loads
the uplinks of all domains that it leaves. Shapes: C sets of replicas, P stages, A units
of a stage, S pieces of a unit.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.placement.placement import Placement

if TYPE_CHECKING:
    from placer.solve.construct.experts.parts_asked import Asked
    from placer.solve.construct.experts.parts_links import Links
    from placer.solve.construct.experts.parts_pace import Pace
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget

SHARPNESS = 8  # of the norm that stands for the busiest uplink
ROUNDING = 1e-9
STAGES = 4  # the change that exchanges two stages of the same replicas


def places_of(held: IntArray) -> IntArray:
    """Domain of each piece of each unit, along the tree; shape (U, S)."""
    units, domains = np.nonzero(held)
    return np.repeat(domains, held[units, domains]).reshape(len(held), -1)


def along_the_tree(slot: IntArray, held: IntArray) -> IntArray:
    """Sets of replicas in the order of where their units lie on the average."""
    mean = places_of(held).mean(axis=1)[slot].mean(axis=(1, 2))
    return slot[np.argsort(mean, kind="stable")]


class RingOrder:
    """Units given to sets of replicas, and those in an order.

    Parameters
    ----------
    links : Links
    pace : Pace
    held : ndarray, shape (U, D)
        Pieces of each unit in each domain.
    seconds : ndarray, shape (U,), s
        Of the all-to-all of each unit.
    rng : Generator
    kept : ndarray, shape (U,), optional
        Whether a unit keeps its stage.
    """

    def __init__(
        self,
        links: Links,
        pace: Pace,
        held: IntArray,
        seconds: FloatArray,
        rng: np.random.Generator,
        kept: BoolArray | None = None,
    ) -> None:
        self.pace, self.seconds, self.rng = pace, seconds, rng
        self.kept = np.zeros(len(held), dtype=bool) if kept is None else kept
        self.place = places_of(held)
        self.outer = links.outer[self.place]
        self.carried = links.carried, links.outer_carried

    def busy(self, slot: IntArray) -> float:
        """How long the busiest uplink takes, in some unit, and a little for others."""
        found = []
        for home, carried in zip((self.place, self.outer), self.carried, strict=True):
            row = home[slot]
            leaves = row[row != np.roll(row, -1, axis=0)]
            found.append(np.bincount(leaves, minlength=len(carried)) / carried)
        load = np.concatenate(found)
        top = float(load.max())
        if not top:
            return 0.0
        norm = float(((load / top) ** SHARPNESS).sum()) ** (1 / SHARPNESS)
        return float(top * norm)

    def improved(
        self, slot: IntArray, tries: int, budget: Budget | None = None
    ) -> IntArray:
        """Changed as long as uplinks are less busy and no replica slower than now."""
        least = self.busy(slot)
        limit = self._step(slot) * (1 + ROUNDING)
        for _ in range(tries):
            if budget is not None and budget.is_over():
                break
            changed = self.changed(slot, limit)
            busy = inf if changed is None else self.busy(changed)
            if changed is not None and busy <= least:
                slot, least = changed, busy
        return slot

    def changed(self, slot: IntArray, limit: float = inf) -> IntArray | None:
        """Replicas in another order, or two units exchanged; None if that is slow.

        Units of two stages of the same replicas, or of two sets of replicas.
        """
        cohorts, stages, _ = slot.shape
        kind = int(self.rng.integers(5)) if cohorts > 1 else STAGES
        changed = slot.copy()
        if kind == STAGES:
            if stages == 1:
                return None
            one = int(self.rng.integers(cohorts))
            stage, other = self.rng.choice(stages, 2, replace=False).tolist()
            if self.kept[slot[one, [stage, other]]].any():
                return None
            changed[one, [stage, other]] = slot[one, [other, stage]]
            return None if self._step(changed[[one]]) > limit else changed
        one, two = sorted(self.rng.choice(cohorts, 2, replace=False).tolist())
        if kind == 0:
            changed[[one, two]] = slot[[two, one]]
        elif kind == 1:
            changed[one : two + 1] = slot[one : two + 1][::-1]
        else:
            stage = int(self.rng.integers(stages))
            other = stage if kind == 2 else int(self.rng.integers(stages))
            both = np.append(slot[two, other], slot[one, stage])
            if stage != other and self.kept[both].any():
                return None
            changed[one, stage] = slot[two, other]
            changed[two, other] = slot[one, stage]
            if self._step(changed[[one, two]]) > limit:
                return None
        return changed

    def _step(self, slot: IntArray) -> float:
        return float(self.pace.steps(self.seconds[slot].max(axis=-1)).max())


class Ordered(NamedTuple):
    """An order, the step of a placement that has it, and GPU of every rank."""

    seconds: float
    slot: IntArray
    gpu_of_rank: IntArray


class OrderSteps:
    """Steps of orders of the same parts, as the cost model has them.

    All-to-alls are the same in every order that `RingOrder` changes to; messages of
    pipelines and rings of gradients are not.
    """

    def __init__(
        self, problem: Problem, asked: Asked, order: RingOrder, held: IntArray
    ) -> None:
        self.problem, self.order = problem, order
        self.asked, self.held = asked, held

    def of(self, slot: IntArray) -> Ordered:
        """The placement with units given to replicas so."""
        node_of_rank = self.asked.node_of_rank(slot, self.held)
        placement = Placement.on_nodes(self.problem.machine, node_of_rank)
        step = self.problem.model.step(placement.gpu_of_rank)
        return Ordered(step.step_time_s, slot, placement.gpu_of_rank)

    def improved(
        self, best: Ordered, priced: int, budget: Budget | None = None
    ) -> Ordered:
        """Changed as long as the step is no longer, of so many orders priced."""
        for _ in range(self.problem.params.parts_order_tries):
            if priced <= 0 or (budget is not None and budget.is_over()):
                break
            slot = self.order.changed(best.slot, best.seconds)
            if slot is None:
                continue
            priced -= 1
            found = self.of(slot)
            if found.seconds <= best.seconds:
                best = found
        return best
