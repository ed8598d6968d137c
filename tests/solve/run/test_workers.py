"""Pieces of work side by side."""

from threading import Barrier

import pytest

from placer.solve.run.workers import in_order


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_error_is_that_of_the_first_item_that_fails(workers):
    """The last of the first four fails first, by the clock."""
    began = Barrier(min(workers, 4), timeout=10.0)

    def work(item):
        if item < workers:
            began.wait()
        if item >= 1:
            raise ValueError(item)

    with pytest.raises(ValueError, match=r"^1$"):
        in_order(work, range(4), workers)
