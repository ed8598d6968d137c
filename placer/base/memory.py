"""How much memory this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from math import inf
from pathlib import Path

# Limit of the control group, version 2 and 1 (Linux, Documentation/admin-guide).
_GROUP_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def memory_limit() -> float:
    """Bytes this process may use, inf when nothing says.

    The least of the machine's memory, the limit of its container and ``ulimit -v``.
    """
    return min(_physical(), _of_group(), _of_process())


def _physical() -> float:
    with suppress(AttributeError, ValueError, OSError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return inf


def _of_group() -> float:
    for path in _GROUP_LIMITS:
        with suppress(OSError, ValueError):
            return float(Path(path).read_text())  # "max" is no number
    return inf


def _of_process() -> float:
    with suppress(ImportError):  # Windows
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        return inf if soft == resource.RLIM_INFINITY else float(soft)
    return inf
