"""Parts that share the uplink of a domain: no way to lay units out is left out."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest

from placer.solve.bounds.experts import part_counts, part_fills
from placer.solve.bounds.experts.part_counts import Counts
from placer.solve.bounds.experts.part_fills import Racks
from placer.solve.count.engine import Limits, solve

SENT = 1.0  # s, that a member sends to others in if alone with a NIC of its own


class Tiny:
    """Units of a few pieces on a few domains, replicas whose stages take turns."""

    def __init__(self, rng: random.Random) -> None:
        self.size, self.stages = rng.choice((2, 3, 4, 5, 6)), rng.choice((1, 1, 2))
        self.replicas = rng.choice((1, 2, 3)) if self.stages == 1 else 1
        self.units = self.stages * self.replicas
        self.rooms = [rng.randint(1, self.size + 2) for _ in range(rng.randint(2, 4))]
        # Nodes that are not rented, or lost, widen an uplink or narrow it.
        self.pairs = [room * rng.choice((1, 1, 1.2, 0.9)) for room in self.rooms]
        late = rng.choice((0.0, 0.0, 0.02))
        self.latency = {n: late * (self.size - n) for n in range(1, self.size)}
        self.near = {
            n: SENT * (self.size - n) + self.latency[n]
            for n in range(1, self.size // 2 + 1)
        }
        if max(self.rooms) >= self.size:
            self.near[self.size] = rng.choice((0.1, 0.0))

    @property
    def counts(self) -> Counts:
        """The program of such units."""
        rooms = Counter(self.rooms)
        pairs: dict[int, float] = {}
        for room, most in zip(self.rooms, self.pairs, strict=True):
            pairs[room] = max(most, pairs.get(room, 0.0))
        return Counts(
            {(0, room): number for room, number in rooms.items()},
            self.size,
            self.units,
            self.replicas,
            1,
            1,
            self.near,
            lambda _part, _share: 0.0,
            {},
            {},
            Racks(rooms, pairs, self.latency),
        )

    def least_s(self) -> float:
        """The slowest replica, which takes the sum of its stages, at its least."""
        ways = [
            way
            for way in product(
                *(range(min(room, self.size) + 1) for room in self.rooms)
            )
            if sum(way) == self.size
        ]
        least = np.inf
        for held in combinations_with_replacement(ways, self.units):
            used = np.sum(held, axis=0)
            if (used > self.rooms).any():
                continue
            busy = [
                sum(way[at] * (self.size - way[at]) for way in held) / self.pairs[at]
                for at in range(len(self.rooms))
            ]
            times = [self._seconds(way, busy) for way in held]
            for order in set(permutations(times)):
                rows = np.array(order).reshape(self.replicas, self.stages)
                least = min(least, float(rows.sum(axis=1).max()))
        return least

    def _seconds(self, way: tuple[int, ...], busy: list[float]) -> float:
        parts = [(pieces, at) for at, pieces in enumerate(way) if pieces]
        if len(parts) == 1:
            return self.near[self.size]
        return max(
            max(self.near[min(way_part for way_part, _ in parts)], busy[at] + late)
            for pieces, at in parts
            for late in [self.latency[pieces]]
        )

    def is_hopeless(self, value: float) -> bool:
        """Whether the program finds no replicas below a value."""
        counts, stages = self.counts, self.stages
        times = counts.times()
        levels = np.array(list(product(range(len(times)), repeat=stages)))
        levels = levels[times[levels].sum(axis=1) < value]
        if not len(levels):
            return True
        slowest = [
            (value - (stages - slow) * float(times[-1])) / slow
            for slow in range(1, stages + 1)
        ]
        stated = counts.stated(levels, slowest)
        if stated is None:
            return False
        answer = solve(stated.program, Limits(1.0))
        return answer.is_proved and answer.counts is None


def raises(seed: int) -> bool:
    """Attack the program at and around the optimum; whether shared uplinks matter."""
    tiny = Tiny(random.Random(f"shared uplinks {seed}"))
    least = tiny.least_s()
    if not np.isfinite(least):
        return False
    for more in (1e-6, 0.01, 0.1, 0.5):
        assert not tiny.is_hopeless(least * (1 + more) + 1e-9), (seed, more)
    alone = tiny.counts.times()
    return bool(tiny.is_hopeless(least * (1 - 1e-3)) and least not in alone)


def test_no_placement_is_left_out() -> None:
    """Every way to lay out tiny units is slower than what the program refuses."""
    assert sum(map(raises, range(200))) > 18


@pytest.mark.parametrize("most", [1, 2, 3, 8])
@pytest.mark.parametrize("cap", ["MOST_WAYS", "MOST_FILLS"])
def test_too_many_ways_refuse_nothing(
    cap: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where ways or fills are too many, also once units are not told apart."""
    for module in (part_counts, part_fills):
        monkeypatch.setattr(module, cap, most, raising=False)
    for seed in range(40):
        raises(seed)


@pytest.mark.slow
def test_no_placement_of_many_is_left_out() -> None:
    """The same of many more."""
    assert sum(map(raises, range(200, 450))) > 27
