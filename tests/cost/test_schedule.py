"""The pipeline's time against closed forms and against a longest path over a graph."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.cost import schedule
from placer.cost.pipeline_order import blocks
from placer.cost.schedule import (
    HEAD,
    WALKED,
    Stages,
    pipeline_time,
    pipeline_times,
    times_power,
)
from tests.cost.reference.pipeline import Replica, longest_path

SHAPES = [(p, v, m * p) for p in (1, 2, 3, 4, 8) for v in (1, 2, 4) for m in (1, 2, 5)]


def even(
    forward: tuple[float, ...], backward: tuple[float, ...], hop: tuple[float, ...]
) -> Stages:
    """A pipeline whose first and last chunk are like the others of their rank."""
    ends = (forward[0], backward[0], forward[-1], backward[-1])
    return Stages(forward, backward, hop, ends)


def uniform(p: int, v: int, hop: float = 0.0) -> Stages:
    """Stages of 1 s forward and 2 s backward a micro-batch."""
    return even((1 / v,) * p, (2 / v,) * p, (hop,) * p)


@pytest.mark.parametrize(("p", "v", "m"), SHAPES)
@pytest.mark.parametrize("overlap", [True, False])
def test_ideal_pipeline(p: int, v: int, m: int, overlap: bool) -> None:
    """Uniform stages without hops take t_mb (m + (p-1)/v)."""
    found = pipeline_time(uniform(p, v), m, v, overlap)
    assert found == pytest.approx(3 * (m + (p - 1) / v), rel=1e-12)


@pytest.mark.parametrize(("p", "v", "m"), [s for s in SHAPES if s[0] > 1 and s[1] > 1])
def test_short_hops_of_a_closed_ring(p: int, v: int, m: int) -> None:
    """With v > 1 only the first forward and the last backward see hops: 2 (pv-1) h.

    Chunk c+1 of a group is ready after p chunk times and p hops, just when its rank
    ends chunk c: each of the pv-1 hops of the first pass is seen, and in mirror image
    those of the last backward. In between the warm-up of 2(p-s-1) is one round trip
    ahead.
    """
    h = 1e-3 / v
    added = pipeline_time(uniform(p, v, h), m, v, True) - 3 * (m + (p - 1) / v)
    assert added == pytest.approx(2 * (p * v - 1) * h, rel=1e-6)


@pytest.mark.parametrize("p", [2, 3, 4, 8])
def test_short_hops_without_virtual_stages(p: int) -> None:
    """With v = 1 each p micro-batches pay one round trip, 2 (p-1) h.

    A rank is only as far ahead as its distance to the end, so a forward waits for the
    backward that frees its turn: down p-1 hops, up p-1 hops, p micro-batches later.
    """
    h = 1e-3
    times = [pipeline_time(uniform(p, 1, h), k * p, 1, True) for k in (2, 3, 4)]
    for shorter, longer in itertools.pairwise(times):
        assert longer - shorter == pytest.approx(3 * p + 2 * (p - 1) * h, rel=1e-9)
    once = pipeline_time(uniform(p, 1, h), p, 1, True) - 3 * (2 * p - 1)
    assert once >= 2 * (p - 1) * h * (1 - 1e-9)


def test_one_micro_batch() -> None:
    """One micro-batch passes all chunks and hops down and up again."""
    stages = even((1.0, 2.0), (3.0, 4.0), (0.1, 0.2))
    there = (1 + 0.1 + 2) + 0.2 + (1 + 0.1 + 2)
    back = (4 + 0.1 + 3) + 0.2 + (4 + 0.1 + 3)
    assert pipeline_time(stages, 1, 2, True) == pytest.approx(there + back)


def test_ends_by_hand() -> None:
    """One micro-batch over two ranks and chunks: only the outermost chunks differ.

    Forward 1/2 in the first chunk, 1 and 1 between, 4 in the last; backward 5, 2, 2, 3.
    """
    stages = Stages((1.0, 1.0), (2.0, 2.0), (0.0, 0.0), (0.5, 3.0, 4.0, 5.0))
    total = 0.5 + 1 + 1 + 4 + 5 + 2 + 2 + 3
    assert pipeline_time(stages, 1, 2, True) == pytest.approx(total)


def test_a_single_chunk_is_the_first() -> None:
    """Where the first chunk is also the last, the first's times count."""
    stages = Stages((1.0,), (2.0,), (0.0,), (0.5, 1.5, 9.0, 9.0))
    assert pipeline_time(stages, 3, 1, True) == pytest.approx(3 * 2.0)


def test_two_micro_batches_by_hand() -> None:
    """Two stages, two micro-batches, forward 1, backward 2, hop 1/2, drawn by hand.

    Rank 0: F0 0-1, F1 1-2, B0 5-7, B1 8-10. Rank 1: F0 1.5-2.5, B0 2.5-4.5, F1 4.5-5.5,
    B1 5.5-7.5.
    """
    stages = even((1.0, 1.0), (2.0, 2.0), (0.5, 0.0))
    assert pipeline_time(stages, 2, 1, True) == pytest.approx(10.0)


times = st.floats(0.1, 3.0)
hops = st.floats(0.0, 2.0)


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[Stages, int, int, bool]:
    p = draw(st.integers(1, 5))
    v = draw(st.integers(1, 3))

    def row(values: st.SearchStrategy[float]) -> tuple[float, ...]:
        return tuple(draw(st.lists(values, min_size=p, max_size=p)))

    m = draw(st.integers(1, 4 * p + 3))
    ends = tuple(draw(st.lists(times, min_size=4, max_size=4)))
    stages = Stages(row(times), row(times), row(hops), ends)
    return stages, m, v, draw(st.booleans())


@given(pipelines())
def test_equals_the_longest_path(case: tuple[Stages, int, int, bool]) -> None:
    """Any pipeline, micro-batches a multiple of the stages or not, as a graph says."""
    stages, m, v, overlap = case
    replica = Replica(*(list(part) for part in stages))
    expected = longest_path(replica, m, v, overlap=overlap)
    assert pipeline_time(stages, m, v, overlap) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_long_runs_equal_the_longest_path(seed: int) -> None:
    """Skipping repetitions of a periodic run changes nothing."""
    draw = np.random.default_rng(seed)
    p, v = int(draw.integers(1, 6)), int(draw.integers(1, 4))
    m = int(draw.integers(10 * p, 40 * p))
    spread = draw.choice([0.0, 0.01, 0.3])
    forward = tuple(1 + spread * draw.random(p))
    backward = tuple(2 * f for f in forward)
    hop = tuple(draw.choice([0.0, 0.01, 0.5, 2.0], p) * draw.random(p))
    stages = even(forward, backward, hop)
    replica = Replica(*(list(part) for part in stages))
    expected = longest_path(replica, m, v, overlap=True)
    found = pipeline_time(stages, m, v, True)
    assert found == pytest.approx(expected, rel=1e-11)


def close_race(draw: np.random.Generator, p: int) -> np.ndarray:
    """A pattern whose ranks, ends and hops differ little: it settles late if at all."""
    forward = 1 + draw.choice([0.0, 1e-3, 1e-6, 0.3]) * draw.random(p)
    ends = np.array([forward[0], 2 * forward[0], forward[-1], 2 * forward[-1]])
    ends *= draw.choice([1.0, 1.002, 0.98], 4)
    hop = draw.choice([0.0, 1e-6, 1e-3, 0.1], p) * draw.choice([1.0, 1.5], p)
    return np.concatenate((forward, 2 * forward, hop, ends))


# Seeds of races in which no state returns while it is looked for.
UNSETTLED = (19, 21, 23, 37, 42, 43)


@pytest.mark.parametrize("seed", UNSETTLED)
def test_long_runs_that_do_not_settle(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no state returns soon the time is as exact, alone and among others."""
    raised = []

    def counting(*args: Any) -> Any:
        raised.append(args)
        return times_power(*args)

    monkeypatch.setattr(schedule, "times_power", counting)
    draw = np.random.default_rng(seed)
    p, v = int(draw.integers(2, 7)), int(draw.integers(1, 4))
    m, overlap = int(draw.integers(100, 300)) * p, bool(draw.integers(2))
    row = close_race(draw, p)
    parts = np.split(row, [p, 2 * p, 3 * p])
    replica = Replica(*(part.tolist() for part in parts))
    expected = longest_path(replica, m, v, overlap=overlap)
    alone = pipeline_time(Stages(*map(tuple, parts)), m, v, overlap)
    assert raised
    assert alone == pytest.approx(expected, rel=1e-12)
    together = pipeline_times(np.array([row, row * 1.5, row]), m, v, overlap)
    np.testing.assert_allclose(together, expected * np.array([1, 1.5, 1]), rtol=1e-12)


@pytest.mark.parametrize("seed", UNSETTLED)
@pytest.mark.parametrize("groups", [10, 22, 30])
def test_few_repetitions_are_walked(
    seed: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a matrix takes longer than the repetitions that are left, none is made."""
    monkeypatch.setattr(schedule, "_matrices", None)
    draw = np.random.default_rng(seed)
    p, v = int(draw.integers(2, 7)), int(draw.integers(1, 4))
    row = close_race(draw, p)
    replica = Replica(*(part.tolist() for part in np.split(row, [p, 2 * p, 3 * p])))
    expected = longest_path(replica, groups * p, v, overlap=True)
    found = pipeline_times(np.array([row, row * 1.5]), groups * p, v, True)
    np.testing.assert_allclose(found, expected * np.array([1, 1.5]), rtol=1e-12)


def test_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas raised to a power a few at a time come out as all at once."""
    draw = np.random.default_rng(7)
    rows = np.array([close_race(draw, 5) for _ in range(40)])
    together = pipeline_times(rows, 2000, 3, False)
    monkeypatch.setattr(schedule, "TOGETHER", 1000)
    np.testing.assert_array_equal(pipeline_times(rows, 2000, 3, False), together)


@pytest.mark.parametrize("seed", range(40))
def test_longer_runs_are_monotone(seed: int) -> None:
    """Slower work or a slower hop never shortens a long run, however close the race."""
    draw = np.random.default_rng(seed)
    p, v = int(draw.integers(2, 7)), int(draw.integers(1, 4))
    m, overlap = int(draw.integers(7, 300)) * p, bool(draw.integers(2))
    row = close_race(draw, p)
    slower = row + np.diag(draw.choice([1e-7, 1e-4, 0.05], len(row)))
    times = pipeline_times(np.vstack((row, slower)), m, v, overlap)
    assert (times[1:] >= times[0] * (1 - 1e-10)).all()


def test_a_million_micro_batches() -> None:
    """A very long run costs what its ideal form says, without walking it."""
    found = pipeline_time(uniform(8, 4), 10**6, 4, True)
    assert found == pytest.approx(3 * (10**6 + 7 / 4), rel=1e-12)


@given(pipelines(), st.integers(0, 19), st.floats(0.01, 1.0))
def test_monotone(case: tuple[Stages, int, int, bool], which: int, more: float) -> None:
    """More time anywhere never makes the pipeline shorter."""
    stages, m, v, overlap = case
    rows = [list(part) for part in stages]
    row = rows[which % 4]
    row[which // 4 % len(row)] += more
    slower = Stages(*(tuple(part) for part in rows))
    before = pipeline_time(stages, m, v, overlap)
    assert pipeline_time(slower, m, v, overlap) >= before * (1 - 1e-12)


@pytest.mark.parametrize("m", [1, 3, 8, 11, 60])
def test_many_at_once(m: int) -> None:
    """Replicas timed together get the times they get alone."""
    draw = np.random.default_rng(m)
    patterns = draw.random((9, 16))
    together = pipeline_times(patterns, m, 2, True)
    alone = [
        pipeline_time(Stages(*(tuple(x) for x in np.split(row, 4))), m, 2, True)
        for row in patterns
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


@pytest.mark.parametrize("p", range(1, 8))
@pytest.mark.parametrize("v", range(1, 5))
def test_no_schedule_waits_for_itself(p: int, v: int) -> None:
    """Every count of micro-batches has an order, each piece of work in it once."""
    for m in range(1, 3 * p + 2):
        keys = [op[:4] for block in blocks(p, m, v) for op in block]
        assert len(keys) == len(set(keys)) == 2 * p * v * m


@pytest.mark.parametrize("p", range(1, 7))
@pytest.mark.parametrize("v", range(1, 4))
@pytest.mark.parametrize("rest", [0, 1])
def test_blocks_repeat(p: int, v: int, rest: int) -> None:
    """The block that long runs repeat is that of the group before, a group later."""
    walked = blocks(p, (WALKED - min(rest, p - 1)) * p + min(rest, p - 1), v)
    group = p * v

    def later(key: int) -> int:
        return key + group if key >= 0 else -1

    repeated = walked[HEAD - 1]
    before = walked[HEAD - 2]
    assert {
        op._replace(source=later(op.source), key=later(op.key)) for op in before
    } == set(repeated)


def applied(matrix: np.ndarray, vector: list[float], times: int) -> list[float]:
    """The matrix applied to the vector again and again."""
    size = range(len(vector))
    for _ in range(times):
        vector = [max(matrix[i][j] + vector[j] for j in size) for i in size]
    return vector


@pytest.mark.parametrize("power", [0, 1, 2, 3, 7, 8, 25])
def test_a_power_is_many_products(power: int) -> None:
    """Repeated squaring gives what so many products give; missing edges stay so."""
    draw = np.random.default_rng(power)
    matrices = draw.integers(0, 50, (4, 6, 6)).astype(float)
    matrices[draw.random(matrices.shape) < 0.5] = -np.inf
    vectors = draw.integers(0, 50, (4, 6)).astype(float)
    found = times_power(matrices, power, vectors)
    for matrix, vector, row in zip(matrices, vectors, found, strict=True):
        assert row.tolist() == applied(matrix, vector.tolist(), power)
