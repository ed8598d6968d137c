"""Integer objectives whose bounds hold for the real numbers they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, gcd, lcm

# Largest coefficient, in units, and largest denominator of numbers taken as written.
MOST_UNITS = 10**9
MOST_DENOMINATOR = 10**6
# Units of the whole objective where numbers have no common unit.
PRECISION = 10**12


def unit_of(numbers: Sequence[float], total: float) -> Fraction:
    """The unit in which to count: a common divisor, else a tiny share of ``total``.

    Numbers are read as decimals. Rounding each of a few hundred terms down to the share
    lowers their sum by less than what counts as equal.
    """
    exact = [Fraction(str(number)) for number in numbers if number]
    scale = lcm(*(number.denominator for number in exact))
    if scale <= MOST_DENOMINATOR and exact:
        unit = Fraction(gcd(*(int(number * scale) for number in exact)), scale)
        if max(map(abs, exact)) / unit <= MOST_UNITS:
            return unit
    return Fraction(total) / PRECISION


def in_units(number: float, unit: Fraction) -> int:
    """``number`` in units, rounded down."""
    return floor(Fraction(str(number)) / unit)
