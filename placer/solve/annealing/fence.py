"""The rules of a job as the compiled annealer keeps them.

A rule says what may be on which node. Pins are how far each place is from those that
are open to a unit; every other rule counts tokens in boxes: replicas in a rack, nodes
in use, ranks within a budget. Shapes: U units of s ranks, P places (slots, or nodes of
runs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.problem.rules import Limits
from placer.solve.score.groups import Rows

if TYPE_CHECKING:
    from placer.solve.score._kernel import Annealer


# Entries of the table of a rule: a larger one is left to the check of what walks find.
LARGEST = 1 << 25


def fence_in(
    annealer: Annealer, limits: Limits, ranks: IntArray, nodes: IntArray
) -> None:
    """From now on an annealer counts what breaks rules, huge ones left out.

    ``ranks`` ((U, s)): of each unit. ``nodes`` ((P, s) or (P, 1)): node of each rank of
    a unit at each place.
    """
    nodes = np.broadcast_to(nodes, (len(nodes), ranks.shape[1]))
    if limits.nodes_of_rank:
        pin, far = _pins(limits, ranks, nodes)
        row, place = np.nonzero(far == 0)
        annealer.set_pins(
            pin_of_unit=pin,
            away=far.ravel(),
            homes=Rows.pairs(row, place, len(far)),
            places=len(nodes),
        )
    for count in limits.counts:
        unit, place, number = np.zeros_like(ranks), count.box[nodes], count.number
        if count.by_rank:
            unit, inside = number[ranks], np.zeros_like(count.box)
        else:
            number = inside = _place_inside(count.box, number)
        width = int(number.max()) + 1
        if len(count.most) * width > LARGEST:
            continue
        place = np.where(place < 0, -1, place * width + inside[nodes])
        both = np.unique(np.concatenate((unit, place)), axis=1)
        unit, place = both[: len(ranks)], both[len(ranks) :]
        annealer.add_limit(
            columns=both.shape[1],
            width=width,
            of_unit=unit.ravel(),
            of_place=place.ravel(),
            most=count.most,
        )


def _pins(
    limits: Limits, ranks: IntArray, nodes: IntArray
) -> tuple[IntArray, IntArray]:
    """Pin of each unit, -1 for none; tiers from each place to the homes of each pin.

    Units whose ranks have the same homes share a pin.
    """
    homes, domains = limits.nodes_of_rank, limits.topology.domain_of_node
    far = {own: away(domains, own) for own in {*homes.values()}}
    pin, rows = np.full(len(ranks), -1), list[IntArray]()
    number: dict[tuple[frozenset[int] | None, ...], int] = {}
    has_pins = np.isin(ranks, [*homes])
    for unit in np.flatnonzero(has_pins.any(axis=1)).tolist():
        wanted = tuple(map(homes.get, ranks[unit].tolist()))
        if wanted not in number:
            number[wanted] = len(rows)
            pinned = [(k, own) for k, own in enumerate(wanted) if own is not None]
            rows.append(np.sum([far[own][nodes[:, k]] for k, own in pinned], axis=0))
        pin[unit] = number[wanted]
    return pin, np.array(rows)


def away(domains: IntArray, homes: frozenset[int]) -> IntArray:
    """Tiers on which each node (N,) is in no domain of one of some nodes."""
    own = [*homes]
    return np.asarray(np.sum([~np.isin(row, row[own]) for row in domains], axis=0))


def _place_inside(box: IntArray, number: IntArray) -> IntArray:
    """Place of the number of each entry among those of its box, ascending."""
    pairs, entry = np.unique(np.stack((box, number)), axis=1, return_inverse=True)
    place = np.arange(pairs.shape[1]) - np.searchsorted(pairs[0], pairs[0])
    found: IntArray = place[entry.reshape(-1)]
    return found
