"""What numpy needs several lines for, against plain loops."""

import random

import numpy as np
import pytest

from placer.base.arrays import by_appearance, equal_runs, grouped, row_of_number


def drawn(seed: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(4) for _ in range(rng.randrange(1, 12))]


@pytest.mark.parametrize("seed", range(20))
def test_values_are_numbered_as_they_appear(seed: int) -> None:
    """The different values in order, and the number of each entry's."""
    values = drawn(seed)
    kept, number = by_appearance(np.array(values))
    assert kept.tolist() == list(dict.fromkeys(values))
    assert kept[number].tolist() == values


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_one_value_make_up_all(seed: int) -> None:
    """Runs follow each other, and neighbours have other values."""
    values = np.array(drawn(seed))
    begins, lengths = equal_runs(values)
    assert np.repeat(values[begins], lengths).tolist() == values.tolist()
    assert (np.diff(values[begins]) != 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_values_are_grouped_in_their_order(seed: int) -> None:
    """A group for each label that there is, none for an empty row."""
    label = drawn(seed)
    groups = grouped(np.arange(len(label)), np.array(label))
    expected = [
        [i for i, own in enumerate(label) if own == o] for o in sorted({*label})
    ]
    assert [group.tolist() for group in groups] == expected
    assert grouped(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)) == []


def test_every_number_has_its_row() -> None:
    """The row that holds each number."""
    assert row_of_number(np.array([[2, 0], [1, 3]])).tolist() == [0, 1, 0, 1]
