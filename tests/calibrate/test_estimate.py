"""Constants and their intervals: closed forms, and invented series in number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from placer.calibrate.configuration import scatter_of
from placer.calibrate.estimate import CONFIDENCE, Estimate, estimate, quantile

FloatArray = npt.NDArray[np.float64]

TIME, FIXED = 0.1, 0.3  # s


def relative(slopes: FloatArray, measured: FloatArray) -> FloatArray:
    """Rows of a line without communication, relative to what was measured."""
    return np.stack((slopes, np.ones_like(slopes)), axis=1) / measured[:, None]


def fitted(slopes: FloatArray, measured: FloatArray, variance: float = 0.0) -> Estimate:
    count = len(slopes)
    variances = np.full(count, variance)
    return estimate(relative(slopes, measured), np.ones(count), variances, 0)


def test_without_scatter_it_is_the_textbook() -> None:
    """Least squares on relative errors, s^2 over n - p, and Student's t."""
    slopes = np.array([8.0, 16.0, 24.0, 72.0, 144.0])
    measured = np.array([1.11, 1.88, 2.71, 7.46, 14.8])
    found = fitted(slopes, measured)
    rows = relative(slopes, measured)
    expected, squares, _, _ = np.linalg.lstsq(rows, np.ones(5), rcond=None)
    variance = squares.item() / 3
    covariance = variance * np.linalg.inv(rows.T @ rows)
    assert found.values == pytest.approx(expected, rel=1e-12)
    assert found.lack == pytest.approx(variance, rel=1e-12)
    assert found.covariance == pytest.approx(covariance, rel=1e-9)
    assert found.half_width(np.array([1.0, 0.0])) == pytest.approx(
        quantile(CONFIDENCE, 3) * np.sqrt(covariance[0, 0]), rel=1e-9
    )


def test_points_that_scatter_more_count_less() -> None:
    """Of two that disagree the steadier one wins."""
    rows = np.ones((2, 1))
    found = estimate(rows, np.array([1.0, 2.0]), np.array([1.0, 3.0]), 4)
    assert found.values == pytest.approx([1.25])
    assert found.covariance.item() == pytest.approx(0.75)
    assert found.degrees == 1 + 4  # scatter alone explains that they disagree


def test_no_constant_is_negative() -> None:
    """A line that would meet zero late goes through it; the other one is refitted."""
    slopes = np.array([8.0, 16.0, 32.0])
    measured = TIME * slopes - 0.2
    found = fitted(slopes, measured)
    through_zero = np.linalg.lstsq(
        (slopes / measured)[:, None], np.ones(3), rcond=None
    )[0]
    assert found.values == pytest.approx([through_zero.item(), 0.0])
    assert found.degrees == 2
    assert found.covariance[1].tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("lack", [0.0, 0.002, 0.01])
@pytest.mark.parametrize("points", [4, 8])
def test_intervals_hold_the_truth_as_often_as_they_say(
    points: int, lack: float
) -> None:
    """95 of 100 invented series: both constants, and one run of a new configuration.

    Three runs of each configuration scatter by 0.2 %; what the model misses is drawn
    anew for each. Nothing is known but the runs.
    """
    random = np.random.default_rng(points)
    noise, trials = 0.002, 600
    slopes = np.geomspace(8, 144, points)
    hits = np.zeros(3)
    for _ in range(trials):
        missed = 1 + lack * random.standard_normal((points, 1))
        runs = (TIME * slopes + FIXED)[:, None] * missed
        runs = runs * (1 + noise * random.standard_normal((points, 3)))
        known = scatter_of([tuple(row) for row in runs.tolist()])
        measured = np.median(runs, axis=1)
        rows = relative(slopes, measured)
        found = estimate(rows, np.ones(points), known.medians, known.degrees)
        step = TIME * 30 + FIXED
        step *= 1 + lack * random.standard_normal() + noise * random.standard_normal()
        row = np.array([30.0, 1.0]) / step
        widths = (
            found.half_width(np.array([1.0, 0.0])),
            found.half_width(np.array([0.0, 1.0])),
            found.half_width(row, found.lack + known.run),
        )
        errors = (
            found.values[0] - TIME,
            found.values[1] - FIXED,
            row @ found.values - 1,
        )
        hits += [
            width is not None and abs(error) <= width
            for error, width in zip(errors, widths, strict=True)
        ]
    shares = hits / trials
    assert (shares > CONFIDENCE - 0.025).all(), shares
    assert (shares < 0.995).all(), shares
