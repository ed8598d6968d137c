"""Exchanges beside what libraries and users published."""

import pytest

from validation.exchanges import DISPATCHES, TRANSFERS, dispatch_rate, transfer_s


@pytest.mark.parametrize("point", DISPATCHES, ids=lambda point: point.name)
def test_dispatch_and_combine_as_measured(point):
    """A dispatch on NVLink is rated as the call of a framework, within 15 %.

    It is slower than the kernel, and lies within 8 % of calls with 32 multiprocessors.
    """
    found = dispatch_rate(point.machine, point.gpus)
    assert found < point.kernel
    assert found == pytest.approx(point.call, rel=0.15)
    assert not point.wide or found == pytest.approx(point.wide, rel=0.08)


@pytest.mark.parametrize("point", TRANSFERS, ids=lambda point: point.name)
def test_transfers_across_racks_as_measured(point):
    """A pair of GPUs, a fan-out and eight pairs: within 10 %."""
    assert transfer_s(point) == pytest.approx(point.measured, rel=0.10)
