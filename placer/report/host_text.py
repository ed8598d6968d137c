"""Host lists for people: short, and breakable between hosts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby

from placer.base.hostlist import compress

_MOST = 200  # characters
# Commas inside brackets belong to a range of hosts.
_BETWEEN_HOSTS = re.compile(r",(?![^\[]*\])")
# The last number that is not in brackets, with what stands before and after it.
_OUTER = re.compile(r"([^\[]*?)([0-9]{1,18})([^0-9\[]+)(?:([0-9]+)|(\[.*))")


def hosts_text(hosts: Sequence[str]) -> str:
    """The hosts as a host list, and where it is long how many more there are.

    It may have several brackets: ``b[01-32]-r[1-4]``.
    """

    def length(count: int) -> int:
        return len(_folded(hosts[:count]))

    shown = len(hosts)
    if length(shown) > _MOST:
        shown = max(1, bisect_right(range(1, len(hosts) + 1), _MOST, key=length))
    more = f" and {len(hosts) - shown:,} more" if shown < len(hosts) else ""
    return _BETWEEN_HOSTS.sub(", ", _folded(hosts[:shown])) + more


def _folded(hosts: Sequence[str]) -> str:
    """A host list in which neighbours that differ in an outer number are one."""
    items = _BETWEEN_HOSTS.split(compress(hosts))
    while True:
        fewer = [*_fewer(items)]
        if len(fewer) == len(items):
            return ",".join(items)
        items = fewer


def _fewer(items: Sequence[str]) -> Iterator[str]:
    """The items, neighbours joined that differ in their last outer number alone."""
    for around, group in groupby(items, key=_around):
        members = [*group]
        if around is None or len(members) == 1:
            yield from members
            continue
        found = filter(None, map(_OUTER.fullmatch, members))
        before, after = around
        yield before + compress(match[2] for match in found) + after


def _around(item: str) -> tuple[str, str] | None:
    """What stands before and after the last outer number of an item, if it has one.

    No list ends in plain text after a bracket, so a last number gets its own.
    """
    found = _OUTER.fullmatch(item)
    if found is None:
        return None
    return found[1], found[3] + (f"[{found[4]}]" if found[4] else found[5])
