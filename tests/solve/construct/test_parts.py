"""Groups in parts: nothing is lost, and parts are as even, or uneven, as said."""

from __future__ import annotations

import random

import numpy as np
import pytest

from placer.solve.construct.units.parts import (
    Unit,
    even_parts,
    one_large_part,
    whole_units,
)

RACKS = np.array([72] * 15)
LEFTOVERS = np.array([56, 28, 40, 24, 64, 20])
ONE = np.zeros(6, dtype=np.int64)


def check(room: np.ndarray, size: int, count: int, units: list[Unit]) -> None:
    """All units there and complete, no domain too full."""
    assert [sum(part.size for part in unit) for unit in units] == [size] * count
    held = np.zeros(len(room), dtype=np.int64)
    for unit in units:
        for part in unit:
            assert part.size > 0
            held[part.domain] += part.size
    assert (held <= room).all()


def least(units: list[Unit]) -> int:
    return min(part.size for unit in units for part in unit)


def test_even_parts_of_odd_rooms() -> None:
    """Groups of 64 lie on 36 and 28, not in parts of 8; multiples of a grain."""
    found = even_parts(LEFTOVERS, ONE, 64, 3, 4)
    assert found is not None
    check(LEFTOVERS, 64, 3, found)
    assert least(found) >= 20
    assert all(part.size % 4 == 0 for unit in found for part in unit)


def test_parts_that_look_ahead() -> None:
    """32 on hosts of 7 are 7, 7, 6, 6 and 6: four full hosts would leave 4."""
    hosts = np.array([7] * 5)
    found = even_parts(hosts, 0 * hosts, 32, 1, 1)
    assert found is not None
    check(hosts, 32, 1, found)
    assert least(found) == 6


def test_one_group_too_many() -> None:
    """16 groups of 64 on 15 racks of 72: parts of 16 all, or of 8 the one left over."""
    found = even_parts(RACKS, 0 * RACKS, 64, 16, 4)
    assert found is not None
    check(RACKS, 64, 16, found)
    assert least(found) == 16
    whole, left = whole_units(RACKS, 64, 15)
    last = even_parts(left, 0 * left, 64, 1, 4)
    assert last is not None
    check(RACKS, 64, 16, [*whole, *last])
    assert least(last) == 8


def test_whole_units_leave_useful_room() -> None:
    """Rooms that leave nothing over are taken first."""
    whole, left = whole_units(np.array([70, 64, 72]), 64, 1)
    assert whole == [[(1, 64)]]
    assert left.tolist() == [70, 0, 72]


def test_one_large_part_is_fewer_pairs() -> None:
    """Three groups of 64: 60 and 4, 56 and 8, 52 and 12, never halves."""
    room = np.array([60, 56, 52, 24])
    found = one_large_part(room, ONE[:4], 64, 3)
    check(room, 64, 3, found)
    assert sorted(max(part.size for part in unit) for unit in found) == [52, 56, 60]


def test_a_room_for_rests_in_the_same_block() -> None:
    """Where far pairs count more, a large room serves the rests of its own block."""
    room = np.array([52, 52, 50, 40, 40, 0])
    outer = np.array([0, 0, 0, 1, 1, 1])
    far = one_large_part(room, outer, 64, 3, far=10.0)
    check(room, 64, 3, far)
    assert all(len({int(outer[part.domain]) for part in unit}) == 1 for unit in far)


@pytest.mark.parametrize("seed", range(80))
def test_random_rooms(seed: int) -> None:
    """Any rooms: complete where an answer is given, and always where room is enough."""
    rng = random.Random(f"parts {seed}")
    grain = rng.choice((1, 1, 4))
    room = grain * np.array([rng.randint(0, 20) for _ in range(rng.randint(2, 16))])
    outer = np.sort([rng.randrange(3) for _ in room])
    size = grain * rng.randint(2, 24)
    count = int(room.sum() * rng.uniform(0.6, 1.0)) // size
    if count == 0:
        pytest.skip("no group fits")
    even = even_parts(room, 0 * room, size, count, grain)
    inside = even_parts(room, outer, size, count, grain)
    large = one_large_part(room, outer, size, count, 1.4)
    check(room, size, count, large)
    if even is not None:
        check(room, size, count, even)
        assert all(part.size % grain == 0 for unit in even for part in unit)
    if inside is not None:
        check(room, size, count, inside)
        assert all(len({int(outer[p.domain]) for p in unit}) == 1 for unit in inside)
        assert even is not None
    if room.max() < size:
        alone = [max(part.size for part in unit) for unit in large]
        assert sum(alone) >= sum(sorted(room.tolist())[-count:]) * 0.7
