"""Counts of both sides in domains: never a refusal where some placement meets needs."""

import random
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from placer.solve.bounds.transfers import Need, may_hold


class Kind(NamedTuple):
    """Ranks that need so many partners near."""

    ranks: list[int]
    partners: list[int]
    needs: int


def holds(kinds, room):
    """Whether domains may hold all; two kinds that need each other are one need."""
    left, needs = list(kinds), []
    while left:
        one = left.pop(0)
        other = next((k for k in left if k[:2] == (one.partners, one.ranks)), None)
        if other:
            left.remove(other)
        back = other.needs if other else 0
        needs.append(Need(len(one.ranks), len(one.partners), one.needs, back))
    return may_hold(needs, room)


def random_case(rng):
    """Components of a few ranks, some in none, and uneven domains; some GPUs spare."""
    ranks, kinds = rng.randrange(3, 8), []
    left = rng.sample(range(ranks), ranks)
    while len(left) > 1:
        own, left = left[: (size := rng.randrange(2, 6))], left[size:]
        if len(own) < 2:
            break
        middle = rng.randrange(1, len(own))
        one, other = own[:middle], own[middle:]
        kinds.append(Kind(one, other, rng.randrange(1, len(other) + 1)))
        if rng.random() < 0.5:
            kinds.append(Kind(other, one, rng.randrange(1, len(one) + 1)))
    room = [rng.randrange(0, 5) for _ in range(rng.randrange(2, 5))]
    room[0] += max(0, ranks + rng.randrange(3) - sum(room))
    return kinds, ranks, room


def can_be_placed(kinds, ranks, room):
    """Whether one of all ways to deal ranks to domains meets all needs."""
    homes = np.array(list(product(range(len(room)), repeat=ranks)))
    held = homes[:, :, None] == np.arange(len(room))
    fits = (held.sum(axis=1) <= room).all(axis=1)
    for kind in kinds:
        near = held[:, kind.partners].sum(axis=1)
        has = held[:, kind.ranks].any(axis=1)
        fits &= ((near >= kind.needs) | ~has).all(axis=1)
    return bool(fits.any())


def compared(seeds):
    """How many cases some placement meets, and how many were refused."""
    met = refused = 0
    for seed in seeds:
        kinds, ranks, room = random_case(random.Random(seed))
        may_be = holds(kinds, room)
        placed = can_be_placed(kinds, ranks, room)
        assert may_be or not placed, seed
        met, refused = met + placed, refused + (not may_be)
    return met, refused


def test_no_needs_are_refused_that_some_placement_meets():
    met, refused = compared(range(150))
    assert met > 40
    assert refused > 15


@pytest.mark.slow
def test_nor_in_many_cases():
    compared(range(1000, 2000))


def test_components_that_share_no_domain_are_refused():
    """By hand: 27 ranks of each of three, where two domains have room for 27."""
    kinds = [
        Kind([*range(at, at + 4)], [*range(at + 4, at + 38)], 23) for at in (0, 38, 76)
    ]
    room = [52, 36, 16, 16, 12]
    assert not holds(kinds, room)
    assert holds([kind._replace(needs=22) for kind in kinds], room)
