"""Constants from steps and beliefs: closed forms on lines."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from placer.calibrate.beliefs import most_likely

MEASURED = np.array([2.0, 3.0, 5.0])


def lines(rows: list[list[float]]):
    """Steps that are straight lines in the constants, and 1 s at 0."""
    table = np.array(rows)
    return lambda constants: 1.0 + table @ constants


def test_one_constant_by_hand() -> None:
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


def test_where_nothing_is_believed_steps_alone_tell() -> None:
    """Two constants of two steps are met; neither is known without its step."""
    found = most_likely(
        lines([[1.0, 0.0], [0.0, 4.0]]), MEASURED[:2], 0.05, np.array([inf, inf])
    )
    assert found.values == pytest.approx([1.0, 0.5])
    assert np.isnan(found.left_out).all()


def test_left_out_is_what_the_others_say() -> None:
    """On lines, the same as leaving the step out and asking again."""
    rows = [[1.0, 0.3], [2.0, -0.4], [3.0, 1.1]]
    beliefs = np.array([inf, 0.7])
    found = most_likely(lines(rows), MEASURED, 0.05, beliefs)
    for index in range(3):
        others = [i for i in range(3) if i != index]
        again = most_likely(
            lines([rows[i] for i in others]), MEASURED[others], 0.05, beliefs
        )
        step = lines(rows)(again.values)[index]
        assert found.left_out[index] == pytest.approx(step, rel=1e-5)


def test_steps_far_off_widen_the_intervals() -> None:
    """Steps that agree leave the deviation as stated; these do not."""
    rows = [[1.0], [1.0], [1.0]]
    alike = most_likely(lines(rows), np.full(3, 2.0), 0.05, np.array([inf]))
    apart = most_likely(lines(rows), np.array([1.5, 2.0, 2.5]), 0.05, np.array([inf]))
    assert alike.covariance[0, 0] == pytest.approx(0.1**2 / 3, rel=1e-6)
    assert apart.covariance[0, 0] > 4 * alike.covariance[0, 0]


def test_a_wall_does_not_stop_the_way_down() -> None:
    """As an efficiency of 1: upwards nothing changes, downwards the step grows."""
    found = most_likely(
        lambda at: 1.0 + np.exp(-np.minimum(at, 0.0)), np.array([9.0]), 0.05,
        np.array([10.0]),
    )  # fmt: skip
    assert found.steps[0] == pytest.approx(9.0, rel=1e-3)
