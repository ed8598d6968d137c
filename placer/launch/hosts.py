"""Which node of a plan a host is, with or without its domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


class HostTable:
    """Looks hosts up among the names of a plan, as the emitted scripts do.

    A host is a node's whole name; or its name without a domain is; or its name is the
    first label of one node's name only.
    """

    def __init__(self, nodes: Sequence[str]) -> None:
        self._whole = {name: i for i, name in enumerate(nodes)}
        labels = [name.partition(".")[0] for name in nodes]
        uses = Counter(labels)
        self._label = {name: i for i, name in enumerate(labels) if uses[name] == 1}

    def find(self, host: str) -> int | None:
        """Index of the node, or None for a host of no node."""
        for name in (host, host.partition(".")[0]):
            if name in self._whole:
                return self._whole[name]
        return self._label.get(host)
