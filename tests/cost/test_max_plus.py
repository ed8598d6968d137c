"""Max-plus powers against products one by one, in plain loops."""

import numpy as np
import pytest

from placer.cost.max_plus import identity, times_power

INF = float("inf")


def applied(matrix: np.ndarray, vector: list[float], times: int) -> list[float]:
    """The matrix applied to the vector again and again."""
    size = range(len(vector))
    for _ in range(times):
        vector = [max(matrix[i][j] + vector[j] for j in size) for i in size]
    return vector


@pytest.mark.parametrize("power", [0, 1, 2, 3, 7, 8, 25])
def test_a_power_is_many_products(power: int) -> None:
    """Repeated squaring gives what so many products give; missing edges stay so."""
    draw = np.random.default_rng(power)
    matrices = draw.integers(0, 50, (4, 6, 6)).astype(float)
    matrices[draw.random(matrices.shape) < 0.5] = -INF
    vectors = draw.integers(0, 50, (4, 6)).astype(float)
    found = times_power(matrices, power, vectors)
    for matrix, vector, row in zip(matrices, vectors, found, strict=True):
        assert row.tolist() == applied(matrix, vector.tolist(), power)


def test_identity() -> None:
    """The identity changes nothing."""
    vector = np.array([[3.0, -1.0, 7.0]])
    assert (times_power(identity(3)[None], 9, vector) == vector).all()
