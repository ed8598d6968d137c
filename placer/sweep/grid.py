"""The grid of a sweep: what each option lists, and every combination of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeVar

from placer.base.errors import InputError, Problem, refuse
from placer.base.naming import named
from placer.base.units import parse_bandwidth, parse_number

Point = Mapping[str, int | float]
Axes = Mapping[str, Sequence[int | float]]  # values of each swept key, in their order
Value = TypeVar("Value", int, float)

# Sizes from which others follow: dp from the GPUs, micro-batches from the batch.
GPUS, GLOBAL_BATCH = "gpus", "global_batch"
# Keys of a point, in the order of rows.
SIZES = ("dp", "tp", "pp", "cp", "ep", "vp", "micro_batches", GPUS, GLOBAL_BATCH)
NIC_RATE = "nic_rate_bytes_per_s"
OVERSUBSCRIPTION = "oversubscription"

MAX_POINTS = 10_000
MAX_SIZE = 2**20

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})|:([0-9]{1,9}):([0-9]{1,9}))?")


def parse_sizes(text: str) -> tuple[int, ...]:
    """Whole numbers of a list: ``112,128``, ``1-8``, ``8:128:8`` (both ends included).

    Raises `ValueError` if an item is none of these, is below 1, or a number comes
    twice.
    """
    values: list[int] = []
    for item in _items(text):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise ValueError(f'"{item}" is not a number or a range such as 1-8')
        first = int(match[1])
        last = int(match[2] or match[3] or first)
        step = int(match[4] or 1)
        if step < 1 or last < first:
            raise ValueError(f'the range "{item}" is empty')
        if not 1 <= first <= last <= MAX_SIZE:
            raise ValueError(f'"{item}" is not from 1 to {MAX_SIZE}')
        numbers = range(first, last + 1, step)
        if len(values) + len(numbers) > MAX_POINTS:
            raise ValueError(f"more than {MAX_POINTS:,} values")
        values += numbers
    return _distinct(values)


def parse_rates(text: str) -> tuple[float, ...]:
    """Bandwidths of a list, B/s: ``50GB/s,400Gb/s``.

    Raises `ValueError` if an item is not a bandwidth of at least 1 B/s, or one comes
    twice.
    """
    return _numbers(text, parse_bandwidth, 1.0)


def parse_oversubscriptions(text: str) -> tuple[str, tuple[float, ...]]:
    """Tier (empty for the outermost) and ratios of ``1,2,4`` or ``TIER=1,2,4``.

    Raises `ValueError` if an item is not a number above 0, or one comes twice.
    """
    tier, equals, ratios = text.rpartition("=")
    if equals and not tier.strip():
        raise ValueError(f'"{text}" names no tier before the =')
    return tier.strip(), _numbers(ratios, parse_number, 1e-6)


def listed_axes(
    sizes: Mapping[str, Sequence[int] | None],
    rates: Sequence[float],
    ratios: Sequence[float] | Mapping[str, Sequence[float]],
) -> Axes:
    """The values of lists: sizes by key, NIC rates (B/s), oversubscriptions by tier."""
    by_tier = ratios if isinstance(ratios, Mapping) else {"": ratios}
    lists: list[tuple[str, Sequence[float], float, float]] = [
        *((key, values or (), 1, MAX_SIZE) for key, values in sizes.items()),
        (NIC_RATE, rates, 1.0, math.inf),
        *(
            ("_".join(filter(None, (OVERSUBSCRIPTION, tier))), values, 1e-6, math.inf)
            for tier, values in by_tier.items()
        ),
    ]
    problems = [
        Problem(f"{value:g} is not from {low:g} to {high:g}", key=key)
        for key, values, low, high in lists
        for value in values
        if not low <= value <= high
    ]
    problems += [
        Problem("a value is given twice", key=key)
        for key, values, *_ in lists
        if len(set(values)) < len(values)
    ]
    refuse(problems)
    return {key: tuple(values) for key, values, *_ in lists if len(values)}


def grid(axes: Axes) -> list[Point]:
    """Every combination of the axes' values, the last axis fastest."""
    if not axes:
        raise InputError(
            f"nothing to sweep: give lists, such as sizes of {named('dp')}"
        )
    for key, follows in ((GPUS, "dp"), (GLOBAL_BATCH, "micro_batches")):
        if key in axes and follows in axes:
            raise InputError(f"{follows} follows from {key}: sweep one of the two")
    count = math.prod(map(len, axes.values()))
    if count > MAX_POINTS:
        raise InputError(f"the grid has {count:,} points, the most is {MAX_POINTS:,}")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def _items(text: str) -> list[str]:
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise ValueError(f'"{text}" has an empty item')
    return items


def _numbers(
    text: str, parse: Callable[[str], float], minimum: float
) -> tuple[float, ...]:
    values = [parse(item) for item in _items(text)]
    for value in values:
        if value < minimum:
            raise ValueError(f"{value:g} is too small, the least is {minimum:g}")
    return _distinct(values)


def _distinct(values: list[Value]) -> tuple[Value, ...]:
    seen: set[float] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{value:g} is given twice")
        seen.add(value)
    return tuple(values)
