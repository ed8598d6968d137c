"""The machine of two plans and who sits where in it, for a picture.

A piece of work is a rank of the old plan together with the rank of the new plan that
does the same, or a rank that only one of them has. Shapes: W pieces of work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from placer.draw import palette
from placer.placement.host_orders import natural_key
from placer.report.matching import match
from placer.report.moves import home_tier

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.report.matching import Matching

IntArray = npt.NDArray[np.int64]

_AXES = ("dp", "pp", "cp", "tp", "ep", "etp", "edp")
NOWHERE = -1


def picture_data(old: Plan, new: Plan) -> dict[str, Any]:
    """``machine``, ``work``, ``coordinates`` and ``colours`` of two plans.

    ``machine``: nodes that either plan uses, ordered by their domains, and the GPUs of
    each. ``work``: ranks and seats before and after, `NOWHERE` where there is none.
    ``coordinates``: of every piece of work, by axis. ``colours``: of every coordinate.
    """
    machine = _machine(old, new)
    matching = match(old, new)
    ranks = _ranks(matching, old.world_size, new.world_size)
    index = {name: i for i, name in enumerate(machine["nodes"])}
    work: dict[str, list[int]] = {}
    for side, plan, rank in zip(("old", "new"), (old, new), ranks, strict=True):
        node = np.array([index[name] for name in plan.nodes])[plan.node_of_rank]
        work[f"{side}_rank"] = rank.tolist()
        work[f"{side}_node"] = _taken(node, rank)
        work[f"{side}_gpu"] = _taken(plan.gpu_of_rank, rank)
    coordinates = _coordinates(matching, ranks)
    colours = {axis: _colours(max(values) + 1) for axis, values in coordinates.items()}
    return {
        "machine": machine,
        "work": work,
        "coordinates": coordinates,
        "colours": colours,
    }


def _machine(old: Plan, new: Plan) -> dict[str, Any]:
    tiers = _outer_tiers(old, new)
    place: dict[str, tuple[str, ...]] = {}
    gpus: dict[str, int] = {}
    for plan in (old, new):
        for i, node in enumerate(plan.nodes):
            place[node] = tuple(plan.domains[tier][i] for tier in tiers) or (node,)
        for node, gpu in zip(plan.host_of_rank, plan.gpu_of_rank.tolist(), strict=True):
            gpus[node] = max(gpus.get(node, 0), gpu + 1)
    nodes = sorted(
        place, key=lambda node: [natural_key(n) for n in (*place[node], node)]
    )
    homes = list(dict.fromkeys(place[node] for node in nodes))
    at = {home: i for i, home in enumerate(homes)}
    return {
        "home_tier": home_tier(old, new),
        "homes": [list(path) for path in homes],
        "nodes": nodes,
        "home_of_node": [at[place[node]] for node in nodes],
        "gpus": [gpus[node] for node in nodes],
    }


def _outer_tiers(old: Plan, new: Plan) -> list[str]:
    """Tiers with domains in both plans from the outermost to the home tier."""
    tiers = old.topology.get("tiers", old.domains)
    return [t for t in reversed(list(tiers)) if t in old.domains and t in new.domains]


def _ranks(
    matching: Matching, old_size: int, new_size: int
) -> tuple[IntArray, IntArray]:
    """Old and new rank of every piece of work; each shape (W,)."""
    new_rank = np.full(old_size, NOWHERE)
    new_rank[matching.old_rank] = matching.new_rank
    started = np.setdiff1d(np.arange(new_size), matching.new_rank)
    return (
        np.concatenate([np.arange(old_size), np.full(len(started), NOWHERE)]),
        np.concatenate([new_rank, started]),
    )


def _taken(values: IntArray, rank: IntArray) -> list[int]:
    """Entry of ``values`` for every rank, `NOWHERE` for none."""
    found: list[int] = np.where(rank == NOWHERE, NOWHERE, values[rank]).tolist()
    return found


def _coordinates(
    matching: Matching, ranks: tuple[IntArray, IntArray]
) -> dict[str, list[int]]:
    """Coordinates of every piece of work, by axis; none when a plan has no axes."""
    old, new = matching.old, matching.new
    if old is None or new is None:
        return {}
    kept = ranks[0][: old.world_size]
    started = ranks[1][old.world_size :]
    found = {}
    for axis in _AXES:
        of_experts = axis in ("ep", "etp", "edp")
        if of_experts and old.ep == 1:
            continue
        if axis == "dp" or max(old.size(axis), new.size(axis)) > 1:
            parts = matching.work[0][axis][kept], matching.work[1][axis][started]
            found[axis] = np.concatenate(parts).tolist()
    return found


def _colours(count: int) -> list[str]:
    """Colours of the coordinates 0 to ``count - 1`` of an axis."""
    if count <= len(palette.DISTINCT):
        return [palette.distinct(i) for i in range(count)]
    return [palette.ordered(i, count) for i in range(count)]
