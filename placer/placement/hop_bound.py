"""The bound on the hop cost that prices prove, without the code that found them.

At any price ``p`` of a rank, ``floor(s)`` being the least weight of the edges out of
``s`` ranks, the edges between the domains of a tier, which hold all R ranks, weigh

    C >= 1/2 (p R + sum over the domains of  min_s (floor(s) - p s))

or more. Prices of ends of pipelines, paid once in all, are taken back. By hand: a ring
of six on two nodes of three, 1 apart inside and 3 outside. Two edges or more leave any
three ranks, so at no price ``J >= 1 x 6 + (3 - 1) x 2``. No prices are wrong: some
prove less. ``floor`` is counted by slices (Bollobas and Leader 1991).

Where rules keep sets of ranks in a domain, all edges between two of them are cut, or
none is. Prices may be those of sets, of which a domain holds as many as fit. By hand:
four pairs that nodes of three keep whole, two rings of four through them. Each node
holds one pair, which four edges leave: ``C = 4 x 4 / 2``.

Or lines of an axis are counted (`hop_parts`), on one tier or on two at once. A part of
a ring pays for two cut edges, shared with other parts, one of a clique ``w/2 k (n -
k)``. Of the other axes a domain pays ``sum over x of floor(m_x)`` or more, ``m_x`` of
its parts having ``x`` members or more: at any price ``each``, that of its vertices and
``first = min over m of (floor(m) - each m)`` times its largest part. Why parts of
cliques may be coarse, and what an outer domain pays, `bounds/hop_lines` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, gcd, inf, lcm, prod
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.rounding import EXACT
from placer.job.axes import pipeline_groups_agree
from placer.job.edges import hop_edges
from placer.job.model import Job
from placer.placement.hop_parts import Cases, Holdings, Prices, least_held, pack
from placer.topology.machine import Machine

# Each with pp numbers all ranks: two axes of a stage, then that of its copies.
GRIDS = (("tp", "cp", "dp"), ("ep", "etp", "edp"))
RING_WORK = 5_000_000  # slices of longer rings are packed in any order
NEAR = 1e-6  # of the weight that divides a cut


class TierPrices(NamedTuple):
    """What proves a least cut of a tier."""

    tier: int
    rank: float  # of each rank, or set of ranks
    end: float  # besides, of one on the first stage, and of one on the last
    of_sets: bool = False  # that rules keep in a domain of the tier


class PartPrices(NamedTuple):
    """What proves a least cut of a tier, or of two together, by parts of lines."""

    tiers: tuple[int, ...]  # the inner one first
    axis: str  # of the lines
    each: tuple[float, ...]  # on each tier, of a vertex across lines
    cases: Cases | Prices
    of_sets: bool = False  # that rules keep in a domain of the tier


class Line(NamedTuple):
    """An axis of ranks, or of sets of them."""

    length: int
    weight: float  # of all edges between two neighbours
    name: str = ""

    @property
    def is_clique(self) -> bool:
        """Whether all members are neighbours."""
        return self.name == "ep"

    def part_costs(self) -> FloatArray:
        """What parts of 0, 1 .. members cost; shape (n + 1,)."""
        held = np.arange(self.length + 1)
        if self.is_clique:
            return np.asarray(self.weight / 2 * held * (self.length - held))
        edge = self.weight / (2 if self.length == 2 else 1)
        return np.where((held > 0) & (held < self.length), edge, 0.0)


def priced_hop_cost(
    machine: Machine, job: Job, prices: Iterable[TierPrices | PartPrices]
) -> float:
    """What every placement costs at the least, by prices of any tiers."""
    distance = [tier.distance for tier in machine.tiers]
    cost = min(distance) * sum(one.weight * len(one.edges) for one in hop_edges(job))
    outwards = [min(distance[tier:]) for tier in range(len(distance))]
    left = dict(enumerate(np.diff(outwards).tolist()))
    for one in prices:
        tiers = one.tiers if isinstance(one, PartPrices) else (one.tier,)
        rises = [left.pop(tier, 0.0) for tier in tiers]
        if min(rises) > 0:
            cost += _least_cut(machine, job, one, tiers, rises)
    return cost


def _least_cut(
    machine: Machine,
    job: Job,
    prices: TierPrices | PartPrices,
    tiers: Sequence[int],
    rises: Sequence[float],
) -> float:
    """What the edges between domains of tiers cost; 0 where sets are not alike."""
    found = [_sets(machine, job, tier, prices.of_sets) for tier in tiers]
    sets, rooms = found[0][0], [room for _, room in found]
    grids = grids_of(job, sets) if len(sets) else []
    if not grids or any(not np.array_equal(sets, other) for other, _ in found):
        return 0.0
    if isinstance(prices, TierPrices):
        cost = rises[0] * _of_ranks(grids, rooms[0], len(sets), prices)
    else:
        home = np.arange(len(rooms[0])) if len(tiers) > 1 else 0 * rooms[0]
        for tier in range(tiers[0], tiers[-1]):
            home = machine.domain_around[tier][home]
        cost = _of_parts(grids, rooms, home, len(sets), prices, rises)
    # The weights divide every cut without rest, the rises what several cuts cost.
    weights = [line.weight for lines in grids for line in lines if line.length > 1]
    unit = _divisor(weights) * _divisor(rises)
    return max(0.0, unit * ceil(cost / unit * (1 - EXACT) - NEAR))


def _divisor(numbers: Iterable[float]) -> float:
    """Greatest number of which all that are not 0 are multiples, read as decimals."""
    read = [Fraction(str(one)) for one in numbers if one]
    scale = lcm(*(one.denominator for one in read))
    return (gcd(*(int(one * scale) for one in read)) or 1) / scale


def _of_ranks(
    grids: Sequence[Sequence[Line]], room: IntArray, number: int, prices: TierPrices
) -> float:
    """Least weight of the edges between domains, by prices of ranks, or of sets."""
    stages, rooms = grids[0][-1].length, Counter(room.tolist())
    spare = int(room.sum()) - number
    floor = least_edges(grids, min(max(rooms), number), prices.end)
    twice = prices.rank * number - 2 * prices.end * (number // stages)
    for most, count in rooms.items():
        # All others cannot hold more than they have room for.
        held = np.arange(max(0, most - spare), min(most, number) + 1)
        twice += count * float((floor[held] - prices.rank * held).min())
    return twice / 2


def _of_parts(
    grids: Sequence[Sequence[Line]],
    rooms: Sequence[IntArray],
    home: IntArray,
    number: int,
    prices: PartPrices,
    rises: Sequence[float],
) -> float:
    """Least cost of the edges between domains, by prices of the parts of lines.

    ``rooms``: vertices that the domains of each tier have room for. ``home``: domain of
    the outer one, if any, that holds each of the inner one.
    """
    (grid, place), *_ = (
        (grid, place)
        for grid in grids
        for place, one in enumerate(grid[:-1])
        if one.name == prices.axis
    )
    line, chain = grid[place], grid[-1]
    across = [*grid[:place], Line(1, 0.0), *grid[place + 1 :]]
    # Across lines count all edges of pipelines.
    bare = chain._replace(weight=0.0)
    others = [[*other[:-1], bare] for other in grids if other is not grid]
    end = chain.weight * (chain.length > 1)  # the price on both ends of pipelines
    cost, firsts, besides = 0.0, list[float](), list[FloatArray]()
    for room, each, rise in zip(rooms, prices.each, rises, strict=True):
        size = min(int(room.max()), number)
        floor = least_edges([across], min(size, number // line.length), end) / 2
        besides.append(least_edges(others, size, 0.0) / 2)
        firsts.append(float((floor - each * np.arange(len(floor)))[1:].min()))
        cost += rise * (each * number - end * (number // chain.length))
    grain = 1
    if line.is_clique and not any(one.any() for one in besides):
        grain = gcd(line.length, *rooms[0].tolist())
        firsts = [min(first, line.weight) for first in firsts]
    held = dict[int, Counter[int]]()
    for outer, room in zip(home.tolist(), rooms[0].tolist(), strict=True):
        if room:
            held.setdefault(outer, Counter())[min(room, number) // grain] += 1
    part = line.part_costs()[::grain]
    members = grain * np.arange(len(part), dtype=np.float64)
    share = np.empty((0, len(part)))
    if len(rooms) > 1:
        whole = grain * np.array([[sum(one.elements())] for one in held.values()])
        share = rises[1] * (part + firsts[1] * members**2 / whole)
    holdings = Holdings(
        number // line.length,
        [*held.values()],
        rises[0] * part,
        rises[0] * firsts[0] * members,
        rises[0] * besides[0][::grain],
        share,
    )
    return cost + least_held(holdings, prices.cases)


def _sets(
    machine: Machine, job: Job, tier: int, of_sets: bool
) -> tuple[IntArray, IntArray]:
    """Ranks of each set, a row a set, and how many each domain of a tier holds.

    Single ranks but for ``of_sets``; no rows where sets are not of one size.
    """
    room, size, label = machine.gpus_of_node, 1, np.arange(job.world_size)
    for t in range(tier + 1):
        if of_sets:
            label = kept_together(machine, job, t)
        sizes = np.unique(label, return_counts=True)[1]
        if (sizes != sizes[0]).any():
            return label[:0], room
        size = int(sizes[0])
        if t > 0:
            room = np.bincount(machine.domain_around[t - 1], room).astype(np.int64)
        room = room // size * size
    return label.argsort(kind="stable").reshape(-1, size), room // size


def kept_together(machine: Machine, job: Job, tier: int) -> IntArray:
    """Set of each rank whose ranks rules of axes keep in one domain of a tier; (R,)."""
    label = np.arange(job.world_size)
    near = {one.name for one in machine.tiers[: tier + 1]}
    for axis, groups in job.parallelism.ranks_of_group.items():
        if job.require.get(axis) in near:
            label = tied(label, groups)
    return label


def tied(label: IntArray, groups: IntArray) -> IntArray:
    """Sets once the ranks of each row share one; each has a rank's number or less."""
    while ((row := label[groups]) != row[:, :1]).any():
        least = np.arange(len(label))
        np.minimum.at(least, row, row.min(axis=1, keepdims=True))
        label = least[label]
    return label


def grids_of(job: Job, sets: IntArray) -> list[list[Line]]:
    """Axes of each grid that has edges of its own, its pipelines last, between sets.

    Without grids in which sets are no boxes; what leaves out edges proves less.

    ``sets``: ranks of each, shape (V, n).
    """
    axes, found = job.parallelism, list[list[Line]]()
    for names in GRIDS[: 1 + pipeline_groups_agree(axes)]:
        lines, widths = list[Line](), list[int]()
        for name in (*names, "pp"):
            at, length = axes.coordinates[name][sets], axes.size(name)
            width = len(np.unique(at[0]))
            is_box = (at // width == at[:, :1] // width).all()
            widths.append(width * bool(is_box))
            edges = sets.shape[1] // width
            if name == "ep":
                edges *= width**2
            elif name != "pp" and length // width == 2 < length:
                edges *= 2  # both ends of a ring
            # Edges of etp are those of tp.
            weight = 0.0 if name == "etp" else job.weights.get(name, 0.0) * edges
            lines.append(Line(length // width, weight, name))
        if prod(widths) == sets.shape[1]:
            found.append(lines)
    own = [one for one in found if any(li.weight and li.length > 1 for li in one[:-1])]
    return own or found[:1]


def least_edges(grids: Sequence[Sequence[Line]], size: int, end: float) -> FloatArray:
    """Least weight of edges out of 0, 1 .. size sets, with the prices of ends."""
    floor = np.zeros(size + 1)
    share = 1 / max(1, len(grids))  # of pipelines, for each
    for first, second, copies, chain in grids:
        ends = np.zeros(chain.length)
        ends[0] = end * share
        ends[-1] += end * share
        stages = _ring(_ring(np.zeros(2), first, size), second, size)
        replica = _path(stages, ends, chain.weight * share, size)
        floor += _ring(replica, copies, size)
    return floor


def _path(floor: FloatArray, prices: FloatArray, edge: float, size: int) -> FloatArray:
    """Slices in a row, given the floor of one, whose ranks pay the price of its place.

    ``edge``: what a rank costs that only one of two neighbours has.
    """
    size = min(size, (len(floor) - 1) * len(prices))
    least = np.full((len(floor), size + 1), inf)  # by the last slice and all ranks
    least[:, 0] = 0.0
    for place, price in enumerate(prices.tolist()):
        for ranks in range(1, len(floor)) if place else ():
            np.minimum(least[ranks], least[ranks - 1] + edge, out=least[ranks])
        for ranks in range(len(floor) - 1, 0, -1) if place else ():
            np.minimum(least[ranks - 1], least[ranks] + edge, out=least[ranks - 1])
        for ranks in range(len(floor)):
            before = least[ranks, : max(0, size + 1 - ranks)].copy()
            least[ranks] = inf
            least[ranks, ranks:] = before + floor[ranks] + price * ranks
    return np.asarray(least.min(axis=0))


def _ring(floor: FloatArray, line: Line, size: int) -> FloatArray:
    """Slices along a ring, or single ranks of a clique; ``floor`` is that of one."""
    length, weight = line.length, line.weight
    size = min(size, (len(floor) - 1) * length)
    if line.is_clique and length > 1:
        return np.asarray([weight * n * (length - n) for n in range(size + 1)])
    # From the least to the largest and back.
    spread = weight * min(2, length - 1)
    if length == 1 or length * (len(floor) - 1) * size <= RING_WORK:
        return _path(floor, np.zeros(length), spread, size)
    packed, least = np.full(size + 1, inf), np.full(size + 1, inf)
    packed[0] = least[0] = 0.0
    for ranks in range(1, min(len(floor), size + 1)):
        pack(packed, ranks, float(floor[ranks]))
        np.minimum(least, packed + spread * ranks, out=least)  # one slice is empty
    # Or none is: slices pay no less than their lower convex hull at the mean.
    corners = [1]
    while (at := corners[-1]) < len(floor) - 1:
        slopes = (floor[at + 1 :] - floor[at]) / np.arange(1, len(floor) - at)
        corners.append(at + 1 + int(slopes.argmin()))
    sets = np.arange(length, size + 1)
    hull = length * np.interp(sets / length, corners, floor[corners])
    least[length:] = np.minimum(least[length:], np.maximum(hull, packed[length:]))
    return least
