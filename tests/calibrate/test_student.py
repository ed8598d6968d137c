"""Student's t against the tables."""

from __future__ import annotations

import pytest

from placer.calibrate.estimate import quantile


@pytest.mark.parametrize(
    ("share", "degrees", "expected"),
    [
        (0.95, 1, 12.7062),
        (0.95, 2, 4.30265),
        (0.95, 3, 3.18245),
        (0.95, 4, 2.77645),
        (0.95, 7, 2.36462),
        (0.95, 30, 2.04227),
        (0.99, 5, 4.03214),
        (0.90, 6, 1.94318),
        (0.95, 1000, 1.96234),
    ],
)
def test_quantiles_are_those_of_the_table(
    share: float, degrees: int, expected: float
) -> None:
    """NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2."""
    assert quantile(share, degrees) == pytest.approx(expected, rel=3e-6)
