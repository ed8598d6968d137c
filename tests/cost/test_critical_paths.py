"""The slowest of many pipelines, found without walking each of them."""

import numpy as np
import pytest

from placer.cost.critical_paths import CriticalPaths, Schedule


def drawn(shape: tuple[int, int], stages: int, spread: float, seed: int) -> np.ndarray:
    """Stages that take 1 forward and 2 backward, but for some noise; hops of 0.02."""
    draw = np.random.default_rng(seed)
    noise = 1 + spread * np.abs(draw.standard_normal((*shape, stages)))
    hops = np.full(noise.shape, 0.02)
    first, last = noise[:, :, :1], noise[:, :, -1:]
    parts = (noise, 2 * noise, hops, first, 2 * first, last, 2 * last)
    return np.concatenate(parts, axis=2)


def by_walking(schedule: Schedule, patterns: np.ndarray) -> np.ndarray:
    times = schedule.times(patterns.reshape(-1, patterns.shape[2]))
    return times.reshape(patterns.shape[:2]).max(axis=1)


@pytest.mark.parametrize("spread", [5e-4, 1e-2])
@pytest.mark.parametrize(
    ("stages", "schedule"),
    [
        (1, Schedule(8, 1, True)),
        (2, Schedule(3, 1, True)),
        (4, Schedule(16, 1, False)),
        (8, Schedule(8, 8, True)),
        (8, Schedule(32, 1, False)),
        (4, Schedule(24, 3, True)),
    ],
)
def test_slowest_replica(stages: int, schedule: Schedule, spread: float) -> None:
    """The time is that of walking every replica, to a tenth of the noise at worst."""
    patterns = drawn((50, 16), stages, spread, seed=stages)
    rows = patterns.reshape(-1, patterns.shape[2])
    found = CriticalPaths.near(schedule, rows).slowest(patterns)
    exact = by_walking(schedule, patterns)
    assert (found <= exact * (1 + 1e-12)).all()
    assert (found >= exact * (1 - spread / 10)).all()
    assert found.mean() == pytest.approx(exact.mean(), rel=spread / 100)


def test_paths_bound_from_below() -> None:
    """A path's counts times any stage times is never more than the pipeline takes."""
    schedule = Schedule(8, 2, True)
    near = drawn((1, 64), 4, 1e-3, seed=1)[0]
    far = drawn((1, 500), 4, 0.5, seed=2)[0]
    paths = CriticalPaths.near(schedule, near)
    bound = (far @ paths.counts.T + paths.constant).max(axis=1)
    assert (bound <= schedule.times(far) * (1 + 1e-6)).all()


def test_counts_are_whole() -> None:
    """A path passes a stage a whole number of times."""
    rows = drawn((1, 64), 4, 1e-2, seed=3)[0]
    counts = CriticalPaths.near(Schedule(8, 2, True), rows).counts
    assert np.abs(counts - np.round(counts)).max() < 1e-4
