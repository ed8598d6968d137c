"""How ranks are numbered: axis coordinates and groups from a Megatron order string.

Source: Megatron-LM ``core/parallel_state.py`` (``RankGenerator``): the first axis of
the order varies fastest; experts use a second generator with ``cp = 1``, their own
``tp`` and ``ep``, and the same ``pp``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from placer.base.arrays import IntArray
from placer.documents.keys import Key, integer, key, special

AXES = ("tp", "cp", "ep", "pp", "dp")
EXPERT_AXES = ("etp", "edp")
AUTO_ORDER = "auto"
MEGATRON_DEFAULT_ORDER = ("tp", "cp", "ep", "dp", "pp")
REPLICA_MAJOR_ORDER = ("tp", "cp", "ep", "pp", "dp")
# Axes whose sizes two jobs share where ranks of the same coordinates do the same work.
SAME_WORK = ("tp", "cp", "pp", "ep", "etp")


MAX_WORLD_SIZE = 2**20

_SIZE = integer(1, MAX_WORLD_SIZE)
_DEGREE = (
    "instead of `dp`, their product: torchtitan's degrees, which also say the "
    "`sharding`"
)


def _order_schema() -> dict[str, Any]:
    axis = f"({'|'.join(AXES)})"
    return {"type": "string", "pattern": f"^({AUTO_ORDER}|{axis}(-{axis})*)$"}


@dataclass(frozen=True)
class Parallelism:
    """Axis sizes and the order in which they number the ranks."""

    tp: int = key(_SIZE, "tensor parallel size", 1)
    cp: int = key(_SIZE, "context parallel size", 1)
    ep: int = key(_SIZE, "expert parallel size", 1)
    pp: int = key(_SIZE, "pipeline parallel size", 1)
    dp: int = key(
        _SIZE, "data parallel size; `tp` x `cp` x `pp` x `dp` is the number of ranks", 1
    )
    replicate = Key(_SIZE, _DEGREE, 1, absent="`1`", called="dp_replicate")
    shard = Key(_SIZE, _DEGREE, 1, absent="`1`", called="dp_shard")
    vp: int = key(_SIZE, "model chunks (virtual stages) of a pipeline rank", 1)
    etp: int = key(
        _SIZE,
        "tensor parallel size inside experts",
        1,
        implied=lambda known: known["tp"],
        absent="`tp`",
    )
    order: tuple[str, ...] = key(
        special(_order_schema),
        "how ranks are numbered: all five axes, the first varies fastest "
        "(Megatron-LM's notation and default); or `auto`: placer chooses",
        MEGATRON_DEFAULT_ORDER,
        absent="`tp-cp-ep-dp-pp`",
    )
    # The file leaves the order open; ``order`` is the one that is tried or chosen.
    auto_order: bool = False

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def edp(self) -> int:
        """Expert data parallel size."""
        return self.tp * self.cp * self.dp // (self.ep * self.etp)

    @property
    def divides_experts(self) -> bool:
        """Whether experts share out the ranks otherwise than the dense layers do."""
        return self.ep > 1 or self.etp != self.tp

    @property
    def hops(self) -> int:
        """Hops of a pipeline; of one chunk a rank, it does not close its ring."""
        return self.pp if self.vp > 1 else self.pp - 1

    def size(self, axis: str) -> int:
        """Members in a group of ``axis``."""
        return int(getattr(self, axis))

    @cached_property
    def coordinates(self) -> dict[str, IntArray]:
        """Coordinate of every rank on each dense and expert axis; each shape (R,)."""
        return self.coordinates_in(self.order)

    def coordinates_in(self, order: Sequence[str]) -> dict[str, IntArray]:
        """Coordinates of every rank when ranks are numbered by ``order``."""
        dense = {"tp": self.tp, "cp": self.cp, "ep": 1, "pp": self.pp, "dp": self.dp}
        expert = {"tp": self.etp, "cp": 1, "ep": self.ep, "pp": self.pp, "dp": self.edp}
        at = mixed_radix(order, dense)
        if not self.divides_experts:
            # No experts of their own: every layer uses the dense numbering, which has
            # a cp that the expert generator lacks.
            at["etp"], at["edp"] = at["tp"], at["dp"] * self.cp + at["cp"]
        else:
            of_expert = mixed_radix(order, expert)
            at["etp"], at["edp"] = of_expert["tp"], of_expert["dp"]
            at["ep"] = of_expert["ep"]
        return at

    def numbers_in(self, order: Sequence[str]) -> IntArray:
        """Number of every rank if ranks were numbered by ``order``; shape (R,)."""
        stride = 1
        number = np.zeros(self.world_size, dtype=np.int64)
        for axis in order:
            if axis != "ep":  # the dense generator numbers ranks; experts re-use them
                number += self.coordinates[axis] * stride
                stride *= self.size(axis)
        return number

    @cached_property
    def ranks_of_group(self) -> dict[str, IntArray]:
        """Members of every group: axis -> array of shape (groups, members).

        Beside the axes, ``dp_cp`` is the dense gradient group (all data and context
        parallel ranks that hold the same parameters). Members ascend by rank, as they
        do in a communicator.
        """
        at = self.coordinates
        expert = ("etp", "ep", "edp", "pp")
        groups = {
            axis: _groups(at, [a for a in ("tp", "cp", "pp", "dp") if a != axis])
            for axis in ("tp", "cp", "pp", "dp")
        }
        for axis in ("ep", "etp", "edp"):
            groups[axis] = _groups(at, [a for a in expert if a != axis])
        groups["dp_cp"] = _groups(at, ["tp", "pp"])
        return groups


def unlike_sizes(
    first: Parallelism, second: Parallelism, axes: Sequence[str] = SAME_WORK
) -> list[str]:
    """The axes whose sizes differ, in words: ``tp 4 against 8``."""
    return [
        f"{axis} {first.size(axis)} against {second.size(axis)}"
        for axis in axes
        if first.size(axis) != second.size(axis)
    ]


def mixed_radix(order: Sequence[str], sizes: Mapping[str, int]) -> dict[str, IntArray]:
    """Digits of 0 .. product-1 in the radix of ``sizes``, first axis fastest."""
    rest = np.arange(prod(sizes[axis] for axis in order), dtype=np.int64)
    digits = {}
    for axis in order:
        digits[axis] = rest % sizes[axis]
        rest = rest // sizes[axis]
    return digits


def _groups(at: Mapping[str, IntArray], fixed: Sequence[str]) -> IntArray:
    """Ranks that agree on all ``fixed`` coordinates, a row a group, by first rank."""
    key = np.zeros(len(at["tp"]), dtype=np.int64)
    num_groups = 1
    for axis in fixed:
        size = int(at[axis].max()) + 1
        key = key * size + at[axis]
        num_groups *= size
    rows = np.argsort(key, kind="stable").reshape(num_groups, -1)
    return rows[np.argsort(rows[:, 0])]
