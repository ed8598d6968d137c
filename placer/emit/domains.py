"""The tiers of a plan between its nodes and the whole machine, node rank by node rank.

For the formats that speak of racks and blocks: requests for a next allocation, and what
NCCL will see.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING

from placer.base.hostlist import compress
from placer.base.units import format_seconds
from placer.placement.launcher_orders import natural_key

if TYPE_CHECKING:
    from placer.emit.nodes import NodeRanks
    from placer.placement.plan import Plan

_PLAIN = re.compile(r"[A-Za-z0-9._:/-]+")


@dataclass(frozen=True)
class TierDomains:
    """Where the nodes of a plan lie on one tier."""

    tier: str
    # Domain of each node, by node rank; numbered as they first appear.
    domain: tuple[int, ...]
    names: tuple[str, ...]  # name of each domain

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Nodes of the plan in each domain."""
        found = Counter(self.domain)
        return tuple(found[domain] for domain in range(len(self.names)))

    @property
    def even(self) -> bool:
        """Whether all domains hold the same number of nodes."""
        return len(set(self.counts)) == 1

    @cached_property
    def slice(self) -> int:
        """Size of the largest slices of nodes that each lie in one domain.

        All nodes of a domain where domains are even, else the most nodes k of which
        node ranks 0 to k-1, k to 2k-1, ... share a domain.
        """
        if self.even:
            return self.counts[0]
        neighbours = enumerate(pairwise(self.domain), start=1)
        changes = (k for k, (before, after) in neighbours if before != after)
        return gcd(len(self.domain), *changes)

    @property
    def described(self) -> str:
        """How many domains hold how many nodes, in words."""
        least, most = min(self.counts), max(self.counts)
        held = f"{most} nodes each" if self.even else f"{least} to {most} nodes"
        return f"{len(self.names)} domains of {quoted(self.tier)} hold {held}"


def tiers_of(plan: Plan, nodes: Sequence[NodeRanks]) -> list[TierDomains]:
    """The tiers between node and cluster that the plan names, innermost first.

    A domain is told by its name and those of all domains around it.

    ``nodes``: by node rank.
    """
    index = {host: entry for entry, host in enumerate(plan.nodes)}
    entries = [index[node.host] for node in nodes]
    tiers = [t for t in plan.topology.get("tiers", plan.domains) if t in plan.domains]
    paths: list[tuple[str, ...]] = [()] * len(nodes)
    found = []
    for tier in reversed(tiers):
        names = plan.domains[tier]
        paths = [(names[e], *path) for e, path in zip(entries, paths, strict=True)]
        number = {path: k for k, path in enumerate(dict.fromkeys(paths))}
        domain = tuple(number[path] for path in paths)
        found.append(TierDomains(tier, domain, tuple(path[0] for path in number)))
    return found[::-1]


def innermost_shared(tiers: Sequence[TierDomains]) -> TierDomains | None:
    """The innermost tier on which all nodes share a domain; None when there is none."""
    return next((tier for tier in tiers if len(tier.names) == 1), None)


def nvlink_tier(plan: Plan, tiers: Sequence[TierDomains]) -> TierDomains | None:
    """The tier whose domains are NVLink domains of several nodes; None without one."""
    names = plan.topology.get("tiers", ())
    scale_up = plan.topology.get("scale_up", 1)
    name = names[scale_up - 1] if 1 < scale_up <= len(names) else None
    return next((tier for tier in tiers if tier.tier == name), None)


def quoted(name: str) -> str:
    """The name of a tier or domain; in quotes and escaped unless it is a plain word."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def guaranteed(plan: Plan) -> Iterator[str]:
    """The least strict request that guarantees the plan's value, in words.

    Before it the spare nodes, which no scheduler is asked for.
    Nothing for a plan that no allocation made; that there is none, where there is none.
    """
    request = plan.request
    if not request:
        return
    if spares := plan.rules.get("spare_nodes"):
        shown = compress(sorted(spares, key=natural_key))
        yield f"# Not asked for: the spare nodes of the plan, {shown}."
    if "slice" not in request:
        yield "# No request by shape guarantees the plan's value: ask for its nodes."
        return
    size, tier, within = (request[key] for key in ("slice", "tier", "within"))
    asks = "any nodes" if size == 1 else f"slices of {size} nodes in one {quoted(tier)}"
    if within:
        asks += f", all in one {quoted(within)}"
    value = request["value"]
    step = (
        f"{format_seconds(value)} a step"
        if plan.bound.get("objective") == "time"
        else "the plan's hop cost"
    )
    yield f"# The least strict request that still guarantees {step}: {asks}."
