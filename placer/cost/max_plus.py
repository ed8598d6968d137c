"""Max-plus matrices: what many repetitions of the same work do to their start.

In max-plus algebra "plus" is the maximum and "times" the sum, so ``(A x)_i = max over j
of A_ij + x_j``. Work that waits for several results and then takes its time is such a
product (Baccelli et al. 1992, *Synchronization and Linearity*, chapter 2).
"""

from __future__ import annotations

import numpy as np

from placer.arrays import FloatArray


def identity(size: int) -> FloatArray:
    """The matrix that changes nothing: 0 on the diagonal, else minus infinity."""
    unit = np.full((size, size), -np.inf)
    np.fill_diagonal(unit, 0.0)
    return unit


def times_power(matrices: FloatArray, power: int, vectors: FloatArray) -> FloatArray:
    """``A^power x`` of each matrix and vector; shape (D, n).

    By repeated squaring: ``D n^3 log2(power)`` sums.

    Parameters
    ----------
    matrices : ndarray, shape (D, n, n)
    power : int
    vectors : ndarray, shape (D, n)
    """
    while power:
        if power & 1:
            vectors = (matrices + vectors[:, None, :]).max(axis=2)
        power >>= 1
        if power:
            matrices = _squares(matrices)
    return vectors


def _squares(matrices: FloatArray) -> FloatArray:
    """``A A`` of each matrix."""
    squares = np.full_like(matrices, -np.inf)
    for middle in range(matrices.shape[1]):
        through = matrices[:, :, middle, None] + matrices[:, None, middle, :]
        np.maximum(squares, through, out=squares)
    return squares
