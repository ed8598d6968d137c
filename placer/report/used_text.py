"""Which domains a plan uses, and how many nodes of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placer.base.units import plural
from placer.placement.host_orders import in_natural_order
from placer.report.columns import WIDTH, wrapped
from placer.report.host_text import hosts_text
from placer.report.verdict import inner_domains

if TYPE_CHECKING:
    from placer.placement.plan import Plan

# Numbers of nodes that get a line of their own.
_MOST = 6


def used_lines(plan: Plan, width: int = WIDTH) -> Iterator[str]:
    """A line for the domains that give equally many nodes, most nodes first.

    None where the plan names no domains between a node and the whole machine.
    """
    tier, nodes_of = inner_domains(plan)
    domains_of: dict[int, list[str]] = {}
    for domain, count in nodes_of.items():
        domains_of.setdefault(count, []).append(domain)
    counts = sorted(domains_of, reverse=True)
    for count in counts[:_MOST]:
        names = domains_of[count]
        each = " each" * (len(names) > 1)
        text = (
            f"{count:,} {plural('node', count)}{each} in {len(names):,} "
            f"{plural(tier, len(names))}: {hosts_text(in_natural_order(names))}"
        )
        yield from wrapped(text, "  ", width)
    if rest := counts[_MOST:]:
        total = sum(len(domains_of[count]) for count in rest)
        yield f"fewer in {total:,} other {plural(tier, total)}"
