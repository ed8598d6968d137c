"""The pipeline's time against closed forms and against the schedule played."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.cost.schedule import Stages, pipeline_time, pipeline_times
from tests.cost.reference.pipeline import Replica, played


@pytest.mark.parametrize(
    ("p", "v", "m"),
    [(1, 1, 2), (2, 1, 2), (3, 2, 15), (4, 1, 8), (8, 4, 8), (8, 4, 10**6)],
)
@pytest.mark.parametrize("overlap", [True, False])
def test_ideal_pipeline(p, v, m, overlap):
    """Uniform stages without hops take t_mb (m + (p-1)/v), a million as well."""
    ends = (1 / v, 2 / v, 1 / v, 2 / v)
    uniform = Stages((1 / v,) * p, (2 / v,) * p, (0.0,) * p, ends)
    found = pipeline_time(uniform, m, v, overlap)
    assert found == pytest.approx(3 * (m + (p - 1) / v), rel=1e-12)


times = st.floats(0.1, 3.0)
hops = st.floats(0.0, 2.0)


@st.composite
def pipelines(draw, whole=False):
    """Any stages and micro-batches; with chunks ``whole`` groups of these alone."""
    p = draw(st.integers(1, 5))
    v = draw(st.integers(1, 3))

    def row(values):
        return tuple(draw(st.lists(values, min_size=p, max_size=p)))

    m = draw(st.integers(1, 4 * p + 3))
    m = p * (1 + m % 5) if whole and v > 1 else m
    ends = tuple(draw(st.lists(times, min_size=4, max_size=4)))
    stages = Stages(row(times), row(times), row(hops), ends)
    return stages, m, v, draw(st.booleans())


def equals_the_schedule_played(stages, m, v, overlap):
    """Alone, and among others that take half as much time again."""
    replica = Replica(*(list(part) for part in stages))
    expected = played(replica, m, v, overlap=overlap)
    assert pipeline_time(stages, m, v, overlap) == pytest.approx(expected, rel=1e-11)
    row = np.concatenate(stages)
    together = pipeline_times(np.array([row, row * 1.5, row]), m, v, overlap)
    np.testing.assert_allclose(together, expected * np.array([1, 1.5, 1]), rtol=1e-11)


@given(pipelines())
def test_equals_the_schedule_played(case):
    """Any pipeline, micro-batches a multiple of the stages or not."""
    equals_the_schedule_played(*case)


# In the last three no state of the run returns while it is looked for.
@pytest.mark.parametrize("seed", [*range(6), 23, 37, 42])
def test_long_runs_equal_the_schedule_played(seed):
    """Ranks, ends and hops that differ little: repetitions that are skipped or raised.

    Runs of hundreds of groups of micro-batches.
    """
    draw = np.random.default_rng(seed)
    p, v = int(draw.integers(2, 7)), int(draw.integers(1, 4))
    m, overlap = int(draw.integers(100, 300)) * p, bool(draw.integers(2))
    forward = 1 + draw.choice([0.0, 1e-3, 1e-6, 0.3]) * draw.random(p)
    ends = np.array([forward[0], 2 * forward[0], forward[-1], 2 * forward[-1]])
    ends *= draw.choice([1.0, 1.002, 0.98], 4)
    hop = draw.choice([0.0, 1e-6, 1e-3, 0.1], p) * draw.choice([1.0, 1.5], p)
    parts = (forward, 2 * forward, hop, ends)
    equals_the_schedule_played(Stages(*map(tuple, parts)), m, v, overlap)
