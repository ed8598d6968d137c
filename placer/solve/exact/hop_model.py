"""The hop cost of homes: an edge pays the rise of the distance at each tier it leaves.

``J = sum over edges of weight (d_0 + sum over tiers t it leaves of (d_{t+1} - d_t))``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.exact.terms import in_units, unit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.cost.hop_cost import HopCost
    from placer.solve.exact.homes import Homes

Edges = dict[tuple[int, int], float]


def hop_tiers(hops: HopCost) -> list[int]:
    """Tiers beyond which the distance is another."""
    changes: list[int] = np.flatnonzero(np.diff(hops.distance)).tolist()
    return changes


def minimise_hops(
    homes: Homes, hops: HopCost, cut_per_tier: Sequence[float], incumbent: float
) -> float:
    """Make the hop cost the model's objective; returns its unit.

    Parameters
    ----------
    homes : Homes
    hops : HopCost
    cut_per_tier : sequence of float
        Least weight of edges between domains of each tier: the search does not see
        that argument by itself.
    incumbent : float
        A known hop cost.
    """
    edges = _edges(homes, hops)
    tiers = hop_tiers(hops)
    rises = np.diff(hops.distance)
    prices = {
        (weight, t): weight * float(rises[t])
        for weight in set(edges.values())
        for t in tiers
    }
    inside = float(hops.distance[0]) * sum(a.weight * len(a.edges) for a in hops.axes)
    unit = unit_of([*prices.values(), inside], incumbent)
    for t in tiers:
        _require_cut(homes, edges, t, cut_per_tier[t])
    homes.model.minimize(
        in_units(inside, unit)
        + sum(
            in_units(prices[weight, t], unit) * homes.differ(t, one, other)
            for t in tiers
            for (one, other), weight in edges.items()
        )
    )
    return float(unit)


def _edges(homes: Homes, hops: HopCost) -> Edges:
    """Weight of the edges between every two units."""
    found: Edges = defaultdict(float)
    for axis in hops.axes:
        for one, other in np.sort(axis.edges // homes.block, axis=1).tolist():
            if one != other:
                found[one, other] += axis.weight
    return found


def _require_cut(homes: Homes, edges: Edges, tier: int, least: float) -> None:
    """At least so much weight leaves the domains of a tier."""
    unit = unit_of([*edges.values(), least], max(least, 1.0))
    cut = sum(
        -in_units(-weight, unit) * homes.differ(tier, one, other)
        for (one, other), weight in edges.items()
    )
    if least > 0 and not isinstance(cut, int):
        homes.model.add(cut >= in_units(least, unit))
