"""The compiled loops of the search on the busiest ports, where numba is installed.

Compiling takes some seconds, once for every version of the loops, of numba and of
Python, and every kind of processor: numba keeps what is compiled on disk. A search does
not wait for it. Another process compiles while it goes on without, and ends with this
one. Both ways find the same, so it does not matter when the loops come.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from placer.helpers import begin
from placer.loading import load

if TYPE_CHECKING:
    from types import ModuleType

    from placer.solve.run.budget import Budget

LOOPS = "placer.solve.improve.port_loops"
SOURCES = "port_loops.py", "move_loops.py"
# Seconds that must be left for loading to be worth it: it takes one of a processor.
WORTH_S = 2.0


def loops(budget: Budget) -> ModuleType | None:
    """The loops, if they are compiled, or were loaded before; else None."""
    if find_spec("numba") is None:
        return None
    if LOOPS not in sys.modules and budget.seconds_left < WORTH_S:
        return None
    found: ModuleType = load(LOOPS)
    if _mark(found).exists():
        return found
    _begin()
    return None


def keep() -> None:
    """Compile the loops, so that they are kept on disk, and leave a mark."""
    found = load(LOOPS)
    found.compile_all()
    _mark(found).touch()


@cache
def _begin() -> None:
    """Compile in another process, once."""
    begin(keep)


@cache
def _mark(found: ModuleType) -> Path:
    """The file that says that these loops are kept, beside them."""
    import numba
    from llvmlite.binding import get_host_cpu_name

    here = Path(__file__).parent
    of = numba.__version__, platform.python_version(), get_host_cpu_name()
    # As numba tells: sources that are installed again are compiled again.
    stats = [(here / name).stat() for name in SOURCES]
    stamps = [(stat.st_mtime_ns, stat.st_size) for stat in stats]
    name = sha256(repr((of, stamps)).encode()).hexdigest()[:16]
    return Path(found.priced.stats.cache_path) / f"port_loops.{name}.kept"
