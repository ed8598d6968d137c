"""How ranks are numbered: axis coordinates and groups from a Megatron order string.

Source: Megatron-LM ``core/parallel_state.py`` (``RankGenerator``): the first axis of
the order varies fastest; experts use a second generator with ``cp = 1``, their own
``tp`` and ``ep``, and the same ``pp``. Then the ``parallelism`` mapping of a job, which
keeps Megatron's rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from placer.base.arrays import IntArray
from placer.documents import Section, closest
from placer.documents.keys import Key, integer, key, special
from placer.documents.records import read

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


def decode_parallelism(section: Section) -> Parallelism | None:
    """Axis sizes and rank order, None where a size is wrong.

    Problems go to the section's document.
    """
    document = section.document
    problems_before = len(document.problems)
    parallelism = _sizes(section)
    if len(document.problems) > problems_before:
        section.has("order")
        return None
    _check_experts(section, parallelism)
    parallelism = replace(
        parallelism, order=_order(section, parallelism), auto_order=_is_open(section)
    )
    if len(document.problems) == problems_before:
        _check_expert_pipeline(section, parallelism)
    return parallelism


def _sizes(section: Section) -> Parallelism:
    degrees = data_parallel_degrees(section)
    usual = {"dp": prod(degrees or (1,))}
    axes = read(section, Parallelism, usual, order=MEGATRON_DEFAULT_ORDER)
    if degrees and axes.dp != prod(degrees):
        message = (
            f"dp_replicate x dp_shard = {degrees[0]} x {degrees[1]} is not {axes.dp}"
        )
        section.problem(message, "dp", "leave dp out")
    if axes.world_size > MAX_WORLD_SIZE:
        size = axes.world_size
        section.problem(f"tp x cp x pp x dp = {size} ranks; at most {MAX_WORLD_SIZE}")
    return axes


def data_parallel_degrees(section: Section) -> tuple[int, int] | None:
    """``dp_replicate`` and ``dp_shard``, torchtitan's parts of ``dp``; None without."""
    parts = (Parallelism.replicate, Parallelism.shard)
    if not any(section.has(part.called) for part in parts):
        return None
    replicate, shard = (part.take(section) for part in parts)
    return replicate, shard


def _check_experts(section: Section, parallelism: Parallelism) -> None:
    tp, cp, dp = parallelism.tp, parallelism.cp, parallelism.dp
    expert_block = parallelism.ep * parallelism.etp
    if (tp * cp * dp) % expert_block:
        message = (
            f"ep x etp = {parallelism.ep} x {parallelism.etp} = {expert_block} does "
            f"not divide tp x cp x dp = {tp} x {cp} x {dp} = {tp * cp * dp}"
        )
        section.problem(message, "ep", "experts share the ranks of tp, cp and dp")


def _order(section: Section, parallelism: Parallelism) -> tuple[str, ...]:
    """Order given, or Megatron's default; axes of size 1 may be left out."""
    if not section.has("order") or _is_open(section):
        return MEGATRON_DEFAULT_ORDER
    given = section.text("order").split("-")
    hint = "write auto, or the axes innermost first, for example tp-cp-ep-pp-dp"
    for axis in given:
        if axis not in AXES:
            section.problem(
                f'unknown axis "{axis}" in the order',
                "order",
                closest(axis, AXES) or hint,
            )
            return MEGATRON_DEFAULT_ORDER
    if len(set(given)) < len(given):
        section.problem("an axis appears twice in the order", "order", hint)
        return MEGATRON_DEFAULT_ORDER
    missing = [axis for axis in AXES if axis not in given]
    needed = [axis for axis in missing if _widest(parallelism, axis) > 1]
    if needed:
        message = f"the order leaves out {', '.join(needed)}, which is larger than 1"
        section.problem(message, "order", hint)
        return MEGATRON_DEFAULT_ORDER
    for axis in missing:
        given.insert(AXES.index(axis), axis)
    return tuple(given)


def _is_open(section: Section) -> bool:
    """Whether the order is left to be chosen."""
    value = section.get("order")
    return value is not None and value.kind == "text" and value.content == AUTO_ORDER


def _widest(parallelism: Parallelism, axis: str) -> int:
    """Larger of the axis' sizes in the dense and in the expert numbering."""
    expert = {"tp": parallelism.etp, "dp": parallelism.edp}
    return max(parallelism.size(axis), expert.get(axis, 1))


def _check_expert_pipeline(section: Section, parallelism: Parallelism) -> None:
    """Require that dense and expert layers share their pipeline groups.

    Megatron-Core refuses anything else (``core/parallel_state.py``): a stage would hold
    the attention of one part of the model and the experts of another.
    """
    if pipeline_groups_agree(parallelism):
        return
    order = [axis for axis in parallelism.order if axis != "pp"]
    message = (
        f"with ep {parallelism.ep} and etp {parallelism.etp} the order "
        f"{'-'.join(parallelism.order)} gives experts other pipeline groups than the "
        "dense layers"
    )
    hint = f"put pp last: {'-'.join([*order, 'pp'])}"
    section.problem(message, "order" if section.has("order") else "ep", hint)


def pipeline_groups_agree(parallelism: Parallelism) -> bool:
    """Whether the dense and the expert numbering have the same pipeline groups.

    They have when as many ranks follow each other inside ``pp`` in both.
    """
    axes = parallelism
    if axes.pp == 1 or not axes.divides_experts:
        return True
    dense = {"tp": axes.tp, "cp": axes.cp, "dp": axes.dp}
    expert = {"tp": axes.etp, "ep": axes.ep, "dp": axes.edp}
    inside = axes.order[: axes.order.index("pp")]
    strides = {prod(sizes.get(a, 1) for a in inside) for sizes in (dense, expert)}
    return len(strides) == 1
