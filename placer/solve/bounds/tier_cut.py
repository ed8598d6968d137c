"""The least cut of one tier: floors of rank sets, domain sizes and stage prices."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, gcd, lcm
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.bounds.boundary import copies_floor, replica_floor
from placer.solve.bounds.prices import climb
from placer.solve.bounds.products import Product, chain_splits
from placer.solve.bounds.sizes import cheapest_sizes, size_classes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placer.job.model import Job

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

END_CHARGES = (0.0, 0.25, 0.5, 0.75, 1.0)
PRICE_GRIDS = (40, 5)
ASCENT_ROUNDS = 60
# Array elements one evaluation may touch: of all end charges, of the ascent.
CHARGE_WORK = 1_000_000_000
ASCENT_WORK = 15_000_000
ROUNDING = 1e-9


class TierCut:
    """Bounds on the weight of edges between different domains of one tier.

    Parameters
    ----------
    job : Job
    gpus_of_domain : ndarray, shape (D,)
        GPUs of every domain of the tier.
    """

    def __init__(self, job: Job, gpus_of_domain: IntArray) -> None:
        self.world = job.world_size
        self.stages = job.parallelism.pp
        self.classes = size_classes(gpus_of_domain, self.world)
        self.size = self.classes[-1].high
        self.quantum = _common_divisor(job.weights.values())
        self.splits = chain_splits(job)
        self.chain_weight = sum(p.chain.weight for p in self.splits[0])
        self.value = 0.0
        self.split = self.splits[0]
        self.prices = np.zeros(self.stages)

    def charge_ends(self) -> None:
        """Raise ``value`` by the bounds with a price on the ends of the chain."""
        priced = self.has_chain and self._work(len(END_CHARGES)) <= CHARGE_WORK
        charges = np.array(END_CHARGES if priced else END_CHARGES[:1])
        prices = np.zeros((len(charges), self.stages))
        prices[:, 0] = prices[:, -1] = charges * self.chain_weight
        for split in self.splits:
            self._keep_best(split, prices)

    def ascend(self) -> None:
        """Raise ``value`` by improving the prices of all stages."""
        half = (self.stages + 1) // 2
        if not self.has_chain or half < 2 or self._work(half) > ASCENT_WORK:
            return
        # Adding a constant to all prices changes nothing, so the middle stays at 0.
        start = (self.prices - self.prices[half - 1])[: half - 1]
        best = climb(
            lambda rows: self._values(self.split, self._mirrored(rows), refine=False),
            start,
            self.chain_weight / 2,
            ASCENT_ROUNDS,
        )
        candidates = [best]
        for grid in PRICE_GRIDS:
            unit = self.chain_weight / grid
            candidates.append(np.round(best / unit) * unit)
        self._keep_best(self.split, self._mirrored(np.array(candidates)))

    @property
    def has_chain(self) -> bool:
        """Whether the job has a pipeline whose edges have a weight."""
        return self.stages > 1 and self.chain_weight > 0

    def _mirrored(self, rows: FloatArray) -> FloatArray:
        """Prices of all stages from those of the first half but its last."""
        first = np.hstack([rows, np.zeros((len(rows), 1))])
        return np.hstack([first, first[:, ::-1][:, self.stages % 2 :]])

    def _keep_best(self, split: tuple[Product, ...], prices: FloatArray) -> None:
        values = self._values(split, prices, refine=True)
        best = int(np.argmax(values))
        value = self._rounded_up(float(values[best]))
        if value > self.value:
            self.value, self.split, self.prices = value, split, prices[best]

    def _values(
        self, split: tuple[Product, ...], prices: FloatArray, *, refine: bool
    ) -> FloatArray:
        """Bound on the cut for each row of prices; shape (B,)."""
        floor = np.zeros((len(prices), self.size + 1))
        for product in split:
            share = product.chain.weight / self.chain_weight if self.has_chain else 0.0
            replica = replica_floor(product, share * prices, self.size)
            floor += copies_floor(replica, product.copies, self.size)
        constant = prices.sum(axis=1) * (self.world // self.stages)
        totals = [
            cheapest_sizes(row, self.classes, self.world, refine=refine)
            for row in floor
        ]
        values: FloatArray = (np.array(totals) - constant) / 2
        return values

    def _work(self, batch: int) -> int:
        """Array elements one evaluation of ``batch`` price vectors touches, about."""
        work = 0
        for product in self.split:
            stage = min(self.size, product.stage[0].size * product.stage[1].size)
            replica = min(self.size, stage * self.stages)
            work += 8 * stage * replica * self.stages + 6 * replica * self.size
        return batch * work

    def _rounded_up(self, value: float) -> float:
        """The least multiple of the quantum not below ``value``, errors allowed for."""
        quanta = Fraction(value * (1.0 - ROUNDING)) / self.quantum
        return float(max(0, ceil(quanta - Fraction(1, 10**6))) * self.quantum)


def _common_divisor(weights: Iterable[float]) -> Fraction:
    """Greatest number of which all positive weights are multiples, read as decimals."""
    numbers = [Fraction(str(weight)) for weight in weights if weight > 0]
    scale = lcm(*(number.denominator for number in numbers))
    return Fraction(gcd(*(int(number * scale) for number in numbers)) or 1, scale)
