"""Links between named domains: pairs that are slower than their tier says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.base.units import format_seconds, plural
from placer.documents import Section, Value
from placer.documents.keys import BANDWIDTH, TEXT, TIME, key, list_of, special
from placer.documents.records import read
from placer.topology.suggest import Suggester

if TYPE_CHECKING:
    from placer.topology.build import Nodes
    from placer.topology.model import Tier

MAX_LINKS = 4096
_ONE_PARENT = "a link joins two domains of one tier in one domain of the next"


def _between_schema() -> dict[str, Any]:
    return {**list_of(TEXT).schema(), "minItems": 2, "maxItems": 2}


@dataclass(frozen=True)
class Link:
    """What all traffic between two domains of a tier shares, each direction by itself.

    The tier in which the two meet says how much of it long messages reach
    (`Tier.efficiency`).
    """

    tier: str
    between: tuple[str, str] = key(
        special(_between_schema),
        "domains of one tier that lie in one domain of the next; nodes can be named "
        "too",
    )
    bandwidth: float = key(
        BANDWIDTH,
        "of the whole link, one way; the next tier's `efficiency` is a share of it",
    )
    latency: float = key(
        TIME,
        "of a hop between the two; never below the next tier's",
        absent="the next tier's",
    )


def kept_links(
    links: Iterable[Link], tiers: Sequence[str], names: Sequence[Iterable[str]]
) -> tuple[Link, ...]:
    """The links of which both domains are among ``names``, an entry a tier."""
    known = {tier: {*of_tier} for tier, of_tier in zip(tiers, names, strict=True)}
    return tuple(link for link in links if known[link.tier].issuperset(link.between))


def read_links(root: Section, tiers: Sequence[Tier], nodes: Nodes) -> tuple[Link, ...]:
    """The links of a topology file; problems are left in the document."""
    listed = root.get("links")
    items = listed.items() if listed else []
    if listed and len(items) > MAX_LINKS:
        listed.problem(f"{len(items)} links, the most is {MAX_LINKS}")
        return ()
    return tuple(_Reader(tiers, nodes).links(items))


class _Reader:
    """Finds the domains that links name; T tiers."""

    def __init__(self, tiers: Sequence[Tier], nodes: Nodes) -> None:
        self.tiers = tiers
        self.domains = nodes.domains
        # The outermost tier has one domain, which nothing can be linked to.
        held = [set(row.tolist()) for row in self.domains[:-1]]
        self.index = [
            {name: d for d, name in enumerate(names) if d in here}
            for names, here in zip(nodes.names, held, strict=False)
        ]
        known = dict.fromkeys(name for names in nodes.names[-2::-1] for name in names)
        self.suggester = Suggester(known)
        self.seen: dict[frozenset[str], str] = {}

    def links(self, items: Iterable[Value]) -> Iterator[Link]:
        for item in items:
            section = item.section()
            between = self._between(section)
            link = read(section, Link, {"latency": 0.0}, tier="", between=("", ""))
            if link.bandwidth < 1.0:
                section.problem("a bandwidth is at least 1 B/s", "bandwidth")
            if between is None:
                continue
            t, pair = between
            met, latency = self.tiers[t + 1], link.latency
            if not section.has("latency"):
                latency = met.latency
            elif latency < met.latency:
                least = format_seconds(met.latency)
                message = f"below {least}, the latency of tier {met.name!r}"
                hint = "give the tier the latency of its fastest pair"
                section.problem(message, "latency", hint)
            yield Link(self.tiers[t].name, pair, link.bandwidth, latency)

    def _between(self, section: Section) -> tuple[int, tuple[str, str]] | None:
        """Tier and names of the two domains; None, with a problem, if they are not."""
        value = section.get("between", required=True)
        if value is None:
            return None
        items = value.items()
        names = [item.text() for item in items]
        if value.kind != "list" or not all(names):
            return None
        if len(names) != 2 or names[0] == names[1]:
            value.problem("expected the names of two domains", "such as [us, eu]")
            return None
        tiers = [{t for t, of in enumerate(self.index) if n in of} for n in names]
        for item, name, found in zip(items, names, tiers, strict=True):
            if not found:
                hint = self.suggester.hint(name)
                item.problem(f'no domain is called "{name}"', hint)
        if not all(tiers):
            return None
        common = sorted(tiers[0] & tiers[1])
        if problem := self._problem(names, tiers, common):
            value.problem(*problem)
            return None
        pair = frozenset(names)
        if pair in self.seen:
            value.problem(f"these two are linked already, by {self.seen[pair]}")
            return None
        self.seen[pair] = section.value.key
        return common[0], (names[0], names[1])

    def _problem(
        self, names: list[str], tiers: list[set[int]], common: list[int]
    ) -> tuple[str, str] | None:
        """(problem, hint) of two domains that cannot be linked."""
        one, other = names
        if not common:
            kinds = [self.tiers[min(found)].name for found in tiers]
            return f"{kinds[0]} {one!r} and {kinds[1]} {other!r}", _ONE_PARENT
        t = common[0]
        kind, met = self.tiers[t].name, self.tiers[t + 1]
        if len(common) > 1:
            also = self.tiers[common[1]].name
            return (
                f"both {plural(kind, 2)} and {plural(also, 2)} are called so",
                "give the domains of every tier names of their own",
            )
        parents = self._parents(t, names)
        if parents[0] != parents[1]:
            return f"{plural(kind, 2)} of different {plural(met.name, 2)}", _ONE_PARENT
        if met.scale_up:
            joined = f"{plural(kind, 2)} that are joined by NVLink"
            return (
                f"{joined}: tier {met.name!r} is scale_up",
                "links join domains of the network",
            )
        return None

    def _parents(self, t: int, names: list[str]) -> list[int]:
        """Domain of the next tier around each of some domains of tier ``t``."""
        inside = [self.domains[t].tolist().index(self.index[t][n]) for n in names]
        return [int(self.domains[t + 1][node]) for node in inside]
