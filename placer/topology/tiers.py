"""Decoding the tiers of a topology file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from placer.base.arrays import IntArray
from placer.documents import Document, Section
from placer.documents.records import read
from placer.topology.islands import Islands
from placer.topology.model import MAX_GPUS_OF_NODE, TIER_NAME, Tier

MAX_TIERS = 32
MAX_RAILS = 63
NODE = "node"  # the tier that is the host, where a tier has this name

_NAME = re.compile(TIER_NAME)
_TAKEN = frozenset({"names", "gpus", "bandwidth_factor", "compute_factor", "gpu"})


@dataclass(frozen=True)
class Tiers:
    """The tiers of a file, innermost first, and what a node is made of."""

    tiers: tuple[Tier, ...]  # from the node outwards
    inside: tuple[Tier, ...]  # below the node
    # GPUs of an innermost domain, then how many domains of a tier the next one holds,
    # up to the node.
    sizes: tuple[int, ...]
    # What a launcher calls the GPUs of a node, innermost domain by domain.
    members: tuple[int, ...]
    # Whether any tier says how many times its uplinks are oversubscribed.
    say_uplinks: bool

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the tiers from the node outwards."""
        return tuple(tier.name for tier in self.tiers)

    @property
    def gpus(self) -> int:
        """GPUs of a node."""
        return prod(self.sizes)

    def islands(self, gpus: IntArray) -> Islands | None:
        """The islands of nodes with these GPUs in each; None without tiers inside."""
        if not self.inside:
            return None
        return Islands(self.inside, self.sizes, gpus, self.members)

    @property
    def are_named(self) -> bool:
        """Whether the node lies in another tier, and all names differ."""
        names = [tier.name for tier in (*self.inside, *self.tiers)]
        return len(self.tiers) >= 2 and all(names) and len(set(names)) == len(names)


def read_tiers(document: Document) -> Tiers:
    """The tiers of a topology file; problems are left in the document."""
    listed = document.root.get("tiers", required=True)
    sections = [item.section() for item in listed.items()] if listed else []
    if not sections and listed and listed.kind == "list":
        listed.problem("no tiers")
    if len(sections) > MAX_TIERS:
        message = f"{len(sections)} tiers, the most is {MAX_TIERS}"
        document.root.problem(message, "tiers")
        document.fail_if_problems()
    tiers: list[Tier] = []
    for section in sections:
        tiers.append(_read_tier(section, tiers))
    _check_names(sections, tiers)
    names = [tier.name for tier in tiers]
    node = names.index(NODE) if NODE in names else 0
    if len(tiers[node:]) == 1:
        hint = "add a last tier for the whole cluster"
        message = f"one tier, {names[node]!r}, at least 2 are needed"
        document.root.problem(message, "tiers", hint)
    sizes = _read_sizes(sections, node)
    for section, tier in zip(sections, tiers, strict=True):
        if tier.rails and prod(sizes) > MAX_RAILS:
            message = (
                f"{prod(sizes)} rails, one a GPU of a node, the most is {MAX_RAILS}"
            )
            section.problem(message, "rails")
    members = _read_members(sections, sizes)
    say_uplinks = any(section.has("oversubscription") for section in sections)
    inside = tuple(tiers[:node])
    return Tiers(tuple(tiers[node:]), inside, sizes, members, say_uplinks)


def _read_sizes(sections: Sequence[Section], node: int) -> tuple[int, ...]:
    """What the tiers up to the node are made of."""
    most = MAX_GPUS_OF_NODE
    for section in sections[: node + 1]:
        section.get("size", required=True)
    sizes = [Tier.size.take(section) for section in sections[: node + 1]]
    if prod(sizes) > most:
        message = f"{prod(sizes)} GPUs in a node, the most is {most}"
        sections[node].problem(message, "size")
        return (1,) * len(sizes)
    for section in sections[node + 1 :]:
        if section.has("size"):
            hint = "give domain sizes in layout, or list the nodes"
            message = "only the first tiers, up to the node, have a size"
            section.problem(message, "size", hint)
    return tuple(sizes) or (1,)


def _read_members(sections: Sequence[Section], sizes: Sequence[int]) -> tuple[int, ...]:
    """What a launcher calls the GPUs of a node, island by island."""
    size, gpus = sizes[0], prod(sizes)
    in_order = tuple(range(gpus))
    value = sections[0].get("members") if sections and len(sizes) > 1 else None
    if value is None:
        return in_order
    rows = [item.integers(maximum=gpus - 1) for item in value.items()]
    members = tuple(gpu for row in rows for gpu in row)
    if any(len(row) != size for row in rows) or sorted(members) != [*in_order]:
        islands = [[*in_order[i : i + size]] for i in range(0, gpus, size)]
        hint = f"such as {islands}"
        message = f"GPUs 0 to {gpus - 1}, each once, {size} an island"
        value.problem(f"expected {message}", hint)
        return in_order
    return members


def _read_tier(section: Section, inner: Sequence[Tier]) -> Tier:
    tier = read(section, Tier)
    if tier.bandwidth < 1.0:
        section.problem("a bandwidth is at least 1 B/s", "bandwidth")
    if tier.scale_up and inner and not inner[-1].scale_up:
        message = f"tier {inner[-1].name!r} inside this one is not scale_up"
        hint = "scale_up tiers are the innermost ones, without a gap"
        section.problem(message, "scale_up", hint)
    _check_rails(section, tier, inner)
    if section.has("distance"):
        return tier
    innermost = inner[0].bandwidth if inner else tier.bandwidth
    return replace(tier, distance=innermost / tier.bandwidth)


def _check_rails(section: Section, tier: Tier, inner: Sequence[Tier]) -> None:
    if tier.rails and (tier.scale_up or not inner):
        hint = "rails are the switches between nodes that GPU 0, 1, ... of each share"
        section.problem("only a scale-out tier around nodes has rails", "rails", hint)
    elif tier.rails and not inner[0].scale_up:
        hint = "without scale_up inside it only the spine joins rails: leave it out"
        message = "GPUs of a node that is not scale_up cannot reach other rails"
        section.problem(message, "rails", hint)


def _check_names(sections: Sequence[Section], tiers: Sequence[Tier]) -> None:
    names = [tier.name for tier in tiers]
    for index, (section, name) in enumerate(zip(sections, names, strict=True)):
        if not name:
            continue
        if not _NAME.fullmatch(name):
            hint = "a tier name is a letter, then letters, digits, - and _"
            section.problem(f"{name!r} cannot name a tier", "name", hint)
        elif name in _TAKEN:
            section.problem(f"{name!r} has another meaning here", "name")
        elif name in names[:index]:
            section.problem(f"tier {name!r} comes twice", "name")
