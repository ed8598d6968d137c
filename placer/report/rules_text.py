"""Rules a plan was made under, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from placer.base.hostlist import compress, expand
from placer.report.columns import WIDTH, wrapped

MOST_NAMED = 8


def rule_lines(rules: Mapping[str, Any], width: int = WIDTH) -> Iterator[str]:
    """Lines that say which rules hold, what is kept free and which hosts are used.

    ``rules`` is the section of a plan; none gives no lines.
    """
    pins = rules.get("pin", ())
    held = [f"ranks {pin['ranks']} on {pin['nodes']}" for pin in pins[:MOST_NAMED]]
    if len(pins) > MOST_NAMED:
        held.append(f"{len(pins) - MOST_NAMED} more pins")
    for tier, number in rules.get("at_most", {}).items():
        held.append(f"at most {number} replica{'s' * (number > 1)} in a {tier}")
    for tier, number in rules.get("spares", {}).items():
        held.append(f"{number} spare node{'s' * (number > 1)} in every {tier} used")
    if held:
        yield from wrapped(f"kept: {'; '.join(held)}", "  ", width)
    if rules.get("budgets"):
        yield from wrapped(f"budgets: {'; '.join(rules['budgets'])}", "  ", width)
    if rules.get("spare_nodes"):
        text = f"spare: {len(rules['spare_nodes']):,} nodes are free in these domains"
        yield from wrapped(text, "  ", width)
    if rules.get("avoid"):
        yield from wrapped(_avoided(rules), "  ", width)


def _avoided(rules: Mapping[str, Any]) -> str:
    """How many of the nodes to avoid are used, and the first of them."""
    total = sum(len(expand(text)) for text in rules["avoid"])
    used = rules.get("avoided_nodes", ())
    if not used:
        return f"avoided: none of {total:,} nodes to avoid is used"
    named = compress(used[:MOST_NAMED])
    more = f" and {len(used) - MOST_NAMED} more" * (len(used) > MOST_NAMED)
    return f"avoided: {len(used):,} of {total:,} nodes to avoid are used: {named}{more}"
