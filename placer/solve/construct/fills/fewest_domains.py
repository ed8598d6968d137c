"""The fewest domains of two tiers that hold all ranks.

A ring pays for every rack that it enters, and again for every block. Sixteen racks in
four blocks are fewer than seventeen in five, though the smallest racks lie elsewhere.
The program goes over blocks, of which each gives its largest racks: for every number of
blocks and of racks it keeps the most GPUs. Shapes: N nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray

if TYPE_CHECKING:
    from placer.topology.machine import Machine

MOST_STEPS = 20_000_000  # of the program


def fewest_domains(
    machine: Machine, capacity: IntArray, tier: int, world: int
) -> Iterator[IntArray]:
    """Capacities that leave out all but the fewest domains; shape (N,).

    One for each number of outer domains from the least on, while that saves domains of
    ``tier``. None where there is no outer tier, or there are too many domains.
    """
    if tier + 1 >= len(machine.tiers):
        return
    domain_of_node = machine.domain_of_node[tier]
    room = np.bincount(domain_of_node, capacity).astype(np.int64)
    outer = np.zeros(len(room), dtype=np.int64)
    outer[domain_of_node] = machine.domain_of_node[tier + 1]
    used = np.flatnonzero(room)
    order = used[np.lexsort((-room[used], outer[used]))]
    first = np.unique(outer[order], return_index=True)[1]
    of_outer = np.split(order, first[1:])
    if len(of_outer) * len(order) ** 2 > MOST_STEPS:
        return
    given = _given([room[domains] for domains in of_outer], world)
    for counts in given:
        kept = [d for ds, n in zip(of_outer, counts, strict=True) for d in ds[:n]]
        yield np.where(np.isin(domain_of_node, kept), capacity, 0)


def _given(rooms: list[IntArray], world: int) -> Iterator[list[int]]:
    """How many domains each outer one gives, the largest of its own first."""
    most = np.full((len(rooms) + 1, sum(map(len, rooms)) + 1), -1, dtype=np.int64)
    most[0, 0] = 0
    taken = []
    for own in rooms:
        before, number = most.copy(), np.zeros(most.shape, dtype=np.int64)
        for n, total in enumerate(np.cumsum(own).tolist(), start=1):
            reached = before[:-1, :-n]
            more = np.where(reached < 0, -1, reached + total)
            better = more > most[1:, n:]
            most[1:, n:][better] = more[better]
            number[1:, n:][better] = n
        taken.append(number)
    fewest = most.shape[1]
    for outers in range(len(most)):
        enough = np.flatnonzero(most[outers] >= world)
        if not len(enough) or enough[0] >= fewest:
            continue
        fewest = left = int(enough[0])
        counts, at = [], outers
        for number in reversed(taken):
            n = int(number[at, left])
            counts.append(n)
            at, left = at - (n > 0), left - n
        yield counts[::-1]
