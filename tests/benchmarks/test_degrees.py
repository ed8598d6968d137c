"""The benchmark of searches for degrees, at a size of a moment."""

import pytest

from benchmarks.degrees import (
    Case,
    measure,
)


@pytest.mark.slow
def test_a_search_is_measured() -> None:
    """Step and proof are those of the command."""
    row = measure(Case("hosts", "dgx-h100-4x8", "quickstart"), 16)
    assert row.cpu_s > 0
    assert row.choices > 1000
    assert 0 <= row.gap < 1e-3
