"""The sorts of arrays that signatures name, and what numpy needs several lines for."""

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def by_appearance(values: IntArray) -> tuple[IntArray, IntArray]:
    """Different values as they first appear, and the number of each entry's value."""
    kept, first, entry = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return kept[order], number[entry]


def earlier_alike(values: IntArray) -> IntArray:
    """How many entries before each have its value; shape of the values."""
    order = np.argsort(values, kind="stable")
    found = np.empty_like(order)
    in_order = values[order]
    found[order] = np.arange(len(order)) - np.searchsorted(in_order, in_order)
    return found


def row_of_number(rows: IntArray) -> IntArray:
    """Row that holds each number from 0 on, where every number stands once."""
    found = np.empty(rows.size, dtype=np.int64)
    found[rows] = np.arange(len(rows))[:, None]
    return found


def equal_runs(values: IntArray) -> tuple[IntArray, IntArray]:
    """First entries and lengths of the runs of one value, none of them below 0."""
    begins = np.flatnonzero(np.diff(values, prepend=-1))
    return begins, np.diff(begins, append=len(values))


def grouped(values: IntArray, label: IntArray) -> list[IntArray]:
    """The values with each label, in their order; shape of ``label`` as of them."""
    if not len(values):
        return []
    order = np.argsort(label, kind="stable")
    return np.split(values[order], np.flatnonzero(np.diff(label[order])) + 1)


def divisors(number: int) -> list[int]:
    """Of a number, ascending."""
    small = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})
