"""Times of ranks, stages or replicas from a CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.errors import InputError, Problem, refuse

if TYPE_CHECKING:
    from placer.job.axes import Parallelism

_AXIS = {"stage": "pp", "replica": "dp"}
KEYS = ("rank", *_AXIS)


def read_times(
    text: str, source: str, axes: Parallelism
) -> tuple[IntArray, FloatArray]:
    """Row of every rank, -1 for none, and the seconds of each row; shapes (R,), (M,).

    The first line names the columns: ``seconds``, and ``rank``, or ``stage`` and
    ``replica`` or one of them. Ranks of a stage or a replica share its time.
    """
    lines = list(csv.reader(StringIO(text)))
    head = [name.strip() for name in lines[0]] if lines else []
    keys = [name for name in head if name in KEYS]
    if "seconds" not in head or not keys or len({*head}) < len(head):
        message = "expected the columns seconds and rank, or stage, or replica"
        raise InputError([Problem(message, source, 1, 1, hint="such as rank,seconds")])
    at = {"rank": np.arange(axes.world_size)}
    at |= {key: axes.coordinates[axis] for key, axis in _AXIS.items()}
    row_of_rank = np.full(axes.world_size, -1)
    seconds: list[float] = []
    problems: list[Problem] = []
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        entry = dict(zip(head, map(str.strip, cells), strict=False))
        found = list(_wrong(entry, keys, at))
        if not found:
            mask = np.ones(axes.world_size, dtype=bool)
            for key in keys:
                mask &= at[key] == int(entry[key])
            if (row_of_rank[mask] >= 0).any():
                found = ["has a time already"]
            row_of_rank[mask] = len(seconds)
            seconds.append(float(entry["seconds"]) if not found else 1.0)
        problems += [Problem(why, source, number, 1) for why in found]
    if not seconds and not problems:
        problems.append(Problem("there are no times", source, 1, 1))
    refuse(problems)
    return row_of_rank, np.array(seconds)


def _wrong(
    entry: dict[str, str], keys: list[str], at: dict[str, IntArray]
) -> Iterator[str]:
    """What is wrong with one line."""
    for key in keys:
        text, last = entry.get(key, ""), int(at[key].max())
        if not (text.isascii() and text.isdecimal() and int(text) <= last):
            yield f'{key}: expected 0 to {last}, got "{text}"'
    text = entry.get("seconds", "")
    try:
        good = 0 < float(text) < math.inf
    except ValueError:
        good = False
    if not good:
        yield f'seconds: expected a time above 0, got "{text}"'
