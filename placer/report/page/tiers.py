"""The tiers of a plan on a page: one colour each, hatched where they are network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.draw import palette

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def kinds_of_tiers(plan: Plan) -> dict[str, str]:
    """Class of each tier."""
    return {tier: f"t{t}" for t, tier in enumerate(plan.topology.get("tiers", ()))}


def colours_of_tiers(plan: Plan) -> dict[str, str]:
    """Colour of each tier, the same in bars, maps and legends."""
    tiers = plan.topology.get("tiers", ())
    colours = palette.of_tiers(len(tiers), plan.topology.get("scale_up", 0))
    return dict(zip(tiers, colours, strict=True))


def tier_style(plan: Plan) -> str:
    """Style rules of the classes."""
    joined = set(plan.topology.get("tiers", ())[: plan.topology.get("scale_up", 0)])
    colours, rules = colours_of_tiers(plan), []
    for tier, kind in kinds_of_tiers(plan).items():
        colour = colours[tier]
        hatch = f"repeating-linear-gradient(135deg,{colour} 0 5px,transparent 5px 7px)"
        rules.append(f".{kind}{{background:{colour if tier in joined else hatch}}}")
    return "".join(rules)
