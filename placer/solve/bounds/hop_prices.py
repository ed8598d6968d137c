"""Prices that prove a bound on the hop cost: of ranks, or of parts of lines.

Those of ranks come with the least cut of a tier. Where parts of lines say more,
branching tells their whole numbers apart until the prices of each case prove enough:
the bound to be proved is known, so no better placement is looked for. `placer.placement
.hop_bound` counts again what prices prove.
"""

from __future__ import annotations

from placer.base.rounding import EXACT
from placer.placement.hop_bound import PartPrices, TierPrices
from placer.solve.bounds.hop_cuts import HopCuts
from placer.solve.bounds.hop_floors import common_divisor
from placer.solve.bounds.hop_lines import contents_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget

ROUNDED = 0.999  # of what divides a cut: bounds are rounded up by no more
HopPrices = tuple[TierPrices | PartPrices, ...]


def hop_prices(problem: Problem, value: float, budget: Budget) -> HopPrices | None:
    """Prices that prove a bound on the hop cost; None if none are found in time."""
    return prices_of(problem.once(HopCuts.of_problem), value, budget)


def prices_of(cuts: HopCuts, value: float, budget: Budget) -> HopPrices | None:
    """Prices that prove a value by the cuts of tiers; None if none are found in time.

    Each tier alone is proved as far as is known, then the two innermost together.
    """
    best = dict[tuple[int, ...], tuple[float, TierPrices | PartPrices]]()
    for tier, own in cuts.of_tier.items():
        graphs = enumerate(own[: 1 + cuts.of_axes])
        which, cut = max(graphs, key=lambda one: one[1].priced)
        prices = TierPrices(tier, *cut.prices, of_sets=bool(which))
        best[tier,] = float(cuts.rises[tier]) * cut.priced, prices
    both = tuple(sorted(cuts.of_tier)[:2])
    for tiers in dict.fromkeys((*best, both)) if best else ():
        others = {of: one for of, one in best.items() if not {*of} & {*tiers}}
        needed = value - cuts.inside - sum(cost for cost, _ in others.values())
        if len(tiers) == 1:
            most = float(cuts.rises[tiers[0]]) * cuts.of_tier[tiers[0]][-1].value
            needed = min(needed, most)
        known = sum(best[of][0] for of in best.keys() - others.keys())
        if needed > known * (1 + EXACT):
            found = _of_parts(cuts, tiers, needed, budget)
            best = others | {tiers: (needed, found)} if found else best
    proved = cuts.inside + sum(cost for cost, _ in best.values())
    if proved < value * (1 - EXACT):
        return None
    return tuple(prices for _, prices in best.values())


def _of_parts(
    cuts: HopCuts, tiers: tuple[int, ...], needed: float, budget: Budget
) -> PartPrices | None:
    """Prices of parts of lines of some axis that prove what cuts of tiers cost."""
    own = [cuts.of_tier[tier][-1] for tier in tiers]
    rises = [float(cuts.rises[tier]) for tier in tiers]
    of_sets = len(cuts.of_tier[tiers[0]]) > 1
    if len({cut.world for cut in own}) > 1 or of_sets > cuts.of_axes:
        return None
    least = needed - ROUNDED * float(own[0].quantum * common_divisor(rises))
    outer = cuts.outer(*tiers) if len(tiers) > 1 else None
    lines = (cut.lines(rise) for cut, rise in zip(own, rises, strict=True))
    for both in zip(*lines, strict=True):
        contents, more = contents_of(both, outer)
        if contents.columns <= cuts.params.part_columns:
            cases = contents.cases(least - more, budget.is_over)
            if cases:
                each = tuple(one.support()[1] for one in both)
                return PartPrices(tiers, both[0].axis.name, each, cases, of_sets)
    return None
