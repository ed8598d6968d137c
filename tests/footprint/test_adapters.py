"""Memory where adapters alone are trained: closed forms, and what a rank adds."""

import pytest

from placer.cost.footprint.stages import footprint, restart_bytes
from placer.job.adapters import Adapters, trained_parameters
from placer.job.models import total_parameters
from tests.footprint.cases import EXPERTS, SMALL, job_of

WHOLE = total_parameters(job_of().model)
FEW = trained_parameters(job_of().model, Adapters(rank=32))


def states(**content):
    found = footprint(job_of(**content))
    return found.parameters, found.gradients, found.optimizer


def test_states_by_hand():
    """Weights stay in 2 bytes; 2 + 2 + 12 bytes are of the adapters alone.

    Over four replicas ZeRO-1 shares out the optimizer; ZeRO-3 keeps adapters in FP32,
    weights in 2 bytes, and gathers two layers and the vocabulary beside.
    """
    rank = {"rank": 32}
    assert states(adapters=rank) == (2 * (WHOLE + FEW), 2 * FEW, 12 * FEW)
    found = states(adapters=rank, parallelism={"dp": 4})
    assert found == (2 * (WHOLE + FEW), 2 * FEW, 12 * FEW / 4)
    layer = 2 * 1024 * 1280 + 3 * 1024 * 4096 + 2 * 1024
    ends = 2 * 32768 * 1024 + 1024
    sharded = {"sharding": "zero3"}
    found = states(adapters=rank, parallelism={"dp": 4}, data_parallel=sharded)
    gathered = 2 * (2 * (layer + FEW / 16) + ends)
    assert found[0] == pytest.approx((2 * WHOLE + 4 * FEW) / 4 + gathered)
    assert found[1] == pytest.approx(4 * FEW / 4 + (2 + 4) * FEW / 16)
    assert found[2] == pytest.approx(8 * FEW / 4)


@pytest.mark.parametrize("sharding", ["ddp", "zero1", "zero2", "zero3"])
@pytest.mark.parametrize("model", [SMALL, EXPERTS], ids=["dense", "experts"])
def test_more_rank_is_more_memory(sharding, model):
    """Every part grows with the rank, and activations are those of full training."""
    usual = {
        "model": model,
        "parallelism": {
            "tp": 2,
            "pp": 2,
            "dp": 4,
            "ep": 4 if "experts" in model else 1,
        },
        "data_parallel": {"sharding": sharding},
    }
    ranks = [footprint(job_of(adapters={"rank": r}, **usual)) for r in (1, 8, 64)]
    full = footprint(job_of(**usual))
    for part in ("parameters", "gradients", "optimizer"):
        sizes = [getattr(found, part) for found in ranks]
        assert sizes == sorted(set(sizes)), part
    assert {found.activations for found in ranks} == {full.activations}
    assert ranks[-1].total < full.total


def test_a_restart_reads_the_weights_and_few_moments():
    """What a rank reads back are all weights, and the optimizer of the adapters."""
    job = job_of(adapters={"rank": 32})
    assert restart_bytes(job) == 2 * (WHOLE + FEW) + 12 * FEW
