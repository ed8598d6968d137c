"""A GPU's memory by part: published figures, what a score says of it, adapters."""

from dataclasses import replace

import pytest

from placer.cost.footprint.stages import PARTS, footprint, memory_score, restart_bytes
from placer.job.adapters import Adapters, trained_parameters
from placer.job.models import total_parameters
from tests.footprint.cases import job_of
from validation.memory_page import FIGURES, figure_values


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_figure_1_of_korthikanti(figure):
    """Activations to the bit; states but for norms, which the paper leaves out."""
    states, kept = figure_values(figure)
    assert kept == pytest.approx(figure.bars, rel=1e-12)
    assert states == pytest.approx(figure.states, rel=2e-3)


def test_the_score_names_the_fullest_stage_and_the_sum_of_its_parts():
    """`by_stage` has every stage; a measurement of activations replaces the model's."""
    job = job_of(parallelism={"pp": 4, "vp": 2})
    needs = memory_score(job, 80e9)["memory_bytes"]
    assert needs["total"] == pytest.approx(sum(needs[part] for part in PARTS))
    assert needs["total"] == max(needs["by_stage"])
    assert needs["by_stage"].index(needs["total"]) == needs["stage"]
    assert memory_score(job, 80e9)["memory_limit_bytes"] == 80e9
    assert "memory_limit_bytes" not in memory_score(job, 0.0)
    said = memory_score(replace(job, model=None), 80e9)
    assert said == {}
    measured = job_of(parallelism={"pp": 4}, memory={"activations": "5GB"})
    assert footprint(measured).activations == 5e9


# Where adapters alone are trained.
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


@pytest.mark.parametrize(
    ("sharding", "weights", "moments"),
    [("ddp", 2, 12), ("zero1", 2, 12 / 4), ("zero3", 4 / 4, 8 / 4)],
)
def test_a_restart_reads_weights_and_moments(sharding, weights, moments):
    """What a rank keeps between steps, no gradients; of adapters alone few moments."""
    kept = {"parallelism": {"dp": 4}, "data_parallel": {"sharding": sharding}}
    assert restart_bytes(job_of(**kept)) == (weights + moments) * WHOLE
    assert restart_bytes(replace(job_of(), model=None)) == 0
    few = restart_bytes(job_of(adapters={"rank": 32}, **kept))
    weights = 2 / 4 if sharding == "zero3" else 2
    trained = 4 / 4 if sharding == "zero3" else 2
    assert few == weights * WHOLE + (trained + moments) * FEW
