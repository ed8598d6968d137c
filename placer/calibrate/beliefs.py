"""Constants from measured steps and from what was believed of them before.

Each measured step is that of the model times ``1 + noise`` of a known deviation. Each
constant is a logarithm, and believed to be 0 with a deviation of its own, or anything.
The most likely constants make this least:

    sum over steps of ((measured - step) / measured / deviation)^2
    + sum over constants of (constant / belief)^2

Gauss and Newton's method finds them. Where few steps say little of a constant it stays
near 0 (Tikhonov; in the words of Bayes, the maximum of the posterior, whose covariance
at the lines that touch the model there is the inverse of the sum of squares' matrix).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Steps = Callable[[FloatArray], FloatArray]

_APART = 1e-3  # of a constant, between which a line is drawn
_SETTLED = 1e-5
_FARTHEST = 1.0  # that a constant goes at once: e times as much
_MOST_ROUNDS, _HALVINGS = 40, 6


@dataclass(frozen=True, eq=False)
class Posterior:
    """The most likely constants; p constants, n steps.

    Attributes
    ----------
    values : ndarray, shape (p,)
    covariance : ndarray, shape (p, p)
    steps : ndarray, shape (n,), s
        Of the model, with these constants.
    left_out : ndarray, shape (n,), s
        Of the model, with the constants that the other steps and the beliefs give, on
        the lines that touch it here.
    """

    values: FloatArray
    covariance: FloatArray
    steps: FloatArray
    left_out: FloatArray


def most_likely(
    steps: Steps, measured: FloatArray, deviation: float, beliefs: FloatArray
) -> Posterior:
    """The most likely constants.

    Parameters
    ----------
    steps : callable
        Steps, s, of constants.
    measured : ndarray, shape (n,), s
    deviation : float
        Of a measured step from the model's, relative. Where the steps found are
        further off than that, the covariance grows as their squares do.
    beliefs : ndarray, shape (p,)
        Standard deviation of each constant; infinite where nothing is believed.
    """
    at = np.zeros(len(beliefs))
    known = steps(at)
    for _ in range(_MOST_ROUNDS):
        rows, off = _lines(steps, at, known, measured, deviation)
        change = _solved(rows, off, at, beliefs)
        change *= min(1.0, _FARTHEST / float(abs(change).max() or 1.0))
        loss = _loss(known, measured, deviation, at, beliefs)
        for _ in range(_HALVINGS):
            there = steps(at + change)
            if _loss(there, measured, deviation, at + change, beliefs) <= loss:
                break
            change /= 2
        else:
            break  # no way is down: this is as near as numbers tell
        at, known = at + change, there
        if float(abs(change).max()) < _SETTLED:
            break
    rows, off = _lines(steps, at, known, measured, deviation)
    matrix = rows.T @ rows + np.diag(beliefs**-2.0)
    inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    pull = np.einsum("np,pq,nq->n", rows, inverse, rows)
    spare = len(measured) - float(pull.sum())
    wide = max(1.0, float(off @ off) / spare) if spare > 0.5 else 1.0
    # Without one of the steps the constants move by what it pulled (Sherman and
    # Morrison 1950); a step that alone tells a constant has no other to tell it.
    others = off / np.maximum(1.0 - pull, 1e-9)
    left_out = measured * (1.0 - others * deviation)
    left_out = np.where(pull > 1 - 1e-6, np.nan, left_out)
    return Posterior(at, wide * inverse, known, left_out)


def _lines(
    steps: Steps,
    at: FloatArray,
    known: FloatArray,
    measured: FloatArray,
    deviation: float,
) -> tuple[FloatArray, FloatArray]:
    """What each constant adds to each step, and what the steps lack, in deviations."""
    # Downwards: an efficiency of 1 can grow no more.
    moved = [known - steps(at - _APART * one) for one in np.eye(len(at))]
    rows = np.stack(moved, axis=1) / _APART
    scale = measured * deviation
    return rows / scale[:, None], (measured - known) / scale


def _solved(
    rows: FloatArray, off: FloatArray, at: FloatArray, beliefs: FloatArray
) -> FloatArray:
    """The change of constants that is best on the lines."""
    matrix = np.vstack([rows, np.diag(1 / beliefs)])
    wanted = np.concatenate([off, -at / beliefs])
    found: FloatArray = np.linalg.lstsq(matrix, wanted, rcond=None)[0]
    return found


def _loss(
    known: FloatArray,
    measured: FloatArray,
    deviation: float,
    at: FloatArray,
    beliefs: FloatArray,
) -> float:
    off = (measured - known) / (measured * deviation)
    return float(off @ off + ((at / beliefs) ** 2).sum())
