"""Host lists for people: short, and breakable between hosts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from placer.hostlist import compress

_MOST = 200  # characters
# Commas inside brackets belong to a range of hosts.
_BETWEEN_HOSTS = re.compile(r",(?![^\[]*\])")


def hosts_text(hosts: Sequence[str]) -> str:
    """The hosts as a host list, and where it is long how many more there are."""

    def length(count: int) -> int:
        return len(compress(hosts[:count]))

    shown = max(1, bisect_right(range(1, len(hosts) + 1), _MOST, key=length))
    more = f" and {len(hosts) - shown:,} more" if shown < len(hosts) else ""
    return _BETWEEN_HOSTS.sub(", ", compress(hosts[:shown])) + more
