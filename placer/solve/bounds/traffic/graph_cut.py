"""The bound that uplinks set to traffic, from how little any set of ranks can send.

Let a graph have coordinates (`directions.py`), S be any s of its vertices, X one of
them at random, and m_i the vertices of S on X's line in direction i. X_i is known from
the other coordinates but for an entropy of mean log m_i, so (Han 1978, Information and
Control 36; Loomis and Whitney)

    sum over i of  mean log m_i  <=  log s
    weight that leaves S  =  s * sum over i of  mean theta_i(m_i) / m_i

with ``theta_i(m)`` of edges that leave m vertices of a line. With the convex hull of
``theta_i(m) / m`` over log m the mean can go inside (Jensen), and the least value is a
fractional knapsack. Sets of a part of a cube have no more edges inside than ones in 0
... s - 1, written as binary numbers (Harper 1964, J. SIAM 12).

A path that k domains share is cut k - 1 times. So over all domains together a line may
instead count two edges in each domain that it meets, less two. The busiest uplink takes
at least what all of them send over what all of them carry, in whole messages. In a time
T each domain holds as many vertices as may send what its uplink carries, and what that
is less than two edges of each line that it meets, adds up to no more than all ends.

Where a launch puts runs of ranks on nodes, these are vertices. See docs/method.md,
"What leaves any set of ranks". Shapes: V vertices, E edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.cost.links import weighted_counts
from placer.solve.bounds.traffic.convex import Segment, below, filled, hull
from placer.solve.bounds.traffic.directions import Directions, directions
from placer.solve.bounds.traffic.vertices import between_sets, tiers_with_uplinks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

ROUNDING = 1e-9
# Times are told apart that differ by so much, relative to them.
FINEST = 1e-13
# Sizes up to here are exact as whole numbers.
MOST_BYTES = 2.0**53


def least_over_uplinks(
    network: IdealNetwork, traffic: RankTraffic, params: Params, budget: Budget
) -> float:
    """Least seconds that the uplinks of any tier allow to the traffic of ranks.

    Parameters
    ----------
    network : IdealNetwork
        The best one for every placement.
    traffic : RankTraffic
    params : Params
    budget : Budget
        When it ends, the tiers so far are all.
    """
    fabric, ranks = network.fabric, network.label.shape[1]
    graphs = [_graph(traffic, np.arange(ranks), params)]
    seconds = 0.0
    for t, sets in tiers_with_uplinks(network):
        if budget.is_over():
            break
        if sets is not None:
            graphs = [graphs[0], _graph(traffic, sets, params)]
        for between, lines in graphs:
            room = network.capacities[t - 1] // (ranks // lines.vertices)
            sent = lines.least_sent(room)
            # What leaves some domain enters others, and uplinks carry as much each way.
            capacity = fabric.uplink_capacity[t]
            message = _message_of(between.size_bytes)
            busy = _least_busy(sent / 2, capacity, message)
            busy = lines.least_in_each(room, capacity, message, busy)
            if busy > 0:
                seconds = max(seconds, busy + float(fabric.latency[t:].min()))
    return seconds


def _graph(
    traffic: RankTraffic, label: IntArray, params: Params
) -> tuple[RankTraffic, Lines]:
    """What sets of ranks send each other, and what leaves any number of them."""
    between = between_sets(traffic, label)
    return between, _lines(between, int(label.max()) + 1, params.direction_work)


def _least_busy(sent: float, capacity: FloatArray, message: float) -> float:
    """Least seconds in which uplinks carry so many bytes one way, some either way.

    Each carries whole messages in both directions, and is busy with one of them as long
    as with half of what it carries at the least.
    """
    capacity = capacity[capacity > 0]
    busy = sent / float(capacity.sum())
    while message:
        carried = _carried(busy * capacity, message)
        if float(carried.sum()) >= sent * (1 - ROUNDING):
            break
        busy = float(((carried + message) / capacity).min())
    return busy


def _carried(sent: FloatArray, message: float) -> FloatArray:
    """The whole messages of so many bytes at most, where they are multiples of one."""
    sent = sent * (1 + ROUNDING)
    return np.floor(sent / message) * message if message else sent


def _message_of(size_bytes: FloatArray) -> float:
    """The size of which all are multiples; 0 where that is not known."""
    if (size_bytes % 1).any() or size_bytes.max(initial=0.0) > MOST_BYTES:
        return 0.0
    return float(np.gcd.reduce(size_bytes.astype(np.int64)))


class _Way(NamedTuple):
    """What lines of one direction send.

    Attributes
    ----------
    apart, shared : ndarray, bytes
        For 1, 2, ... vertices of one domain on a line, each of them sends at least so
        much: to all others, or as long as ends are taken off.
    ends : float, bytes
        What is taken off over all lines.
    is_ring : bool
        Whether all lines are rings, of which a set cuts an even number of edges.
    is_thread : bool
        Whether all lines are paths or rings.
    """

    apart: FloatArray
    shared: FloatArray
    ends: float
    is_ring: bool
    is_thread: bool


class Lines(NamedTuple):
    """The lines of a graph.

    Attributes
    ----------
    ways : tuple of _Way
    vertices : int
    unit : float, bytes
        The weight of all edges; 0 where they differ.
    cube : ndarray, shape (V + 1,), bytes
        What leaves 0, 1, ... vertices of a part of a cube at least; 0 of other graphs.
    """

    ways: tuple[_Way, ...]
    vertices: int
    unit: float
    cube: FloatArray

    def least_sent(self, room: IntArray) -> float:
        """Least weight that leaves domains with such room, all together, bytes."""
        apart = self._sent(room, [way.apart for way in self.ways], self.pair)
        shared = self._sent(room, [way.shared for way in self.ways], 2 * self.unit)
        return max(apart, shared - sum(way.ends for way in self.ways), 0.0)

    def least_in_each(
        self, room: IntArray, capacity: FloatArray, message: float, known: float
    ) -> float:
        """Least seconds, those known or more, for which domains may hold all vertices.

        For a time a domain holds as many at most as may send so little; where it sends
        less than two edges of each line that it meets, ends of lines make up for it.
        """
        rooms = np.minimum(room, self.vertices)[room > 0]
        rates = capacity[room > 0]
        if rooms.sum() < self.vertices or not (rates > 0).all():
            return known
        leaves = self._leaves(rooms, [way.apart for way in self.ways], self.pair)
        meets = self._leaves(rooms, [way.shared for way in self.ways], 2 * self.unit)
        are_threads = all(way.is_thread for way in self.ways)
        ends = sum(way.ends for way in self.ways) if are_threads else np.inf
        kinds, number = np.unique(np.stack((rooms, rates)), axis=1, return_counts=True)

        def may_do(seconds: float) -> bool:
            """Whether so many vertices fit, and lines have ends enough."""
            more = []
            for most, rate, count in zip(*kinds, number, strict=True):
                carried = 2 * _carried(rate * seconds, message)
                may = np.flatnonzero(leaves[: int(most) + 1] <= carried)
                lacks = np.maximum(meets[: may[-1] + 1] - carried, 0.0)
                more.append(np.repeat(np.diff(below(lacks)), count))
            least = np.sort(np.concatenate(more))[: self.vertices]
            return len(least) == self.vertices and least.sum() <= ends * (1 + ROUNDING)

        most_sent = max(leaves.max(), meets.max()) / 2 + message
        low, high = known, float(most_sent / rates.min())
        if may_do(known):
            return known
        while high - low > FINEST * high:
            middle = (low + high) / 2
            low, high = (low, middle) if may_do(middle) else (middle, high)
        return low

    @property
    def pair(self) -> float:
        """Bytes of which a set sends a multiple, cut from others; 0: of none."""
        return self.unit * (2 if all(way.is_ring for way in self.ways) else 1)

    def _sent(
        self, room: IntArray, profiles: Sequence[FloatArray], unit: float
    ) -> float:
        """Least sum over domains that hold all vertices, each a multiple of a unit."""
        found: list[Segment] = []
        rooms, counts = np.unique(np.minimum(room, self.vertices), return_counts=True)
        leaves = self._leaves(rooms, profiles, unit)
        for own, count in zip(rooms.tolist(), counts.tolist(), strict=True):
            parts = hull(np.arange(own + 1.0), leaves[: own + 1])
            found += [part._replace(length=part.length * count) for part in parts]
        return filled(found, self.vertices) * (1 - ROUNDING)

    def _leaves(
        self, rooms: IntArray, profiles: Sequence[FloatArray], unit: float
    ) -> FloatArray:
        """Least weight that leaves 0, 1, ... vertices, each a multiple of a unit."""
        most = int(rooms.max(initial=0))
        leaves = _least_leaving(most, profiles)
        if unit:
            leaves = unit * np.ceil(leaves / unit - ROUNDING)
        # Where lines share ends two edges are counted for one of a cube at the most.
        return np.maximum(leaves, self.cube[: most + 1])


def _least_leaving(most: int, profiles: Sequence[FloatArray]) -> FloatArray:
    """Least weight that leaves any set of 0, 1, ... ``most`` vertices."""
    size = np.arange(1, most + 1)
    if len(profiles) == 1:  # a single line: as many of it as there are
        each = profiles[0][np.minimum(size, len(profiles[0])) - 1]
    else:
        hulls = [hull(np.log(np.arange(1, len(p) + 1.0)), p) for p in profiles]
        gains = sorted(step for parts in hulls for step in parts if step.slope < 0)
        ends = np.cumsum([0.0, *(step.length for step in gains)])
        falls = np.cumsum([0.0, *(step.slope * step.length for step in gains)])
        at_first = sum(float(profile[0]) for profile in profiles)
        each = at_first + np.interp(np.log(size), ends, falls)
    return np.append(0.0, np.maximum(size * each, 0.0))


def _lines(traffic: RankTraffic, ranks: int, work: int) -> Lines:
    """The lines of what ranks send each other."""
    one = np.minimum(traffic.senders, traffic.receivers)
    other = np.maximum(traffic.senders, traffic.receivers)
    keys, which = np.unique(one * ranks + other, return_inverse=True)
    weight = weighted_counts(which, traffic.size_bytes, len(keys))
    apart = (keys // ranks != keys % ranks) & (weight > 0)
    keys, weight = keys[apart], weight[apart]
    edges = np.stack((keys // ranks, keys % ranks), axis=1)
    found = directions(edges, ranks, work)
    ways = tuple(
        _way(found, i, edges, weight, ranks) for i in range(len(found.coordinate))
    )
    is_even = len(weight) > 0 and weight.max() - weight.min() <= ROUNDING * weight.max()
    unit = float(weight.min()) if is_even else 0.0
    # Lines of two vertices at most, so one neighbour at most along each direction.
    is_cube = unit > 0 and all(len(way.apart) <= 2 for way in ways)
    cube = unit * _leaving_cube(edges, ranks) if is_cube else np.zeros(ranks + 1)
    return Lines(ways, ranks, unit, cube)


def _leaving_cube(edges: IntArray, ranks: int) -> FloatArray:
    """Fewest edges that leave 0, 1, ... vertices of a part of a cube (Harper 1964)."""
    degree = np.sort(np.bincount(edges.ravel(), minlength=ranks))
    ones = [number.bit_count() for number in range(ranks)]
    inside = np.cumsum([0, *ones])
    return np.asarray(np.cumsum([0, *degree]) - 2.0 * inside)


def _way(
    found: Directions, direction: int, edges: IntArray, weight: FloatArray, ranks: int
) -> _Way:
    """What the lines of one direction send."""
    line = found.line(direction)
    own = found.of_edge == direction
    edges, weight = edges[own], weight[own]
    of_edge = line[edges[:, 0]]
    vertices = np.bincount(line)
    links = np.bincount(of_edge, minlength=len(vertices))
    least = np.full(len(vertices), np.inf)
    np.minimum.at(least, of_edge, weight)
    is_whole = _is_connected(edges, line, vertices)
    least = np.where(is_whole & (vertices > 1), least, 0.0)
    # Connected with as many edges as vertices, two at each: a ring, cut at least twice.
    degree = np.bincount(edges.ravel(), minlength=ranks)
    is_ring = is_whole & (vertices > 2) & (links == vertices)
    is_ring &= np.bincount(line, degree != 2, len(vertices)) == 0
    cut = np.where(is_ring, 2 * least, least)
    longest = int(vertices.max())
    apart, shared = np.zeros(longest), np.zeros(longest)
    alone = _least_alone(edges, weight, line, longest)
    number = np.arange(1, longest + 1)
    for m in number.tolist():
        apart[m - 1] = (cut * (vertices > m))[vertices >= m].min() / m
    apart = np.maximum(apart, alone)
    # A vertex alone on its line is counted and taken off again.
    least_shared = float(least[vertices > 1].min(initial=np.inf))
    shared = (2 * least_shared if longest > 1 else 0.0) / number
    ends = float(shared[0]) * len(vertices)
    are_rings = bool((is_ring | (vertices == 1)).all())
    return _Way(apart, shared, ends, are_rings, bool(degree.max(initial=0) <= 2))


def _is_connected(edges: IntArray, line: IntArray, vertices: IntArray) -> BoolArray:
    """Whether the edges of each line join all its vertices."""
    root = np.arange(len(line))
    while True:
        lowest = root[edges].min(axis=1)
        before = root.copy()
        for end in edges.T:
            np.minimum.at(root, end, lowest)
        root = root[root]
        if np.array_equal(root, before):
            break
    parts = np.bincount(line[np.unique(root)], minlength=len(vertices))
    return np.asarray(parts == 1)


def _least_alone(
    edges: IntArray, weight: FloatArray, line: IntArray, longest: int
) -> FloatArray:
    """What a vertex sends at least with 0, 1, ... others of its line in its domain."""
    total = weighted_counts(edges.ravel(), np.repeat(weight, 2), len(line))
    ends = edges.ravel()
    size = np.repeat(weight, 2)
    order = np.lexsort((-size, ends))
    ends, size = ends[order], size[order]
    place = np.arange(len(ends)) - np.searchsorted(ends, ends)
    # Those that are taken off one after the other stand together.
    order = np.argsort(place, kind="stable")
    ends, size = ends[order], size[order]
    until = np.searchsorted(place[order], np.arange(longest), side="left")
    found = np.zeros(longest)
    for near in range(longest):
        if near:
            taken = slice(until[near - 1], until[near])
            total[ends[taken]] -= size[taken]
        found[near] = max(float(total.min(initial=np.inf)), 0.0)
    return np.minimum.accumulate(found)
