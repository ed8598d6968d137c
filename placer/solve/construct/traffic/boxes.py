"""Grids and tori cut into boxes, so that no domain sends much.

Where edges have directions (`bounds/traffic/directions.py`) ranks have places in a
grid. A box is how long it is along each axis, and at how many ends it has neighbours.
For a time T it fits a domain if its ranks do, its uplink carries what leaves it within
T, and the domains inside it are enough for its parts; else the fewest domains are the
least sum over all ways to cut it in two (guillotine cuts; Gilmore and Gomory 1965,
Oper. Res. 13).
"""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.solve.construct.traffic.directions import directions
from placer.solve.problem.flows import bundled
from placer.solve.tree.capacity import parent_of_domain, whole_sets
from placer.solve.tree.fill import fill_domains, tree_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.base.arrays import IntArray
    from placer.solve.construct.traffic.directions import Directions
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.flows import Flows
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

# Times between none and the longest that are tried: to a part in a thousand.
HALVINGS = 10
WORK = 400_000  # ways to cut boxes in two that are looked at
# Cuts inside each other that are looked at; a call each, and Python has few of them.
DEEPEST = 200
# Places of a grid for each rank, at most: some are missing.
SPARSE = 2
NOBODY = -1

# Length along each axis, and whether it has neighbours beyond its two ends.
Box = tuple[tuple[int, bool, bool], ...]
Corner = tuple[int, ...]
# Fewest domains, and where there are several, along which axis to cut, and where.
_Cut = tuple[float, int, int]


def boxed(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Boxes of the least time for which there are domains enough."""
    traffic = problem.job.traffic
    if traffic is None or problem.goal.name != "time":
        return
    fabric = problem.model.fabric
    if problem.job.launcher != "free" or fabric.scale_up_tier < 0:
        return
    if not fabric.can_leave_scale_up:
        return
    ranks = problem.job.world_size
    ends = np.stack((traffic.senders, traffic.receivers), axis=1)
    flows = bundled(ends, traffic.size_bytes / 2, ranks)
    if not len(flows.edges):
        return
    found = directions(flows.edges, ranks)
    known = [_axis(found, i, flows) for i in range(len(found.coordinate))]
    axes = [axis for axis in known if axis is not None]
    if len(axes) < max(2, len(known)):
        return
    if prod(axis.length for axis in axes) > SPARSE * ranks:
        return
    grid = np.full([axis.length for axis in axes], NOBODY)
    grid[tuple(axis.place for axis in axes)] = np.arange(ranks)
    tiers, work = _tiers(problem), WORK
    # Without the outer tiers, domains are laid on the machine as they come.
    for kept in range(len(tiers), 0, -1):
        best, work = _least(axes, tiers[:kept], work)
        if best is not None:
            incumbent.offer("boxes", _placed(problem, best, grid))
        if incumbent.ends() or work <= 0:
            return


def _least(
    axes: Sequence[_Axis], tiers: Sequence[_Tier], work: int
) -> tuple[_Cuts | None, int]:
    """Cuts for the least time for which there are any; the work that is left."""
    best, low = None, 0.0
    high = tiers[0].seconds(tuple((1, True, True) for _ in axes), axes)
    for _ in range(HALVINGS):
        cuts = _Cuts(axes, tiers, (low + high) / 2, work)
        is_enough, work = cuts.are_enough(), cuts.work_left
        if work <= 0:
            break
        if is_enough:
            best, high = cuts, cuts.seconds
        else:
            low = cuts.seconds
    return best, work


class _Axis(NamedTuple):
    """An axis of the grid."""

    length: int
    is_ring: bool
    size_bytes: float  # that neighbours send each other, one way
    place: IntArray  # (R,): of each rank along it


def _axis(found: Directions, direction: int, flows: Flows) -> _Axis | None:
    """The places along a direction; None where its lines are no paths or rings."""
    own = found.of_edge == direction
    of_rank = found.coordinate[direction]
    length = int(of_rank.max()) + 1
    ends = np.unique(np.sort(of_rank[flows.edges[own]], axis=1), axis=0)
    neighbours: list[list[int]] = [[] for _ in range(length)]
    for one, other in ends.tolist():
        neighbours[one].append(other)
        neighbours[other].append(one)
    degree = [len(others) for others in neighbours]
    if max(degree) > 2 or len(ends) < length - 1:
        return None
    place = np.full(length, NOBODY)
    at: int | None = degree.index(min(degree))
    for number in range(length):
        if at is None:
            return None  # in pieces
        place[at] = number
        at = next((one for one in neighbours[at] if place[one] == NOBODY), None)
    size = float(flows.weight[own].mean())
    return _Axis(length, len(ends) == length, size, place[of_rank])


class _Tier(NamedTuple):
    """Domains of a tier, as if all were as the smallest."""

    # room and number: ranks of one, and how many there are.
    room: int
    number: int
    inside: int  # domains of the tier below in one
    rate: float  # B/s: of its uplink, or of a port of the innermost
    latency: float  # s
    is_port: bool

    def seconds(self, box: Box, axes: Sequence[_Axis]) -> float:
        """Time of the busiest port, or of the uplink, with a box in the domain."""
        if self.is_port:  # of the rank at a corner
            out = [(a + b) if length == 1 else (a or b) for length, a, b in box]
        else:
            ranks = _ranks(box)
            out = [(a + b) * ranks // length for length, a, b in box]
        size = sum(n * axis.size_bytes for n, axis in zip(out, axes, strict=True))
        messages = sum(out) if self.is_port else 1
        return size / self.rate + messages * self.latency


def _tiers(problem: Problem) -> list[_Tier]:
    """Tiers from the scale-up domains out to those with uplinks."""
    machine, fabric = problem.machine, problem.model.fabric
    first, last = fabric.scale_up_tier, len(machine.tiers) - 1
    takes = whole_sets(machine, problem.capacity, [1] * (last + 1))
    latency = float(fabric.latency[first + 1 :].min())
    rate = float(fabric.bandwidth[first + 1 :].max())
    used = takes[first] > 0
    room, number = int(takes[first][used].min()), int(used.sum())
    found = [_Tier(room, number, 0, rate, latency, True)]
    for tier in range(first + 1, last):
        children = np.bincount(parent_of_domain(machine, tier)[takes[tier - 1] > 0])
        inside = int(children[children > 0].min())
        rate = float(fabric.uplink_capacity[tier + 1].min())
        room = found[-1].room * inside
        found.append(
            _Tier(room, int((children > 0).sum()), inside, rate, latency, False)
        )
    return found


def _ranks(box: Box) -> int:
    return prod(length for length, *_ in box)


class _Cuts:
    """The fewest domains for boxes, for one time.

    ``work_left``: cuts to look at.
    """

    def __init__(
        self, axes: Sequence[_Axis], tiers: Sequence[_Tier], seconds: float, work: int
    ) -> None:
        self.seconds, self.work_left = seconds, work
        self._axes, self._tiers = axes, tiers
        self._known: list[dict[Box, _Cut]] = [{} for _ in tiers]
        self._depth = 0

    def are_enough(self) -> bool:
        """Whether the whole grid fits in domains of the outermost tier."""
        whole = tuple((axis.length, False, False) for axis in self._axes)
        outermost = len(self._tiers) - 1
        return self._fewest(outermost, whole)[0] <= self._tiers[outermost].number

    @property
    def tiers(self) -> int:
        """How many there are."""
        return len(self._tiers)

    def parts(self, tier: int, box: Box, at: Corner) -> Iterator[tuple[Box, Corner]]:
        """Boxes for domains of a tier, and where they lie."""
        count, axis, length = self._fewest(tier, box)
        if count == 1:
            yield box, at
            return
        near, far = self._halves(box, axis, length)
        yield from self.parts(tier, near, at)
        beyond = *at[:axis], at[axis] + length, *at[axis + 1 :]
        yield from self.parts(tier, far, beyond)

    def _fits(self, tier: int, box: Box) -> bool:
        own = self._tiers[tier]
        if _ranks(box) > own.room or own.seconds(box, self._axes) > self.seconds:
            return False
        return tier == 0 or self._fewest(tier - 1, box)[0] <= own.inside

    def _fewest(self, tier: int, box: Box) -> _Cut:
        known = self._known[tier]
        if box not in known:
            known[box] = (1, 0, 0) if self._fits(tier, box) else self._cut(tier, box)
        return known[box]

    def _cut(self, tier: int, box: Box) -> _Cut:
        """The best way to cut a box in two."""
        best: _Cut = inf, 0, 0
        room = self._tiers[tier].room
        least = -(-_ranks(box) // room)
        if self._depth == DEEPEST:
            self.work_left = 0
        self._depth += 1
        for axis, (whole, low, high) in enumerate(box):
            # From the middle outwards, so that smaller boxes are known before larger.
            # Where both ends are alike, the other half of all cuts says no more.
            lengths = range(1, whole // 2 + 1 if low == high else whole)
            for length in sorted(lengths, key=lambda n: (max(n, whole - n), n)):
                if self.work_left <= 0 or best[0] <= least:
                    break
                self.work_left -= 1
                near, far = self._halves(box, axis, length)
                fewest = -(-_ranks(far) // room)
                if -(-_ranks(near) // room) + fewest >= best[0]:
                    continue
                count = self._fewest(tier, near)[0]
                if count + fewest < best[0]:
                    count += self._fewest(tier, far)[0]
                    best = min(best, (count, axis, length))
        self._depth -= 1
        return best

    def _halves(self, box: Box, axis: int, length: int) -> tuple[Box, Box]:
        """A box cut in two; the nearer part is so long."""
        whole, low, high = box[axis]
        is_ring = self._axes[axis].is_ring and whole == self._axes[axis].length
        near = length, low or is_ring, True
        far = whole - length, True, high or is_ring
        before, after = box[:axis], box[axis + 1 :]
        return (*before, near, *after), (*before, far, *after)


def _placed(problem: Problem, cuts: _Cuts, grid: IntArray) -> IntArray:
    """GPU of every rank with the boxes on domains in tree order."""
    machine, first = problem.machine, problem.model.fabric.scale_up_tier
    whole: tuple[Box, Corner] = (
        tuple((length, False, False) for length in grid.shape),
        (0,) * grid.ndim,
    )
    order = tree_order(machine)
    order = order[problem.capacity[order] > 0]
    domains = {0: whole}
    of_node = np.zeros(len(problem.capacity), dtype=np.int64)
    for tier in range(first + cuts.tiers - 1, first - 1, -1):
        parent, of_node = of_node[order], machine.domain_of_node[tier]
        inner: dict[int, tuple[Box, Corner]] = {}
        for domain, (box, at) in domains.items():
            children = dict.fromkeys(of_node[order][parent == domain].tolist())
            inner.update(zip(children, cuts.parts(tier - first, box, at), strict=False))
        domains = inner
    domain_of_rank = np.empty(problem.job.world_size, dtype=np.int64)
    for domain, (box, at) in domains.items():
        cells = tuple(
            slice(a, a + length) for a, (length, *_) in zip(at, box, strict=True)
        )
        ranks = grid[cells]
        domain_of_rank[ranks[ranks != NOBODY]] = domain
    takes = whole_sets(machine, problem.capacity, [1] * (first + 1))
    along = np.argsort(domain_of_rank, kind="stable")
    node = fill_domains(machine, takes, domain_of_rank, along)
    return machine.gpus_on(node)
