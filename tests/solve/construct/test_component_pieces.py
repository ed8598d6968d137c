"""Components in the largest pieces that domains have room for."""

import random
from itertools import product

import numpy as np
import pytest

from placer.solve.construct.transfers.component_pieces import Cutting, shared_out
from placer.solve.count.engine import Limits
from placer.solve.count.summands import summands
from placer.solve.problem.params import Params


def smallest_by_trying(room, components, length):
    """The largest smallest piece of all ways to put sets into domains."""

    def best(free, left, smallest):
        if not left:
            return smallest
        found = 0
        for held in product(*(range(min(f, length) + 1) for f in free)):
            if sum(held) == length:
                least = min((h for h in held if h), default=smallest)
                rest = [f - h for f, h in zip(free, held, strict=True)]
                found = max(found, best(rest, left - 1, min(smallest, least)))
        return found

    return best(room, components, length)


@pytest.mark.parametrize("seed", range(40))
def test_the_smallest_piece_is_the_largest_of_all_ways(seed):
    rng = random.Random(seed)
    length, components = rng.randrange(2, 7), rng.randrange(1, 4)
    room = [rng.randrange(1, 8) for _ in range(rng.randrange(2, 5))]
    if sum(room) < length * components:
        room.append(length * components - sum(room))
    best = smallest_by_trying(room, components, length)
    cutting = Cutting(np.array(room), components, length)
    pieces = cutting.largest_pieces(0, Params())
    halves = min(best, length // 2)  # beyond that all are whole
    if halves == 0:
        assert pieces is None
        return
    assert (pieces.sum(axis=1) == length).all()
    assert (pieces.sum(axis=0) <= room).all()
    assert pieces[pieces > 0].min() >= halves


def test_none_where_no_piece_is_larger():
    cutting = Cutting(np.array([13, 3]), 4, 4)
    assert cutting.largest_pieces(1, Params()) is None
    assert cutting.largest_pieces(0, Params()) is not None


def test_summands_are_ascending_and_add_up():
    assert list(summands(7, 2, 7)) == [(7,), (2, 5), (2, 2, 3), (3, 4)]
    assert list(summands(1, 2, 1)) == []


def test_pieces_leave_room_to_others():
    """A whole of 4, or halves of 3: two wholes fit two places, or halves four more."""
    domains = [(4, 2, [(4,), (3,)]), (3, 4, [(3,)])]
    kinds = [(2, [(3, 3), (4,)])]
    limits = Limits(1.0, engine="highs")
    for most, cut in ((8, [[1, 1]]), (10, [[0, 1], [1, 1]])):
        found = shared_out(kinds, domains, limits, most)
        assert sorted(found.cut[0]) in cut
    assert shared_out(kinds, domains, limits, 7) is None
