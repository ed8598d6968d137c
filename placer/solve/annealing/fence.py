"""The rules of a job as the compiled annealer keeps them.

A rule says what may be on which node. Pins are places open to a unit; every other rule
counts tokens in boxes: replicas in a rack, nodes in use, ranks within a budget. Shapes:
U units of s ranks, P places (slots, or nodes of runs).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from placer.solve.problem.rules import Limits
    from placer.solve.score._kernel import Annealer


class _Limit(NamedTuple):
    """At most so many different tokens in each box.

    Attributes
    ----------
    token_of_rank, token_of_node, box_of_node : ndarray
        Tokens are of ranks or of nodes, the others 0; a node in no box is in -1.
    most : ndarray, shape (boxes,)
    """

    token_of_rank: IntArray
    token_of_node: IntArray
    box_of_node: IntArray
    most: IntArray


def fence_in(
    annealer: Annealer, limits: Limits, ranks: IntArray, nodes: IntArray
) -> None:
    """From now on an annealer makes no change that breaks a rule.

    Parameters
    ----------
    ranks : ndarray, shape (U, s)
        Of each unit.
    nodes : ndarray, shape (P, s) or (P, 1)
        Node of each rank of a unit at each place.
    """
    nodes = np.broadcast_to(nodes, (len(nodes), ranks.shape[1]))
    if limits.nodes_of_rank:
        pin, is_open = _pins(limits, ranks, nodes)
        annealer.set_pins(_ints(pin), _ints(is_open), len(nodes))
    for limit in _limits(limits):
        width = int(max(limit.token_of_rank.max(), limit.token_of_node.max())) + 1
        box = limit.box_of_node
        place = np.where(box < 0, -1, box * width + limit.token_of_node)
        both = np.concatenate((limit.token_of_rank[ranks], place[nodes]))
        both = np.unique(both, axis=1)
        unit, place = both[: len(ranks)], both[len(ranks) :]
        annealer.add_limit(
            both.shape[1], width, _ints(unit), _ints(place), _ints(limit.most)
        )


def _pins(
    limits: Limits, ranks: IntArray, nodes: IntArray
) -> tuple[IntArray, BoolArray]:
    """Number of each unit that has pins, else -1; places that are open to each."""
    pin, is_open = np.full(len(ranks), -1), []
    homes = limits.nodes_of_rank
    has_pins = np.isin(ranks, [*homes])
    for unit in np.flatnonzero(has_pins.any(axis=1)).tolist():
        pin[unit] = len(is_open)
        fits = [
            np.isin(nodes[:, k], [*homes[rank]])
            for k, rank in enumerate(ranks[unit].tolist())
            if rank in homes
        ]
        is_open.append(np.logical_and.reduce(fits))
    return pin, np.array(is_open)


def _limits(limits: Limits) -> Iterator[_Limit]:
    """What every rule but pins counts."""
    machine, axes = limits.topology, limits.job.parallelism
    rank, replica = np.arange(limits.job.world_size), axes.coordinates["dp"]
    no_rank, no_node = np.zeros_like(rank), np.zeros(machine.num_nodes, np.int64)
    for tier, most in limits.at_most:
        row = machine.domain_of_node[tier]
        yield _Limit(replica, no_node, row, np.full(int(row.max()) + 1, most))
    for cap in limits.budgets:
        box = np.where(cap.inside, 0, -1)
        for tokens, number in ((rank, cap.ranks), (replica, cap.replicas)):
            if number is not None:
                yield _Limit(tokens, no_node, box, np.array([number]))
    host = machine.host_of_node
    for tier, number in limits.spares:
        row = machine.domain_of_host(tier)
        most = np.maximum(np.bincount(row) - number, 0)
        yield _Limit(no_rank, _place_inside(row)[host], row[host], most)
    if limits.most_avoided is not None:
        box = np.where(limits.avoided, 0, -1)
        yield _Limit(no_rank, host, box, np.array([limits.most_avoided]))


def _place_inside(row: IntArray) -> IntArray:
    """Place of each entry among those with its value."""
    order, found = np.argsort(row, kind="stable"), np.empty_like(row)
    found[order] = np.arange(len(row)) - np.searchsorted(row[order], row[order])
    return found


def _ints(values: IntArray | BoolArray) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.ascontiguousarray(values.ravel(), dtype=np.int32)
