"""How much waits for its backward pass, against a schedule played move by move."""

import random
from itertools import product

import numpy as np
import pytest

from placer.cost.footprint.activations import most_held
from tests.footprint.cases import job_of, played


def test_the_formula_is_the_schedule_played_on_random_pipelines() -> None:
    """Whatever the chunks hold, stage, groups and micro-batches."""
    rng = random.Random(1)
    for _ in range(300):
        pp, vp = rng.randint(2, 6), rng.randint(1, 5)
        group = rng.choice((pp, pp, pp + 1, 2 * pp)) if vp > 1 else pp
        groups = rng.randint(1, 9)
        rest = rng.choice((0, 0, pp)) if group > pp else 0
        micro_batches = groups * group + rest
        if vp == 1:
            micro_batches = rng.randint(1, 12)
        job = job_of(
            parallelism={"pp": pp, "vp": vp},
            model=None if pp * vp <= 18 else SMALL_AND_DEEP,
            micro_batches=micro_batches,
            memory={"micro_batch_group": group} if vp > 1 else {},
        )
        weights = [rng.randint(0, 3) for _ in range(vp)]
        for stage in range(pp):
            found = most_held(job, stage, np.array(weights, dtype=np.float64))
            expected = played(weights, stage, pp, micro_batches, group)
            assert found == expected, (pp, vp, micro_batches, group, stage, weights)


SMALL_AND_DEEP = {
    "layers": 64,
    "hidden": 256,
    "ffn": 512,
    "heads": 4,
    "kv_heads": 4,
    "vocab": 1024,
}


@pytest.mark.parametrize(("pp", "vp"), [*product((2, 4, 8), (2, 3))])
def test_overlapped_expert_traffic_holds_one_chunk_more(pp: int, vp: int) -> None:
    """One forward more is scheduled ahead, so that its traffic has work beside it."""
    model = SMALL_AND_DEEP | {"experts": 8, "top_k": 2, "moe_layers": 64}
    axes = {"pp": pp, "vp": vp, "dp": 2, "ep": 2}
    weights = np.ones(vp)
    plain = job_of(model, parallelism=axes, micro_batches=64)
    hidden = job_of(model, parallelism=axes, micro_batches=64, overlap={"ep": True})
    for stage in range(pp):
        expected = played(list(weights), stage, pp, 64, pp, extra=1)
        assert most_held(hidden, stage, weights) == expected
        assert expected == most_held(plain, stage, weights) + 1


def test_llama_405b_holds_what_its_schedule_says() -> None:
    """p = v = 8, 126 layers and two that embedding and loss stand for."""
    job = job_of("llama3.1-405b", parallelism={"pp": 8, "vp": 8}, micro_batches=64)
    layers = np.full((8, 8), 2.0)
    layers[0, 0] = layers[-1, -1] = 1.0
    found = [most_held(job, stage, layers[stage]) for stage in range(8)]
    # The last rank: 113 at the end of its warm-up, one more when chunk 0 comes again.
    assert found == [127, 138, 134, 130, 126, 122, 118, 114]


def test_long_runs_hold_what_short_ones_do() -> None:
    """After the warm-up a schedule repeats itself."""
    weights = np.array([3.0, 1.0, 2.0])
    held = {
        most_held(
            job_of(parallelism={"pp": 4, "vp": 3}, micro_batches=m), stage, weights
        )
        for m in (64, 640, 64_000)
        for stage in (1,)
    }
    assert len(held) == 1
