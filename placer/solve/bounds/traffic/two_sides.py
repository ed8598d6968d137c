"""The bound that uplinks set to traffic between two sides, as of roles with transfers.

Let every message go from one side of ranks to the other, either way. A domain that has
``a`` ranks of a component's one side and ``b`` of its other sends at least what those
``a`` have for all but ``b`` of the other side, the heaviest messages left out, and what
those ``b`` have for all but ``a``; it receives as much by the same count. Over
components that is a knapsack. In a time T an uplink leaves a domain a choice of ``a``
and ``b``; all domains together must hold both sides.

Shapes: D domains, A and B vertices of each side, from 0 on; ``s`` and ``r`` of each
side of a component.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.links import weighted_counts
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

ROUNDING = 1e-9
# What goes out, comes in, and both: an uplink carries as much each way.
HALF_OF_BOTH = np.array([1.0, 1.0, 0.5])[:, None, None]


def least_between_sides(
    network: IdealNetwork, traffic: RankTraffic, params: Params, budget: Budget
) -> float:
    """Least seconds that the uplinks of any tier allow to traffic between two sides.

    Parameters
    ----------
    network : IdealNetwork
        The best one for every placement.
    """
    fabric, ranks = network.fabric, network.label.shape[1]
    seconds = 0.0
    for t, sets in _tiers_with_uplinks(network):
        capacity = fabric.uplink_capacity[t]
        for label in (np.arange(ranks), sets):
            if label is None or budget.is_over():
                break
            count = int(label.max()) + 1
            room = np.minimum(network.capacities[t - 1] // (ranks // count), count)
            components = _components(
                _between_sets(traffic, label), count, params.side_pairs
            )
            sides = Sides.of(components, room, params)
            busy = 0.0 if sides is None else sides.least_busy(room, capacity)
            if busy > 0:
                busy = busy * (1 - ROUNDING) + float(fabric.latency[t:].min())
                seconds = max(seconds, busy)
    return seconds


def _tiers_with_uplinks(
    network: IdealNetwork,
) -> Iterator[tuple[int, IntArray | None]]:
    """Tiers that several uplinks lead to, and the set of each rank; shape (R,).

    What stays together is one vertex too, where all of it is of one size; else None.
    """
    ranks = network.label.shape[1]
    for t in network.fabric.scale_out_tiers:
        if t == 0 or len(network.fabric.uplink_capacity[t]) < 2:
            continue
        sets = network.label[t - 1]
        sizes = np.bincount(sets)
        are_alike = 1 < sizes[0] < ranks and (sizes == sizes[0]).all()
        yield t, sets if are_alike else None


def _between_sets(traffic: RankTraffic, label: IntArray) -> RankTraffic:
    """What sets of ranks send each other."""
    count = int(label.max()) + 1
    keys = label[traffic.senders] * count + label[traffic.receivers]
    apart = keys // count != keys % count
    keys, which = np.unique(keys[apart], return_inverse=True)
    size = weighted_counts(which, traffic.size_bytes[apart], len(keys))
    return replace(
        traffic, senders=keys // count, receivers=keys % count, size_bytes=size
    )


class Sides(NamedTuple):
    """Two sides, and what domains send with any number of both.

    Attributes
    ----------
    vertices : (int, int)
        Of each side.
    sent : ndarray, shape (3, A, B), bytes
        What goes out at least, what comes in, and both together.
    """

    vertices: tuple[int, int]
    sent: FloatArray

    @classmethod
    def of(
        cls, components: list[FloatArray], room: IntArray, params: Params
    ) -> Sides | None:
        """The sides of components' vertices, of which domains hold so many.

        None where there are no two sides, or tables would be too large.
        """
        if not components:
            return None
        most = int(room.max())
        vertices = np.sum([one.shape[1:] for one in components], axis=0)
        shape = np.minimum(vertices, most) + 1
        pieces = np.full((3, *shape), np.inf)
        for one in {(one.shape, one.tobytes()): one for one in components}.values():
            table = _least_sent(one)[:, : shape[0], : shape[1]]
            inside = pieces[:, : table.shape[1], : table.shape[2]]
            np.minimum(inside, table, out=inside)
        if len(components) > 1:
            largest = np.max([one.shape[1:] for one in components], axis=0) + 1
            largest = np.minimum(largest, shape)
            if float(np.prod(shape)) * float(np.prod(largest)) > params.side_work:
                return None
            pieces = _added_up(pieces, most, largest)
        return cls((int(vertices[0]), int(vertices[1])), pieces)

    def least_busy(self, room: IntArray, capacity: FloatArray) -> float:
        """Least seconds in which uplinks may carry what all domains send."""
        load = (self.sent * HALF_OF_BOTH).max(axis=0)
        held = np.indices(load.shape).sum(axis=0)
        own = np.stack((room.astype(np.float64), capacity))
        kinds, domains = np.unique(own, axis=1, return_counts=True)
        busy = np.array(
            [
                np.where(held <= size, _seconds(load, carried), np.inf)
                for size, carried in kinds.T
            ]
        )
        times = np.unique(busy[busy < np.inf])

        def hold(seconds: float) -> bool:
            return self._hold(np.repeat(busy <= seconds, domains, axis=0))

        return float(times[min(bisect_left(times, True, key=hold), len(times) - 1)])

    def _hold(self, allowed: BoolArray) -> bool:
        """Whether domains hold both sides, each with numbers that it may have.

        Parameters
        ----------
        allowed : ndarray, shape (D, A, B)
        """
        others = np.arange(allowed.shape[2])
        # Most of the other side beside at least so many of the first, in a domain.
        most = np.where(allowed, others, -np.inf).max(axis=2)
        most = np.maximum.accumulate(most[:, ::-1], axis=1)[:, ::-1]
        # The same in all domains so far.
        total = np.full(self.vertices[0] + 1, -np.inf)
        total[0] = 0.0
        for of_domain in most:
            before, total = total, total + of_domain[0]
            for held in (np.flatnonzero(of_domain[1:] > -np.inf) + 1).tolist():
                more = of_domain[held]
                total[held:] = np.maximum(total[held:], before[:-held] + more)
                total[:held] = np.maximum(total[:held], before[0] + more)
        return bool(total[-1] >= self.vertices[1])


def _components(traffic: RankTraffic, count: int, most: int) -> list[FloatArray]:
    """What the two sides of each component send each other; shapes (2, s, r), bytes.

    Empty where some who send each other anything are on no two sides, or where there
    are too many pairs.
    """
    senders, receivers, size = traffic.senders, traffic.receivers, traffic.size_bytes
    # Every vertex on either side: no message joins vertices of the same side.
    ends = np.concatenate(
        ((senders, receivers + count), (senders + count, receivers)), axis=1
    )
    one, other = join(np.arange(2 * count), ends.T).reshape(2, count)
    if not len(senders) or (one == other)[senders].any():
        return []
    side, component = (one > other).astype(np.int64), np.minimum(one, other)
    of = component * 2 + side
    size_of = np.bincount(of, minlength=2 * count)
    order = np.argsort(of, kind="stable")
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count) - np.searchsorted(of[order], of[order])
    sent_by = side[senders]
    first = np.where(sent_by == 0, place[senders], place[receivers])
    second = np.where(sent_by == 0, place[receivers], place[senders])
    in_order = np.argsort(component[senders], kind="stable")
    starts = np.flatnonzero(np.diff(component[senders][in_order])) + 1
    found = []
    for flows in np.split(in_order, starts):
        own = 2 * component[senders[flows[0]]]
        shape = size_of[own : own + 2]
        most -= int(shape.prod())
        if most < 0:
            return []
        sent = np.zeros((2, *shape))
        np.add.at(sent, (sent_by[flows], first[flows], second[flows]), size[flows])
        found.append(sent)
    return found


def _least_sent(sent: FloatArray) -> FloatArray:
    """What leaves some of a component, enters, and both; shape (3, s + 1, r + 1)."""
    there, back = sent
    ways = ((there, back), (back, there), (there + back, there + back))
    return np.array([_left(one) + _left(other.T).T for one, other in ways])


def _left(sent: FloatArray) -> FloatArray:
    """What any of one side have at least for all but any of the other.

    Parameters
    ----------
    sent : ndarray, shape (s, r)

    Returns
    -------
    ndarray, shape (s + 1, r + 1)
    """
    near = np.cumsum(np.pad(-np.sort(-sent, axis=1), ((0, 0), (1, 0))), axis=1)
    left = np.sort(near[:, -1:] - near, axis=0)
    return np.cumsum(np.pad(left, ((1, 0), (0, 0))), axis=0)


def _added_up(pieces: FloatArray, most: int, largest: IntArray) -> FloatArray:
    """The least of any number of pieces together; shape (3, A, B).

    Parameters
    ----------
    largest : ndarray, shape (2,)
        Numbers of each side that one piece may have, from 0 on.
    """
    found = pieces.copy()
    sums = np.indices(pieces.shape[1:]).sum(axis=0)
    own = np.where(sums, pieces, np.inf)[:, : largest[0], : largest[1]]
    for a, b in np.argwhere((sums <= most) & (sums > 0)).tolist():
        one = own[:, : a + 1, : b + 1]
        first = a + 1 - one.shape[1], b + 1 - one.shape[2]
        before = found[:, first[0] : a + 1, first[1] : b + 1][:, ::-1, ::-1]
        found[:, a, b] = np.minimum(found[:, a, b], (before + one).min(axis=(1, 2)))
    return found


def _seconds(load: FloatArray, carried: float) -> FloatArray:
    """How long an uplink that carries so much a second is busy with a load."""
    if carried:
        return load / carried
    return np.where(load > 0, np.inf, 0.0)
