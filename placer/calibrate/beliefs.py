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

from placer.base.arrays import FloatArray

Steps = Callable[[FloatArray], FloatArray]

_APART = 1e-3  # of a constant, between which a line is drawn
_SETTLED = 1e-5
_FARTHEST = 1.0  # that a constant goes at once: e times as much
_MOST_ROUNDS, _HALVINGS = 40, 6


@dataclass(frozen=True, eq=False)
class Posterior:
    """The most likely constants; p constants, n steps."""

    values: FloatArray  # (p,)
    covariance: FloatArray  # (p, p)
    steps: FloatArray  # (n,), s: of the model, with these constants
    # (n,), s: of the model, with the constants that the other steps and the beliefs
    # give, on the lines that touch it here.
    left_out: FloatArray


def most_likely(
    steps: Steps, measured: FloatArray, deviation: float, beliefs: FloatArray
) -> Posterior:
    """The most likely constants.

    ``steps``: steps, s, of constants. ``measured``: shape (n,), s. ``deviation``: of a
    measured step from the model's, relative. Where the steps found are further off than
    that, the covariance grows as their squares do. ``beliefs`` ((p,)): standard
    deviation of each constant; infinite where nothing is believed.
    """
    goal = _Goal(_cached(steps), measured, deviation, beliefs)
    at = goal.least(np.zeros(len(beliefs)))
    at = min([at, *map(goal.least, goal.others(at))], key=goal.loss)
    known = goal.steps(at)
    rows, off = goal.lines(at)
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


def _cached(steps: Steps) -> Steps:
    """Steps that are worked out once each."""
    known: dict[bytes, FloatArray] = {}

    def once(at: FloatArray) -> FloatArray:
        key = at.tobytes()
        if key not in known:
            known[key] = steps(at)
        return known[key]

    return once


@dataclass(frozen=True, eq=False)
class _Goal:
    """What is to be least; attributes are arguments of `most_likely`."""

    steps: Steps
    measured: FloatArray
    deviation: float
    beliefs: FloatArray

    def loss(self, at: FloatArray) -> float:
        """The sum of squares at the head of this module."""
        off = (self.measured - self.steps(at)) / (self.measured * self.deviation)
        return float(off @ off + ((at / self.beliefs) ** 2).sum())

    def others(self, at: FloatArray) -> list[FloatArray]:
        """Where to begin again: with what steps tell nothing of lower than believed.

        Where all traffic hides behind work no step leads to links on which it would
        not. So each constant of which steps tell less than was believed starts lower
        too, alone and with the others.
        """
        rows, _ = self.lines(at)
        silent = (rows**2).sum(axis=0) < self.beliefs**-2.0
        lower = [
            at - self.beliefs[i] * np.eye(len(at))[i] for i in np.flatnonzero(silent)
        ]
        if len(lower) > 1:
            lower.append(np.where(silent, at - self.beliefs, at))
        return lower

    def least(self, at: FloatArray) -> FloatArray:
        """Where the way down from some constants ends."""
        for _ in range(_MOST_ROUNDS):
            rows, off = self.lines(at)
            matrix = np.vstack([rows, np.diag(1 / self.beliefs)])
            wanted = np.concatenate([off, -at / self.beliefs])
            change = np.linalg.lstsq(matrix, wanted, rcond=None)[0]
            change *= min(1.0, _FARTHEST / float(abs(change).max() or 1.0))
            loss = self.loss(at)
            for _ in range(_HALVINGS):
                if self.loss(at + change) <= loss:
                    break
                change /= 2
            else:
                return at  # no way is down: this is as near as numbers tell
            at = at + change
            if float(abs(change).max()) < _SETTLED:
                break
        return at

    def lines(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What a unit of each constant adds to each step, and what the steps lack.

        Both in deviations; shapes (n, p) and (n,).
        """
        known = self.steps(at)
        # Downwards: an efficiency of 1 can grow no more.
        moved = [known - self.steps(at - _APART * one) for one in np.eye(len(at))]
        scale = self.measured * self.deviation
        rows = np.stack(moved, axis=1) / _APART
        return rows / scale[:, None], (self.measured - known) / scale
