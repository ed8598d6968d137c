"""Which replicas wait for which units, so that rings of gradients leave few domains.

Parts set the time of each unit, wherever it belongs. A ring of expert gradients goes
from a unit of one set of replicas to the unit of the same stage of the next, and loads
the uplinks of all domains that it leaves. Shapes: C sets of replicas, P stages, A units
of a stage, S pieces of a unit.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.construct.parts_links import Links
    from placer.solve.construct.parts_pace import Pace

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

SHARPNESS = 8  # of the norm that stands for the busiest uplink
ROUNDING = 1e-9


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
    """

    def __init__(
        self,
        links: Links,
        pace: Pace,
        held: IntArray,
        seconds: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        self.pace, self.seconds, self.rng = pace, seconds, rng
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

    def improved(self, slot: IntArray, tries: int) -> IntArray:
        """Changed as long as uplinks are less busy and no replica slower than now."""
        least = self.busy(slot)
        limit = self._step(slot) * (1 + ROUNDING)
        for _ in range(tries):
            changed = self.changed(slot, limit)
            busy = inf if changed is None else self.busy(changed)
            if changed is not None and busy <= least:
                slot, least = changed, busy
        return slot

    def changed(self, slot: IntArray, limit: float = inf) -> IntArray | None:
        """Replicas in another order, or two units exchanged; None if that is slow."""
        cohorts, stages, _ = slot.shape
        if cohorts == 1:
            return None
        one, two = sorted(self.rng.choice(cohorts, 2, replace=False).tolist())
        changed = slot.copy()
        kind = int(self.rng.integers(4))
        if kind == 0:
            changed[[one, two]] = slot[[two, one]]
        elif kind == 1:
            changed[one : two + 1] = slot[one : two + 1][::-1]
        else:
            stage = int(self.rng.integers(stages))
            other = stage if kind == 2 else int(self.rng.integers(stages))
            changed[one, stage] = slot[two, other]
            changed[two, other] = slot[one, stage]
            if self._step(changed[[one, two]]) > limit:
                return None
        return changed

    def _step(self, slot: IntArray) -> float:
        return float(self.pace.steps(self.seconds[slot].max(axis=-1)).max())
