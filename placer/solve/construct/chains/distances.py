"""Distances between leaf domains, and between rows of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placer.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between leaf domains.

    Attributes
    ----------
    domains : ndarray, shape (levels, leaves)
        Domain of each leaf at every level from the leaves on that costs more to leave
        than the one below.
    steps : ndarray, shape (levels,)
        What leaving a domain of each level adds to the distance.
    """

    domains: IntArray
    steps: FloatArray

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """Distance of rows of leaves, summed over the last axis; others broadcast."""
        total = np.zeros(())
        for domain, step in zip(self.domains, self.steps, strict=True):
            total = total + step * (domain[first] != domain[second]).sum(axis=-1)
        return total

    def of_all(self, first: IntArray, second: IntArray) -> FloatArray:
        """Distance of every row from every row; shape (rows, other rows)."""
        return np.stack([self.between(row, second) for row in first])
