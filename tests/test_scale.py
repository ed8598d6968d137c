"""Large jobs: how work grows with size, and what is left out for who cannot wait."""

import pytest

import placer
from placer.api.baseline_costs import baseline_costs
from placer.api.score import score
from placer.cost.step import Step, StepModel
from placer.job.model import Job
from placer.job.read import read_job
from placer.job.resize import resized
from placer.placement.baselines import baseline


def job_of(dp: int) -> Job:
    return resized(read_job("llama3.1-405b-mlperf-v6"), dp=dp)


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ranks of every placement that is priced in full."""
    sizes: list[int] = []
    step_on = StepModel.step_on

    def counted(self: StepModel, network: object) -> Step:
        sizes.append(self.job.world_size)
        return step_on(self, network)  # type: ignore[arg-type]

    monkeypatch.setattr(StepModel, "step_on", counted)
    return sizes


def test_passes_do_not_grow_with_the_machine(priced: list[int]) -> None:
    """A regular machine takes as many passes over the ranks at any size."""
    passes = []
    for blocks in (2, 8, 32):
        priced.clear()
        machine = placer.read_topology(f"block:{blocks} rack:4 node:16 gpu:4")
        assert placer.place(machine, job_of(4 * blocks)).stop_reason != "time-limit"
        passes.append(len(priced))
    assert passes[0] >= passes[1] >= passes[2]


def test_no_placement_is_priced_twice_for_the_baselines(priced: list[int]) -> None:
    """Baselines that are one placement are priced once: its cost, and without links."""
    machine, job = placer.read_topology("block:2 rack:4 node:16 gpu:4"), job_of(8)
    model = StepModel(machine, job)
    usual = baseline("given-order", machine, job)
    found = score(machine, job, usual)
    priced.clear()
    entries = baseline_costs(model, 0, usual, found, "proved")
    # Only megatron-default numbers the ranks of this job otherwise.
    assert len(priced) == 2
    assert entries["given-order"]["step_time_s"] == found["step_time_s"]
    assert list(entries["given-order"]) == list(entries["megatron-default"])[:4]
    assert entries["sorted-hosts"] == entries["replica-major"] == entries["given-order"]


def test_an_interrupted_large_plan_does_not_wait_for_baselines(
    priced: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asked to stop gets a checked plan with the baselines that cost nothing."""
    monkeypatch.setattr("placer.api.baseline_costs.PRICED_IN_HASTE", 0)
    machine, job = placer.read_topology("block:2 rack:4 node:16 gpu:4"), job_of(8)
    model = StepModel(machine, job)
    usual = baseline("given-order", machine, job)
    found = score(machine, job, usual)
    priced.clear()
    entries = baseline_costs(model, 0, usual, found, "interrupted")
    assert priced == []
    assert list(entries) == ["given-order", "sorted-hosts", "replica-major"]
