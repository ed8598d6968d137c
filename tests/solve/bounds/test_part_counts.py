"""Whole numbers of parts, and pairs on the uplinks of outer domains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from placer.solve.bounds.experts.level_boxes import Boxes, least_asked
from placer.solve.bounds.experts.part_counts import Counts
from placer.solve.bounds.experts.part_steps import raised
from placer.solve.count.blocks import solved_in_blocks
from placer.solve.count.engine import Limits
from placer.solve.count.summands import summands
from placer.solve.problem.params import Params
from placer.solve.run.budget import ENDLESS, Budget

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# One unit of 4 pieces, two blocks with a domain of 3 each: 3 + 1 or 2 + 2.
NEAR = {1: 0.3, 2: 0.2, 4: 0.1}
ONE_UNIT = Counts(
    rooms={(0, 3): 1, (1, 3): 1},
    size=4,
    number=1,
    replicas=1,
    together=1,
    alike=1,
    near=NEAR,
    apart=lambda part, _share: NEAR[part] if part < 3 else 0.15,
    uplinks={0: 100.0, 1: 100.0},
    latency=dict.fromkeys((1, 2, 3), 0.0),
)


def is_hopeless(counts: Counts, seconds: float, slowest: float) -> bool:
    """Whether no replica of one stage is as fast."""
    level = np.flatnonzero(counts.times() == seconds)
    stated = counts.stated(level[:, None], [slowest])
    assert stated is not None
    answer = solved_in_blocks(stated.program, Limits(1.0))
    assert answer.is_proved
    return answer.counts is None


def test_halves_are_as_fast_as_can_be() -> None:
    """No domain holds the unit whole; two of its pieces may lie together."""
    assert is_hopeless(ONE_UNIT, 0.1, 1.0)
    assert not is_hopeless(ONE_UNIT, 0.2, 1.0)


@pytest.mark.parametrize(
    ("pairs", "hopeless"), [(4.0, False), (3.5, False), (2.5, True)]
)
def test_uplinks_carry_what_shares_send(pairs: float, hopeless: bool) -> None:
    """3 + 1 puts three pairs on either uplink, 2 + 2 four."""
    counts = replace(ONE_UNIT, uplinks={0: pairs, 1: pairs})
    assert is_hopeless(counts, 0.3, 1.0) == hopeless


@pytest.mark.parametrize("pairs", [4.1, 3.9])
def test_uplinks_make_units_slower(pairs: float) -> None:
    """As fast as halves is what takes less than the next slower level, 0.3 s."""
    counts = replace(ONE_UNIT, uplinks=dict.fromkeys((0, 1), pairs / 0.3))
    assert is_hopeless(counts, 0.2, 1.0) == (pairs < 4)
    assert not is_hopeless(counts, 0.3, 1.0)


def test_no_all_to_all_is_too_slow() -> None:
    """Where steps do not wait for stages without experts, uplinks carry everything."""
    assert not is_hopeless(ONE_UNIT, 0.2, np.inf)


def test_latency_leaves_less_time_to_send() -> None:
    """Half a second of latency halves what an uplink carries in one."""
    counts = replace(ONE_UNIT, uplinks={0: 4.0, 1: 4.0})
    late = replace(counts, latency=dict.fromkeys((1, 2, 3), 0.5))
    assert not is_hopeless(counts, 0.3, 1.0)
    assert is_hopeless(late, 0.3, 1.0)


def test_parts_are_whole_numbers() -> None:
    """Five rooms of 3 have 15 pieces, enough for six units of 2, but hold five."""
    rooms = {(0, 3): 5}
    counts = replace(ONE_UNIT, rooms=rooms, size=2, number=6, replicas=6, uplinks={})
    counts = replace(counts, near={1: 0.3, 2: 0.1})
    assert is_hopeless(counts, 0.1, 1.0)
    assert not is_hopeless(counts, 0.3, 1.0)


def test_no_uplink_carries_part_of_a_share() -> None:
    """Any share of a unit of 4 puts three pairs or more on an uplink that carries 2."""
    counts = replace(ONE_UNIT, uplinks={0: 2.9, 1: 100.0})
    assert list(counts._shares({0: 3, 1: 3}, [1], {0: 2, 1: 100})) != []
    assert all(w.home == 1 for w in counts._shares({0: 3, 1: 3}, [1], {0: 2, 1: 100}))
    assert counts._most_lent([1, 3], 0, 5) == 3
    assert is_hopeless(counts, 0.3, 1.0)


def test_summands() -> None:
    """All ways to add up, each once, ascending."""
    assert sorted(summands(6, 2, 4)) == [(2, 2, 2), (2, 4), (3, 3)]
    assert list(summands(6, 2, 4, 2)) == [(2, 4), (3, 3)]


def test_levels_that_no_unit_reaches_ask_for_no_part() -> None:
    """A share across blocks may be faster than any unit: its level asks for nothing."""
    slow_near = replace(ONE_UNIT, near=dict.fromkeys(NEAR, 0.3))
    times = slow_near.times()
    assert times.min() < 0.3
    assert slow_near.least_parts() == [1] * len(times)


@pytest.mark.parametrize("most", [1, 20, 10_000])
def test_boxes_leave_out_no_choice_below_a_value(most: int) -> None:
    """However few boxes there are; with enough of them, nothing but those choices."""
    rng = np.random.default_rng(most)
    pay = rng.random((3, 5)).cumsum(axis=1)[:, ::-1]  # higher levels are faster
    places = np.arange(3)

    def value(_low: IntArray, high: IntArray) -> FloatArray:
        found: FloatArray = pay[places, high].sum(axis=1)
        return found

    choices = np.indices((5, 5, 5)).reshape(3, -1).T
    paid = value(choices, choices)
    for limit in np.quantile(paid, (0.05, 0.4, 0.9)).tolist():
        low = Boxes(3, 5, value, most).below(limit)
        covered = (low[:, None] <= choices).all(axis=-1).any(axis=0)
        assert covered[paid < limit].all()
        if most == 10_000:
            assert (value(low, low) < limit).all()
    assert not len(Boxes(3, 5, value, most).below(float(paid.min())))


def test_replicas_that_ask_for_more_than_others_do_not_count() -> None:
    """Those that are kept ask for no more than any of 500 replicas."""
    levels = np.random.default_rng(0).integers(6, size=(500, 4))
    kept, least = least_asked(levels, 6)
    asked = (levels[:, :, None] >= np.arange(6)).sum(axis=1)
    assert (least == asked[kept]).all()
    assert (least[:, None] <= asked).all(axis=-1).any(axis=0).all()
    is_more = (least[:, None] <= least).all(axis=-1)
    assert (is_more == np.eye(len(kept), dtype=bool)).all()


def test_a_bound_is_raised_step_by_step_while_there_is_time() -> None:
    steps, asked = np.array([1.0, 2.0, 3.0, 4.0]), []

    def is_hopeless(value: float, limits: Limits) -> tuple[bool, float]:
        asked.append(limits.seconds)
        return value < 3.5, 0.0

    assert raised(0.5, steps, is_hopeless, Params(), ENDLESS) == 3.0
    asked.clear()
    assert raised(0.5, steps, is_hopeless, Params(), Budget(0.0)) == 0.5
    assert not asked
    raised(0.5, steps, is_hopeless, Params(), Budget(60.0))
    assert max(asked) <= 60.0
