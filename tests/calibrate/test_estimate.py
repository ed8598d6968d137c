"""Constants of steps and beliefs: closed forms, and invented series in number."""

from math import inf

import numpy as np
import pytest

from placer.calibrate.beliefs import most_likely
from placer.calibrate.configuration import scatter_of
from placer.calibrate.estimate import CONFIDENCE, estimate, quantile

TIME, FIXED = 0.1, 0.3  # s


def relative(slopes, measured):
    """Rows of a line without communication, relative to what was measured."""
    return np.stack((slopes, np.ones_like(slopes)), axis=1) / measured[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("lack", [0.0, 0.002, 0.01])
@pytest.mark.parametrize("points", [4, 8])
def test_intervals_hold_the_truth_as_often_as_they_say(points, lack):
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
        widths = [found.half_width(own) for own in np.eye(2)]
        widths.append(found.half_width(row, found.lack + known.run))
        errors = [*(found.values - (TIME, FIXED)), row @ found.values - 1]
        hits += [
            width is not None and abs(error) <= width
            for error, width in zip(errors, widths, strict=True)
        ]
    shares = hits / trials
    assert (shares > CONFIDENCE - 0.025).all(), shares
    assert (shares < 0.995).all(), shares


@pytest.mark.parametrize(
    ("share", "degrees", "expected"),
    [
        (0.95, 1, 12.7062), (0.95, 2, 4.30265), (0.95, 3, 3.18245), (0.95, 4, 2.77645),
        (0.95, 7, 2.36462), (0.95, 30, 2.04227), (0.95, 1000, 1.96234),
        (0.99, 5, 4.03214), (0.90, 6, 1.94318),
    ],
)  # fmt: skip
def test_quantiles_are_those_of_the_table(share, degrees, expected):
    """NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2."""
    assert quantile(share, degrees) == pytest.approx(expected, rel=3e-6)


MEASURED = np.array([2.0, 3.0, 5.0])


def lines(rows):
    """Steps that are straight lines in the constants, and 1 s at 0."""
    table = np.array(rows)
    return lambda constants: 1.0 + table @ constants


def test_one_constant_by_hand():
    """One step of 2 s, 10 % sure, slope 1; the constant is believed to be 0 +- 1.

    Off is (2 - 1 - x) / 0.2, so 25 (1 - x)^2 + x^2 is least at 25 / 26; its variance
    is 1 / 26.
    """
    found = most_likely(lines([[1.0]]), MEASURED[:1], 0.1, np.array([1.0]))
    assert found.values[0] == pytest.approx(25 / 26, rel=1e-6)
    assert found.covariance[0, 0] == pytest.approx(1 / 26, rel=1e-6)
    assert found.steps[0] == pytest.approx(1 + 25 / 26)
    # Without the step the constant is what was believed: 0.
    assert found.left_out[0] == pytest.approx(1.0)


def test_left_out_is_what_the_others_say():
    """On lines, the same as leaving the step out and asking again."""
    rows = [[1.0, 0.3], [2.0, -0.4], [3.0, 1.1]]
    beliefs = np.array([inf, 0.7])
    found = most_likely(lines(rows), MEASURED, 0.05, beliefs)
    for index in range(3):
        others = [i for i in range(3) if i != index]
        kept = lines([rows[i] for i in others])
        again = most_likely(kept, MEASURED[others], 0.05, beliefs)
        step = lines(rows)(again.values)[index]
        assert found.left_out[index] == pytest.approx(step, rel=1e-5)
