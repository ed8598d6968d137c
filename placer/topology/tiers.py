"""Decoding the tiers of a topology file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from placer.topology.build import MAX_GPUS_OF_NODE
from placer.topology.model import Tier
from placer.units import parse_bandwidth, parse_time

if TYPE_CHECKING:
    from placer.document import Document, Section

MAX_TIERS = 32

_SMALLEST = 1e-6
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_TAKEN = frozenset({"names", "gpus", "bandwidth_factor", "gpu"})


@dataclass(frozen=True)
class Tiers:
    """The tiers of a file, innermost first, and the GPUs of a node."""

    tiers: tuple[Tier, ...]
    gpus: int

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the tiers, innermost first."""
        return tuple(tier.name for tier in self.tiers)

    @property
    def are_named(self) -> bool:
        """Whether there are at least two tiers and their names differ."""
        names = self.names
        return len(names) >= 2 and all(names) and len(set(names)) == len(names)


def read_tiers(document: Document) -> Tiers:
    """The tiers of a topology file; problems are left in the document."""
    listed = document.root.get("tiers", required=True)
    sections = [item.section() for item in listed.items()] if listed else []
    if sections:
        gpus = sections[0].integer("size", maximum=MAX_GPUS_OF_NODE)
    elif listed and listed.kind == "list":
        listed.problem("no tiers")
    if len(sections) > MAX_TIERS:
        message = f"{len(sections)} tiers, the most is {MAX_TIERS}"
        document.root.problem(message, "tiers")
        document.fail_if_problems()
    if len(sections) == 1:
        hint = "add a last tier for the whole cluster"
        document.root.problem("one tier, at least 2 are needed", "tiers", hint)
    tiers: list[Tier] = []
    for section in sections:
        tiers.append(_read_tier(section, tiers))
    _check_names(sections, tiers)
    return Tiers(tuple(tiers), gpus if sections else 1)


def _read_tier(section: Section, inner: Sequence[Tier]) -> Tier:
    bandwidth = section.quantity("bandwidth", parse_bandwidth)
    if bandwidth < 1.0:
        section.problem("a bandwidth is at least 1 B/s", "bandwidth")
    scale_up = section.boolean("scale_up", False)
    if scale_up and inner and not inner[-1].scale_up:
        message = f"tier {inner[-1].name!r} inside this one is not scale_up"
        hint = "scale_up tiers are the innermost ones, without a gap"
        section.problem(message, "scale_up", hint)
    if inner and section.has("size"):
        hint = "give domain sizes in layout, or list the nodes"
        section.problem("only the first tier has a size (GPUs in a node)", "size", hint)
    innermost = inner[0].bandwidth if inner else bandwidth
    return Tier(
        name=section.text("name"),
        bandwidth=bandwidth,
        latency=section.quantity("latency", parse_time, 0.0),
        scale_up=scale_up,
        oversubscription=section.number("oversubscription", 1.0, minimum=_SMALLEST),
        efficiency=section.number("efficiency", 1.0, minimum=_SMALLEST, maximum=1.0),
        distance=section.number("distance", innermost / bandwidth),
    )


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
