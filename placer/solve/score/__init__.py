"""The cost of a placement and of every change of it, exact: the compiled part."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec


@lru_cache(maxsize=1)
def is_built() -> bool:
    """Whether this installation has the compiled part."""
    return find_spec("placer.solve.score._kernel") is not None
