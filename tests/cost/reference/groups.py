"""Coordinates of ranks and the groups they form, by counting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.job.axes import Parallelism

Coordinates = list[dict[str, int]]


def coordinates(axes: Parallelism) -> Coordinates:
    """Coordinates of every rank on ``tp cp pp dp`` and on ``etp ep edp``.

    Ranks count through the axes with the first of the order fastest; experts count once
    more, with axes of their own and without ``cp`` (Megatron-LM, ``RankGenerator``).
    """
    dense = {"tp": axes.tp, "cp": axes.cp, "pp": axes.pp, "dp": axes.dp}
    experts = axes.tp * axes.cp * axes.dp // (axes.ep * axes.etp)
    expert = {"tp": axes.etp, "ep": axes.ep, "pp": axes.pp, "dp": experts}
    found = []
    for rank in range(axes.tp * axes.cp * axes.pp * axes.dp):
        at = _digits(rank, axes.order, dense)
        if axes.ep == 1 and axes.etp == axes.tp:
            at |= {"etp": at["tp"], "ep": 0, "edp": at["dp"] * axes.cp + at["cp"]}
        else:
            of_expert = _digits(rank, axes.order, expert)
            at |= {"etp": of_expert["tp"], "ep": of_expert["ep"]}
            at |= {"edp": of_expert["dp"]}
        found.append(at)
    return found


def groups(axes: Parallelism, axis: str) -> list[list[int]]:
    """Ranks of every group of an axis, each ascending.

    ``dp_cp`` is the dense gradient group: all that hold the same dense parameters.
    """
    fixed: Iterable[str]
    if axis == "dp_cp":
        fixed = ("tp", "pp")
    elif axis in ("tp", "cp", "pp", "dp"):
        fixed = {"tp", "cp", "pp", "dp"} - {axis}
    else:
        fixed = {"etp", "ep", "edp", "pp"} - {axis}
    found: dict[tuple[int, ...], list[int]] = {}
    names = sorted(fixed)
    for rank, at in enumerate(coordinates(axes)):
        found.setdefault(tuple(at[name] for name in names), []).append(rank)
    return list(found.values())


def _digits(rank: int, order: Iterable[str], sizes: dict[str, int]) -> dict[str, int]:
    digits = {}
    for axis in order:
        size = sizes.get(axis, 1)
        digits[axis] = rank % size
        rank //= size
    return digits
