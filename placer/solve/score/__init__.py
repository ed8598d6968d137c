"""The cost of a placement and of every change of it, exact: the compiled part."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

KERNEL = "placer.solve.score._kernel"


def is_built() -> bool:
    """Whether this installation has the compiled part, and it is not stale."""
    return find_spec(KERNEL) is not None and not is_stale()


def is_stale() -> bool:
    """Whether the compiled part was made of other sources than those beside it."""
    if find_spec(KERNEL) is None:
        return False
    made_of = getattr(import_module(KERNEL), "sources", "older ones")
    return _digest() not in ("", made_of)


@lru_cache(maxsize=1)
def _digest() -> str:
    """That of the sources, as ``native/CMakeLists.txt`` makes it.

    Empty in a wheel, which has none: what is compiled comes with it.
    """
    folders = "score/native", "annealing/native", "annealing/native/moves"
    solve = Path(__file__).parents[1]
    files = [file for folder in folders for file in (solve / folder).glob("*.?pp")]
    digests = sorted(sha256(file.read_bytes()).hexdigest() for file in files)
    return sha256("".join(digests).encode()).hexdigest() if files else ""
