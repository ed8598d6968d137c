"""When two steps are too near each other to tell."""

from __future__ import annotations

import pytest

from placer.cost.noise import DIFFERENCE, noise, noise_of


@pytest.mark.parametrize(
    ("after", "within"),
    [
        (1.0, True),
        (1.0 + 0.9 * DIFFERENCE, True),
        (1.0 - 0.9 * DIFFERENCE, True),
        (1.0 + 1.1 * DIFFERENCE, False),
        (1.0 - 1.1 * DIFFERENCE, False),
        (2.0, False),
    ],
)
def test_small_differences_are_within(after: float, within: bool) -> None:
    """Either way, as a share of the step before."""
    assert noise(1.0, after) == {"relative": DIFFERENCE, "within": within}


def test_another_compute_does_not_cancel() -> None:
    """Two scores are held against each other only if their compute is one."""
    old = {"step_time_s": 1.0, "compute_s": 0.5}
    new = {"step_time_s": 1.001, "compute_s": 0.5}
    assert noise_of(old, new) == {"relative": DIFFERENCE, "within": True}
    assert noise_of(old, new | {"compute_s": 0.6}) is None
    assert noise_of(old | {"compute_s": 0.0}, new | {"compute_s": 0.0}) is None
