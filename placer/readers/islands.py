"""Islands: the GPUs of a node that NVLink or XGMI joins.

Two GPUs are of one island when links lead from one to the other, over other GPUs or a
switch where need be. So a ring or a mesh is one island although some of its pairs have
no link of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placer.errors import Problem
from placer.hostlist import compress

_MOST_SHOWN = 8


def islands(count: int, links: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The islands of GPUs 0 to ``count - 1``, by their first GPU."""
    island = {gpu: {gpu} for gpu in range(count)}
    for a, b in links:
        if island[a] is not island[b]:
            island[a] |= island[b]
            island |= dict.fromkeys(island[b], island[a])
    return [sorted(gpus) for first, gpus in island.items() if first == min(gpus)]


def island_words(names: Sequence[str], found: Sequence[Sequence[int]]) -> str:
    """The GPUs of every island: ``GPU[0-3]; GPU[4-7]``."""
    more = len(found) - _MOST_SHOWN
    shown = [
        compress(sorted((names[gpu] for gpu in gpus), key=lambda n: (len(n), n)))
        for gpus in found[:_MOST_SHOWN]
    ]
    return "; ".join(shown) + (f" and {more} more" if more > 0 else "")


def several_islands(
    source: str, of: str, names: Sequence[str], found: Sequence[list[int]], link: str
) -> Problem:
    """Why a node of several islands is not read.

    Parameters
    ----------
    source : str
    of : str
        Which node, such as ``of "n1"``; may be empty.
    names : sequence of str
        Its GPUs.
    found : sequence of list of int
        Its islands, by position in ``names``.
    link : str
        ``NVLink`` or ``XGMI``.
    """
    count = len(names)
    message = (
        f"the {count} GPUs{of} are {len(found)} {link} islands, not one: "
        f"{island_words(names, found)}"
    )
    hint = (
        "islands inside a node cannot be read yet; to place on it as if it had no "
        f"{link}, leave this source out and give --gpus-per-node {count} and a "
        "--hardware file whose node is not scale_up"
    )
    return Problem(message, source, hint=hint)
