"""Exposed data-parallel time, called directly with the figures of worked examples."""

import numpy as np
import pytest

from placer.cost.data_parallel import (
    Windows,
    beside_work,
    exposed_gather,
    exposed_reduce,
)
from placer.job.parallel import DataParallel

AZURE = Windows(4.9e-3, 9.8e-3, forwards=8, backwards=8, buckets=12.0)
CHUNK_BYTES = 3.19e9
TWO_NICS = 200e9


@pytest.mark.parametrize(
    ("efficiency", "tail_ms", "head_ms", "both_ms"),
    [(1.0, 7.0, 11.4, 18.4), (0.9, 8.7, 13.2, 22.0), (0.8, 11.0, 15.4, 26.4)],
)
def test_azure_example(
    efficiency: float, tail_ms: float, head_ms: float, both_ms: float
) -> None:
    """A chunk of 3.19 GB on two NICs leaves 18.4, 22.0 or 26.4 ms, latency aside."""
    chunk = CHUNK_BYTES / (TWO_NICS * efficiency)
    seconds = np.full((8, 8), chunk)
    tail = exposed_reduce(seconds, AZURE, True)
    head = exposed_gather(seconds, chunk / 12, AZURE, True)
    assert tail == pytest.approx(tail_ms * 1e-3, abs=0.06e-3)
    assert head == pytest.approx(head_ms * 1e-3, abs=0.06e-3)
    assert tail + head == pytest.approx(both_ms * 1e-3, abs=0.06e-3)


def first_forward_ends(
    gathers: list[float], bucket_s: float, forward_s: float, buckets: int
) -> float:
    """When the first micro-batch has left the last stage, one event after the other.

    Rank 0 needs bucket after bucket, of which the last arrives with the whole chunk;
    every later rank its whole chunk.
    """
    now = 0.0
    for k in range(buckets):
        share = k / (buckets - 1) if buckets > 1 else 0.0
        arrived = bucket_s + share * (gathers[0] - bucket_s)
        now = max(now, arrived) + forward_s / buckets
    for gathered in gathers[1:]:
        now = max(now, gathered) + forward_s
    return now


@pytest.mark.parametrize("seed", range(80))
def test_head_follows_from_events(seed: int) -> None:
    """The head is what the first micro-batch waits on its way through all stages."""
    draw = np.random.default_rng(seed)
    stages, buckets = int(draw.integers(1, 6)), int(draw.integers(1, 7))
    forward = float(draw.uniform(0.1, 2.0))
    gathers = draw.uniform(0.1, 5.0, stages)
    bucket = gathers[0] * (float(draw.uniform(1 / buckets, 1)) if buckets > 1 else 1)
    hidden = Windows(forward, 2 * forward, stages, stages, float(buckets))
    ends = first_forward_ends(gathers.tolist(), bucket, forward, buckets)
    seen = exposed_gather(gathers[:, None], bucket, hidden, True)
    assert seen == pytest.approx(ends - stages * forward)


def test_hidden_traffic_slows_the_work_beside_it() -> None:
    """Of 3 s and 1 s on two chunks 1 s is seen: 3 s more cost 0.12 of themselves.

    The stage that sends most counts; nothing is hidden where nothing overlaps.
    """
    seconds = np.array([[3.0, 1.0], [1.0, 1.0]])
    assert beside_work(seconds, 1.0, DataParallel()) == pytest.approx(1.36)
    assert beside_work(seconds, 4.0, DataParallel()) == 4.0
    assert beside_work(seconds, 1.0, DataParallel(sm_share=0.0)) == 1.0


def test_chunks_of_unequal_size() -> None:
    """Only the chunk that outlasts its window is seen; the first has head and tail.

    Two ranks, three chunks; windows of 2 and 4 s. Gather: chunk 2 takes 3 s on the last
    rank, 1 s is seen; of chunk 0 the 1 s on rank 0, of which its single bucket hides
    nothing. Reduction: chunk 2 hides in 4 s; chunk 0 likewise.
    """
    hidden = Windows(1.0, 2.0, forwards=2, backwards=2, buckets=1.0)
    seconds = np.array([[1.0, 2.0, 2.0], [0.5, 2.0, 3.0]])
    assert exposed_gather(seconds, 1.0, hidden, True) == pytest.approx(2.0)
    assert exposed_reduce(seconds, hidden, True) == pytest.approx(1.0)
    assert exposed_reduce(seconds, hidden, False) == pytest.approx(5.5)
