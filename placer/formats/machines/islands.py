"""Islands: the GPUs of a node that NVLink or XGMI joins.

Two GPUs are of one island when links lead from one to the other, over other GPUs or a
switch where need be. So a ring or a mesh is one island although some of its pairs have
no link of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from placer.base.errors import Problem, refuse
from placer.base.hostlist import compress
from placer.base.naming import named

Parts = tuple[tuple[int, ...], ...]

_MOST_SHOWN = 8


def islands(count: int, links: Iterable[tuple[int, int]]) -> Parts:
    """The islands of GPUs 0 to ``count - 1``, by their first GPU."""
    island = {gpu: {gpu} for gpu in range(count)}
    for a, b in links:
        if island[a] is not island[b]:
            island[a] |= island[b]
            island |= dict.fromkeys(island[b], island[a])
    return tuple(
        tuple(sorted(gpus)) for first, gpus in island.items() if first == min(gpus)
    )


def island_words(names: Sequence[str], found: Sequence[Sequence[int]]) -> str:
    """The GPUs of every island: ``GPU[0-3]; GPU[4-7]``."""
    more = len(found) - _MOST_SHOWN
    shown = [
        compress(sorted((names[gpu] for gpu in gpus), key=lambda n: (len(n), n)))
        for gpus in found[:_MOST_SHOWN]
    ]
    return "; ".join(shown) + (f" and {more} more" if more > 0 else "")


def usual_islands(
    source: str, hosts: Mapping[str, tuple[Sequence[str], Parts]], link: str
) -> Parts:
    """The islands of a node whose links are all up.

    Those of other hosts lie inside them: they have lost links, or miss GPUs.

    Parameters
    ----------
    hosts : mapping of str to tuple
        By the name of each host, ``""`` for every node: its GPUs, and its islands by
        position among them.
    link : str
        ``NVLink`` or ``XGMI``.
    """
    first = max(hosts, key=lambda host: (len(hosts[host][0]), -len(hosts[host][1])))
    names, usual = hosts[first]
    sizes = {len(island) for island in usual}
    hint = (
        f"to place on it as if it had no {link}, leave this source out and give "
        f"{named('gpus_per_node', str(len(names)))} and {named('hardware', 'FILE')}, "
        "whose node is not scale_up"
    )
    if len(usual) > 1 and (len(sizes) > 1 or sizes == {1}):
        if 1 in sizes:
            hint = f"a GPU that is alone may have lost its links; {hint}"
        sort = "of one GPU each" if sizes == {1} else "of different sizes"
        message = (
            f"the {len(names)} GPUs{of_host(first)} are {link} islands {sort}: "
            f"{island_words(names, usual)}"
        )
        refuse([Problem(message, source, hint=hint)])
    island_of = {gpu: island for island in usual for gpu in island}
    problems = []
    for host, (gpus, found) in hosts.items():
        across = [part for part in found if len({island_of[g] for g in part}) > 1]
        if across and len(gpus) == len(names):
            message = (
                f"hosts have different {link} islands: {island_words(names, usual)} "
                f'on "{first}", {island_words(gpus, found)} on "{host}"'
            )
            problems.append(Problem(message, source, hint=hint))
    refuse(problems[:1])
    return usual


def of_host(host: str) -> str:
    """``of "n1"``; empty for what holds of every host."""
    return f' of "{host}"' if host else ""
