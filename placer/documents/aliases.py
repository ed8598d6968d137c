"""Aliases of YAML put out in full, as events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy

import yaml

MERGE = "<<"


def with_aliases(events: Iterable[yaml.Event]) -> Iterator[yaml.Event]:
    """The events without anchors, each alias replaced by what its anchor marks.

    A merge key (``<<``) becomes a key of that name: whoever reads the values merges.
    An alias inside its own anchor stays, and so does one without an anchor before it:
    whoever reads the events refuses them.
    """
    known: dict[str, list[yaml.Event]] = {}
    open_anchors: list[tuple[str, list[yaml.Event], int]] = []
    depth = 0
    for event in events:
        anchor = getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            replaced = known.get(anchor or "", [event])
        else:
            plain = event
            if isinstance(event, yaml.ScalarEvent) and event.value == MERGE:
                plain = copy(event)
                plain.style = plain.style or "'"
            if anchor is not None and isinstance(plain, yaml.NodeEvent):
                plain = copy(plain)
                plain.anchor = None
                open_anchors.append((anchor, [], depth))
            replaced = [plain]
        yield from replaced
        for _, kept, _ in open_anchors:
            kept += replaced
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        while open_anchors and open_anchors[-1][2] == depth:
            name, kept, _ = open_anchors.pop()
            known[name] = kept
